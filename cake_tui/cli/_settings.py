"""Settings on the command line: the flags that have a name of their own, and ``--set SETTING=VALUE`` for all."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cake_tui.config import Settings
from cake_tui.errors import UserError

_FLAGS = {
    "candidates": "effective candidates until it is done",
    "hours": "hours until it is done",
    "round": "candidates a round",
}


def add_settings_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    for name, words in _FLAGS.items():
        parser.add_argument(f"--{name}", metavar=name[0].upper(), help=f"{words} ({Settings().flat()[name]:g})")
    parser.add_argument(
        "--set", metavar="SETTING=VALUE", action="append", default=[], help="any other setting; may be repeated"
    )


def given_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the arguments give, checked; raises UserError."""
    values = values_of(args.set)
    for name in _FLAGS:
        if getattr(args, name) is not None:
            values[name] = getattr(args, name)
    return _checked(values)


def values_of(words: Sequence[str]) -> dict[str, Any]:
    """Read ``SETTING=VALUE`` words into checked values; raises UserError, one line a mistake."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UserError(f'found "{word}", allowed: SETTING=VALUE, as candidates=900')
        values[name.strip()] = value.strip()
    return _checked(values)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    mistakes = []
    for name, value in values.items():
        try:
            Settings().changed(**{name: value})
        except UserError as error:
            mistakes.append(str(error))
    if mistakes:
        raise UserError("\n".join(mistakes))
    flat = Settings().changed(**values).flat()
    return {name: flat[name] for name in values}
