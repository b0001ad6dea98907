"""Where a statement of lowered C stands: a frame that also notes which functions the source needs."""

from __future__ import annotations

from cake_tui.ir.expr import Expr
from cake_tui.ir.lower.c.needs import Needs
from cake_tui.ir.lower.frame import Frame
from cake_tui.ir.lower.writer import Writer
from cake_tui.ir.program import Program

_WHOLE = ("least", "most", "ceil_div")  # what whole-number expressions print calls of


class CFrame(Frame):
    """A frame that shares what the functions need."""

    def __init__(self, program: Program, needs: Needs, writer: Writer, taken: frozenset[str]) -> None:
        super().__init__(program, writer, taken)
        self.needs = needs

    def c(self, expr: Expr, least: int = 0) -> str:
        """Print a whole-number expression or condition as C, simplified."""
        text = super().c(expr, least)
        if "(" in text:
            self.needs.whole.update([function for function in _WHOLE if f"{function}(" in text])
        return text
