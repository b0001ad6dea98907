"""The three ways a thing fails: the user's mistake, a candidate's ending (data), anything else is a bug."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from cake_tui.model.outcome import Outcome

OK = 0
BUG = 1
USAGE = 2
ENVIRONMENT = 3
BUSY = 4
DAMAGED = 5
NO_CANDIDATE = 6
FOUND_WRONG = 7

# What a compiler puts before an error, then the bare word: a warning may speak of `error_of` or `errors.h`.
_ERROR = (re.compile(r"\b(?:fatal )?error\b ?(?::|\[|#)", re.IGNORECASE), re.compile(r"error", re.IGNORECASE))


class UserError(Exception):
    """The user's mistake or their machine's: one line a mistake with what, where and what to do.

    `exit_code` is one of the constants above. Several mistakes found in one go are several lines.
    """

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class DeviceLost(UserError):
    """The device, or what is needed to use it, has gone in the middle of a run: nothing about a candidate."""


class Ended(Exception):
    """A candidate ended in a step; raised by steps, caught in one place in the loop."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


def first_error(log: str, longest: int = 300) -> str:
    """Return the line of a compiler's output that names its first error, else its first line; empty for no words."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    for word in _ERROR:
        named = next((line for line in lines if word.search(line)), None)
        if named is not None:
            return named[:longest]
    return lines[0][:longest] if lines else ""


def printable(text: str) -> str:
    """Return outside text on one line, with whatever is no printable character spelled out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def quoted(text: str) -> str:
    """Return outside text in double quotes, on one line and of bounded length, whatever it holds."""
    return f'"{printable(text[:80])}{"…" if len(text) > 80 else ""}"'


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None where none is near."""
    found = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean "x"?)`` or an empty text, to be put behind a message."""
    found = nearest(name, known)
    return f' (did you mean "{found}"?)' if found else ""
