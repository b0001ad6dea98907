"""What lowered C needs in front of its functions."""

from __future__ import annotations

from cake_tui.ir.lower.c import prelude


class Needs:
    """What the functions call: prelude functions by element and lanes, and whole-number ones."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, int], set[str]] = {}
        self.whole: set[str] = set()

    def call(self, stem: str, dtype: str, lanes: int) -> str:
        """Return the name of a prelude function and note that it is needed."""
        self.functions.setdefault((dtype, lanes), set()).add(stem)
        return f"{stem}_{prelude.suffix(dtype, lanes)}"

    def type(self, dtype: str, lanes: int) -> str:
        """Return the name of a type and note that it is needed."""
        self.functions.setdefault((dtype, lanes), set())
        return prelude.type_of(dtype, lanes)
