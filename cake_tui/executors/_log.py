"""A program's output of any size: its head, its tail and its true size."""

from __future__ import annotations

KEPT_BYTES = 16 << 10  # of head and tail each


class Log:
    """Collects bytes; `text` keeps head and tail and says what was left out."""

    def __init__(self) -> None:
        self.bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        """Take more output."""
        self.bytes += len(data)
        room = KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        del self._tail[:-KEPT_BYTES]

    @property
    def text(self) -> str:
        """The output as text; bytes that are no UTF-8 become placeholders."""
        left_out = self.bytes - len(self._head) - len(self._tail)
        gap = f"\n... {left_out} bytes left out ...\n".encode() if left_out else b""
        return (self._head + gap + self._tail).decode(errors="replace")
