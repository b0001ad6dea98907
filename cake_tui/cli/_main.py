"""Chooses the command by its file's name, gives it its arguments and returns the process's exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cake_tui import __version__, registry
from cake_tui.cli._ending import exit_code_of
from cake_tui.cli._parser import Parser
from cake_tui.errors import OK, UserError, did_you_mean, quoted


@dataclass(frozen=True)
class Command:
    """What a command's file ends with: ``PLUGIN: Command = Command(example=..., add_arguments=..., run=...)``.

    The first line of the file's docstring says what the command does; the rest of it is its help text.
    `example` is a command line to paste. `run` returns the exit code and raises UserError for what the
    user can mend.
    """

    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code; never raises but for a second signal."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return exit_code_of(lambda: _dispatch(arguments), arguments)


def parser_of(name: str) -> tuple[Parser, Command]:
    """Return a command and its filled parser; imports that command's module alone."""
    command: Command = registry.load("cli", name)
    words = sys.modules[f"cake_tui.cli.{name}"].__doc__ or ""
    parser = Parser(
        prog=f"cake-tui {name}",
        description=words.strip(),
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    return parser, command


def _dispatch(arguments: list[str]) -> int:
    """Choose the command by the first word."""
    if not arguments:
        from cake_tui.cli._output import print_line
        from cake_tui.cli._start import start_screen

        for line in start_screen().splitlines():
            print_line(line)
        return OK
    first, rest = arguments[0], arguments[1:]
    if first in ("-h", "--help", "help"):
        print(_overview(), end="")
        return OK
    if first in ("-V", "--version"):
        print(f"cake-tui {__version__}")
        return OK
    commands = registry.names("cli")
    if first.startswith("-"):
        raise UserError(f"cake-tui: unknown flag {quoted(first)}{did_you_mean(first, _FLAGS)}; {_SEE}")
    if first not in commands:
        raise UserError(f"cake-tui: no command {quoted(first)}{did_you_mean(first, commands)}; {_SEE}")
    parser, command = parser_of(first)
    return command.run(parser.read(rest))


_SEE = "see: cake-tui --help"
_FLAGS = ("--help", "--version")


def _overview() -> str:
    """The help of ``cake-tui`` itself: every command with its own first line."""
    lines = ["usage: cake-tui [COMMAND] [--help] [--version]", ""]
    lines += ["Live, leaderboard-style kernel tuning sessions in the terminal.", "", "commands:"]
    lines += [f"  {name:<10} {registry.docstring('cli', name)}" for name in registry.names("cli")]
    lines += ["", "Without a command: your sessions and what to do next.", ""]
    lines += ["example:", "  cake-tui run matmul_bias_relu --name first", ""]
    return "\n".join(lines)
