"""Where a number or name of a program stands; its words and its line are worked out only for a diagnostic."""

from __future__ import annotations

from typing import NamedTuple

from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import Path


class Site(NamedTuple):
    """A statement (by its path), a launch's head (by its number) or, without a path, what declares `name`.

    `name` is what a diagnostic calls it; a statement without one goes by its own line of text.
    """

    subject: Subject
    name: str = ""
    path: Path = ()

    @property
    def field(self) -> str:
        """What a diagnostic calls it."""
        return self.name or self.subject.words(self.path)

    @property
    def line(self) -> int:
        """Its line in the canonical text."""
        if not self.path:
            return self.subject.declared_line(self.name)
        return self.subject.lines[self.path] if len(self.path) > 1 else self.subject.launch_line(self.path[0])

    @property
    def where(self) -> str:
        """What stands around a statement; empty for anything else."""
        return self.subject.place(self.path) if len(self.path) > 1 else ""
