"""A command's argument parser whose complaints are one line with the flag, what was found and the nearest name."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from cake_tui.errors import UserError, did_you_mean, quoted

_KIND_WORDS = {"int": "a whole number", "float": "a number"}


class Parser(argparse.ArgumentParser):
    """Abbreviated flags are refused: a script that relies on one breaks when a flag is added."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, exit_on_error=False, **options)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse one command's arguments; raises UserError in one line, prints help on ``--help``."""
        self._refuse_unknown_flags(arguments)
        try:
            found, left = self.parse_known_args(list(arguments))
        except argparse.ArgumentError as error:
            raise UserError(self._explain(error)) from None
        if left:
            raise UserError(f"{self.prog}: one argument too many: {quoted(left[0])}; {self._see}")
        return found

    def error(self, message: str) -> NoReturn:
        """Turn what argparse would print and exit with into the user's mistake."""
        text = " ".join(message.split()).replace("the following arguments are required:", "missing:")
        raise UserError(f"{self.prog}: {text}; {self._see}")

    @property
    def _see(self) -> str:
        return f"see: {self.prog} --help"

    def _refuse_unknown_flags(self, arguments: Sequence[str]) -> None:
        # argparse takes every word of this form for a flag, and would name a missing argument first.
        known = [flag for action in self._actions for flag in action.option_strings]
        for word in arguments:
            if word == "--":
                return
            flag = word.partition("=")[0]
            if re.fullmatch(r"--\S+", word) and flag not in known:
                near = did_you_mean(flag, [name for name in known if name.startswith("--")])
                raise UserError(f"{self.prog}: unknown flag {quoted(flag)}{near}; {self._see}")
            if word == f"{flag}=--":  # argparse would make an empty list of it
                raise UserError(f'{self.prog}: {flag}: found "--"; {self._see}')

    def _explain(self, error: argparse.ArgumentError) -> str:
        """Say what was found and what is allowed, in the words all other mistakes use."""
        name = error.argument_name or ""
        action = next((a for a in self._actions if name and name in _names(a)), None)
        text = error.message
        kind = re.fullmatch(r"invalid (\w+) value: (.*)", text, re.DOTALL)
        choice = re.match(r"invalid choice: (.*) \(choose from", text, re.DOTALL)
        if kind:
            text = f"found {kind[2]}, allowed: {_KIND_WORDS.get(kind[1], kind[1])}"
        elif choice and action is not None and action.choices is not None:
            allowed = [str(value) for value in action.choices]
            near = did_you_mean(choice[1].strip("'"), allowed)
            text = f"found {choice[1]}, allowed: {', '.join(allowed)}{near}"
        return f"{self.prog}: {name}: {text}; {self._see}"


def _names(action: argparse.Action) -> tuple[str, ...]:
    """Every text under which argparse may name an argument in its errors."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return ("/".join(action.option_strings), *action.option_strings, metavar, action.dest)
