"""The stand-in's streams: nothing is ever under way."""

from __future__ import annotations


class ExternalStream:
    """A stream of somebody else's."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def use(self) -> None:
        """All that numpy does is done at once."""
