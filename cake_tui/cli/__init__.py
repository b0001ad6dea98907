"""The command line: one command a file, found by its name; what it raises becomes one line and an exit code.

Commands are modules of this package, and some are called like built-ins (`list`, `set`): nothing but names
that are handed on may stand here.
"""

from cake_tui.cli._main import Command, main, parser_of

__all__ = ["Command", "main", "parser_of"]
