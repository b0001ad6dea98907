"""Which panes are shown and in which order: kept in ``panes.toml``, changed by keys, the same in every session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import tomli_w

from cake_tui.errors import UserError
from cake_tui.store.files import write_whole
from cake_tui.toml import Mistakes, Table, read_document

FILE = "panes.toml"
# From the left to the right and from the top down; others follow.
FIRST = ("history", "best", "board", "feedback", "clocks", "actions", "log")


class Arrangement:
    """Names of all panes in their order, and which of them are hidden; a change is written at once.

    `mistakes` says what is wrong in the file; the panes it leaves out follow in their usual order.
    """

    def __init__(self, known: Sequence[str], path: Path | None = None) -> None:
        usual = [name for name in FIRST if name in known] + [name for name in known if name not in FIRST]
        self.order = usual
        self.hidden: set[str] = set()
        self.mistakes: tuple[str, ...] = ()
        self._path = path
        if path is not None and path.exists():
            try:
                self._read(path, usual)
            except UserError as error:
                self.mistakes = tuple(str(error).splitlines())

    @property
    def shown(self) -> list[str]:
        """Panes that are not hidden; one at least."""
        return [name for name in self.order if name not in self.hidden] or self.order[:1]

    def hide(self, name: str) -> bool:
        """Hide a pane; false for the last one."""
        if self.shown == [name]:
            return False
        self.hidden.add(name)
        self._write()
        return True

    def reveal(self, name: str) -> None:
        """Bring a hidden pane back to its place."""
        if name in self.hidden:
            self.hidden.discard(name)
            self._write()

    def move(self, name: str, by: int) -> bool:
        """Let a pane change places with its neighbour; false at either end."""
        shown = self.shown
        there = shown.index(name) + by
        if not 0 <= there < len(shown):
            return False
        here, other = self.order.index(name), self.order.index(shown[there])
        self.order[here], self.order[other] = self.order[other], self.order[here]
        self._write()
        return True

    def _read(self, path: Path, usual: Sequence[str]) -> None:
        document = read_document(path)
        mistakes = Mistakes(document)
        table = Table(mistakes, (), document.value)
        order = list(dict.fromkeys(table.texts("order", allowed=usual)))
        self.hidden = set(table.texts("hidden", allowed=usual))
        table.close()
        self.order = [*order, *(name for name in usual if name not in order)]
        mistakes.raise_if_any()

    def _write(self) -> None:
        """Keep it; a disk that takes nothing costs the next session its arrangement, not this one its screen."""
        if self._path is not None:
            with suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                text = tomli_w.dumps({"order": self.order, "hidden": sorted(self.hidden)})
                write_whole(self._path, text.encode(), sync=False)
