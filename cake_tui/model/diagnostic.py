"""A diagnostic: what a law found, where, what is needed and the nearest legal value."""

from __future__ import annotations

import msgspec


class Diagnostic(msgspec.Struct, frozen=True, gc=False):
    """One refusal by a law or an edit. `line` is the program text's line, 0 where there is no program yet.

    `field` names the knob, size or statement that forbids it; `limit`, `asked`, `available` and `unit`
    are set wherever the law compares two numbers, so that nobody has to parse `found`.
    """

    law: str
    field: str
    found: str
    needed: str
    line: int = 0
    where: str = ""
    nearest: str | None = None
    limit: str | None = None
    asked: float | None = None
    available: float | None = None
    unit: str | None = None

    @property
    def text(self) -> str:
        """One line: law, place, found, needed, nearest legal value."""
        place = f", line {self.line}" if self.line else ""
        where = f" ({self.where})" if self.where else ""
        nearest = f"; nearest legal: {self.nearest}" if self.nearest else ""
        return f"{self.law}{place}{where}: {self.field}: {self.found}; needed: {self.needed}{nearest}"
