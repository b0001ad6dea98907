"""The one readable text form of a program: parse, render and the lines of statements."""

from cake_tui.ir.expr import ParseError
from cake_tui.ir.text.declarations import show_buffer
from cake_tui.ir.text.program import line_numbers, parse, render, show_statement

__all__ = ["ParseError", "line_numbers", "parse", "render", "show_buffer", "show_statement"]
