"""Output: JSON as UTF-8 bytes whatever the terminal's locale; lines for people, broken at words on a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Any

import msgspec

_NARROWEST = 20


def print_line(line: str, inset: int = 4) -> None:
    """Write one line for people: a terminal gets it broken at words, the rest set in; a pipe or a file whole."""
    print("\n".join(_broken(line, inset)), flush=True)


def _broken(line: str, inset: int) -> list[str]:
    """A line in pieces as wide as the terminal; a longer word, as a path to copy, stays whole."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # no terminal, or a stream without a descriptor
        return [line]
    if columns < _NARROWEST or len(line) <= columns:
        return [line]
    before = " " * (len(line) - len(line.lstrip()) + inset)
    pieces = textwrap.wrap(
        line, columns, subsequent_indent=before, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False,
    )  # fmt: skip
    return pieces or [line]


def print_json_line(value: Any) -> None:
    """Write a value as one line of JSON to stdout, at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Write a value (plain or one of the model's) as indented JSON and a newline to stdout."""
    encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.flush()
    sys.stdout.buffer.write(encoded + b"\n")
    sys.stdout.flush()
