"""Best kernel: the source in best/ with its hash, its diff against what it beat, or its program text."""

from __future__ import annotations

import difflib
from typing import ClassVar

from textual.binding import Binding

from cake_tui.tui import format as fmt
from cake_tui.tui.files import Text
from cake_tui.tui.format import Line
from cake_tui.tui.highlight import Highlighter
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View


class Best(Pane):
    """Highlighted once per change; plain beyond 5,000 lines."""

    order: ClassVar[int] = 1
    title: ClassVar[str] = "best kernel"
    help: ClassVar[str] = "the fastest accepted source; d its diff against the candidate it beat, r its program text"

    BINDINGS = [
        Binding("d", "mode('diff')", "diff against what it beat", id="best.diff"),
        Binding("r", "mode('program')", "program text (IR)", id="best.program"),
        Binding("left,h", "sideways(-8)", "scroll left", id="best.left", show=False),
        Binding("right,l", "sideways(8)", "scroll right", id="best.right", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.mode = "source"
        self.left = 0
        self._highlighter = Highlighter()
        self._incumbent: int | None = None
        self._source: Text | None = None
        self._diff: tuple[str, str, list[Line]] | None = None

    def show(self, view: View) -> None:
        """Read the file when a new moment is shown; drawing the same moment again shows the same text."""
        self._source = self._read(view)
        super().show(view)

    def summary(self, view: View) -> Line:
        """Candidate, structure and hash of the file shown."""
        number = view.history.incumbent
        if number is None:
            return ()
        source = self._source
        row = view.history.rows[number]
        structure = row.schedule.structure if row.schedule else ""
        digest = f"sha256 {source.sha256[:12]}" if source else "no file"
        mode = "" if self.mode == "source" else f"{self.mode} · "
        return ((f"{mode}#{number} {fmt.visible(structure, 24)} · ", "dim"), (digest, "accent"))

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The lines of the current mode."""
        if view.history.incumbent != self._incumbent:
            self._incumbent, self.top, self.left = view.history.incumbent, 0, 0
        if self._incumbent is None:
            return [((" no accepted kernel yet", "dim"),)]
        lines, numbered = self._lines(view)
        size = len(str(len(lines))) if numbered else 0
        out: list[Line] = []
        for index in self.window(len(lines), height):
            number: Line = ((f"{index + 1:>{size}} ", "dim"),) if numbered else ((" ", ""),)
            out.append((*number, *_shifted(lines[index], self.left)))
        return out

    def settle(self) -> None:
        """Wait until the highlighting is done and draw it."""
        self._highlighter.settle()
        self.draw()

    def action_mode(self, mode: str) -> None:
        """Switch to a mode, or back to the source."""
        self.mode = "source" if self.mode == mode else mode
        self.top = self.left = 0
        self.draw()

    def action_sideways(self, by: int) -> None:
        """Scroll long lines."""
        self.left = max(0, min(400, self.left + by))
        self.draw()

    def _read(self, view: View) -> Text | None:
        number = view.history.incumbent
        if number is None:
            return None
        # In a replay best/ holds a later kernel than the one under the cursor.
        found = None if view.replay else view.files.best_source()
        return found or view.files.source(number)

    def _lines(self, view: View) -> tuple[list[Line], bool]:
        number = view.history.incumbent
        source = self._source
        if number is None or source is None:
            return [((" the session folder holds no source of it", "dim"),)], False
        if self.mode == "program":
            found = view.files.program(number)
            if found is None:
                return [((" no program text on record (a kernel file of the user has none)", "dim"),)], False
            return [((fmt.visible(line), ""),) for line in found.text.splitlines()], True
        if self.mode == "diff":
            return self._difference(view, number, source), False
        language = "cuda" if source.path.suffix in (".cu", ".cuh") else "c"
        return self._highlighter.lines(source.text, language, self._coloured), True

    def _difference(self, view: View, number: int, source: Text) -> list[Line]:
        against = view.history.rows[number].against
        if against is None:
            return [((" the baseline beat nobody", "dim"),)]
        other = view.files.source(against)
        if other is None:
            return [((f" the source of #{against} is not on record", "dim"),)]
        if self._diff is None or self._diff[:2] != (source.sha256, other.sha256):
            self._diff = (source.sha256, other.sha256, _diff_lines(other.text, source.text, against, number))
        return self._diff[2]

    def _coloured(self) -> None:
        """Called from the highlighting thread: draw in the app's own."""
        if self.is_attached and self.app.is_running:
            self.call_later(self.draw)


def _shifted(line: Line, left: int) -> Line:
    if left <= 0:
        return line
    out: list[tuple[str, str]] = []
    for text, tone in line:
        out.append((text[left:], tone))
        left = max(0, left - len(text))
    return tuple(out)


def _diff_lines(old: str, new: str, old_number: int, new_number: int) -> list[Line]:
    lines: list[Line] = []
    limit = 20_000  # lines; difflib is quadratic where little is alike
    before, after = old.splitlines()[:limit], new.splitlines()[:limit]
    for line in difflib.unified_diff(before, after, f"#{old_number}", f"#{new_number}", n=3, lineterm=""):
        tone = {"+": "added", "-": "removed", "@": "accent"}.get(line[:1], "")
        lines.append(((fmt.visible(line), tone),))
    return lines or [((" the sources are equal", "dim"),)]


PLUGIN: type[Pane] = Best
