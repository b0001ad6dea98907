"""What `doctor` found of one subject."""

from __future__ import annotations

import msgspec


class Found(msgspec.Struct, frozen=True):
    """One subject: `state` is ok, note (works, could be better) or missing; `do` says what would mend it."""

    subject: str
    state: str
    text: str
    do: str = ""
