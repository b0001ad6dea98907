"""The one readable text form of a program: parse, render, statement lines and the content hash."""

from cake_tui.ir.expr import ParseError
from cake_tui.ir.text.declarations import show_buffer
from cake_tui.ir.text.program import content_hash, line_numbers, parse, render, show_statement

__all__ = ["ParseError", "content_hash", "line_numbers", "parse", "render", "show_buffer", "show_statement"]
