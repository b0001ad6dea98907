"""What a law is: a name, a version, where it comes from, and a check over a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from cake_tui.ir.laws._subject import Subject
from cake_tui.model.diagnostic import Diagnostic


class Law(msgspec.Struct, frozen=True):
    """A check of the verifier; its file's docstring says what it demands and why.

    Laws of `stage` 0 make sure that the program can be evaluated at all; later ones run only where these are silent.
    """

    name: str
    check: Callable[[Subject], Iterable[Diagnostic]]
    version: int = 1
    stage: int = 1
    origin: Literal["built-in", "learned"] = "built-in"


class LearnedLaw(msgspec.Struct, frozen=True):
    """A law as data: a program is refused where `condition` holds for one of its launches.

    `condition` is an expression over the program's sizes and constants and the launch's `threads`, `smem_bytes`,
    `registers` (a thread), `stages` (deepest pipeline), `launches` and `blocks`. A name that a program lacks makes the
    law silent there.
    """

    name: str
    condition: str
    field: str
    needed: str
    version: int = 1
    nearest: str | None = None
    origin: Literal["learned"] = "learned"
