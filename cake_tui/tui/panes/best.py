"""Best kernel: the source in best/ with its hash, its diff against what it beat, or its program text."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.files import Text
from cake_tui.tui.format import Line, Span
from cake_tui.tui.highlight import Highlighter, source_diff
from cake_tui.tui.pane import Copied, Pane
from cake_tui.tui.views import View


class Best(Pane):
    """Highlighted once per change; plain beyond 5,000 lines."""

    order: ClassVar[int] = 1
    title: ClassVar[str] = "best kernel"
    help: ClassVar[str] = "the fastest accepted source as it is in best/, its diffs and its program text"
    finds: ClassVar[str] = "search the text"

    BINDINGS = [
        Binding("d", "diff", "diff against what it beat, against the baseline, source", id="best.diff"),
        Binding("r", "program", "program text (IR), source", id="best.program"),
        Binding("left,h", "sideways(-8)", "scroll left", id="best.left", show=False),
        Binding("right,l", "sideways(8)", "scroll right", id="best.right", show=False),
    ]

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.mode = "source"  # or "program", "diff"
        self.against: int | None = None  # of the diff
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
        """Candidate, structure and kernel id of the file shown."""
        number = view.history.incumbent
        if number is None:
            return ()
        source = self._source
        row = view.history.rows[number]
        structure = row.schedule.structure if row.schedule else ""
        told = _digest(view, row, source)
        mode = {"source": "", "program": "program · ", "diff": f"diff from #{self.against} to "}[self.mode]
        return ((f"{mode}#{number} {fmt.visible(structure, 24)} · ", "dim"), told)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """The lines of the current mode."""
        if view.history.incumbent != self._incumbent:
            self._incumbent, self.top, self.left = view.history.incumbent, 0, 0
            if self.mode == "diff":
                self.against = next(iter(self._olders(view)), None)
        if self._incumbent is None:
            return [((" no accepted kernel yet", "dim"),)]
        lines, numbered = self._lines(view)
        lines = self.marked(lines)
        size = len(str(len(lines))) if numbered else 0
        out: list[Line] = []
        for index in self.window(len(lines), height):
            number: Line = ((f"{index + 1:>{size}} ", "dim"),) if numbered else ((" ", ""),)
            out.append((*number, *fmt.shifted(lines[index], self.left)))
        return out

    def settle(self) -> None:
        """Wait until the highlighting is done and draw it."""
        self._highlighter.settle()
        self.draw()

    def opened(self, view: View) -> int | None:
        """The best itself."""
        return view.history.incumbent

    def copied(self, view: View) -> Copied | None:
        """The text of the current mode."""
        number, source = view.history.incumbent, self._source
        if number is None or source is None:
            return None
        if self.mode == "source":
            return Copied(f"source of #{number}", source.text, source.path)
        program = view.files.program(number) if self.mode == "program" else None
        if program is not None:
            return Copied(f"program of #{number}", program.text, program.path)
        lines, _ = self._lines(view)
        return Copied(f"{self.mode} of #{number}", "\n".join("".join(text for text, _ in line) for line in lines))

    def action_diff(self) -> None:
        """From the source to its diffs and back."""
        olders = self._olders(self.view) if self.view is not None else []
        if self.mode != "diff" and olders:
            self.mode, self.against = "diff", olders[0]
        elif self.mode == "diff" and self.against in olders[:-1]:
            self.against = olders[olders.index(self.against) + 1]
        else:
            self.mode = "source"
        self.top = self.left = 0
        self.draw()

    def action_program(self) -> None:
        """The program text, or the source again."""
        self.mode = "source" if self.mode == "program" else "program"
        self.top = self.left = 0
        self.draw()

    def _olders(self, view: View) -> list[int]:
        """What the best is held against: the candidate it beat, and the baseline."""
        number = view.history.incumbent
        if not number:
            return []
        beaten = view.history.rows[number].against
        return [beaten, 0] if beaten else [0]

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
        if self.against is None:
            return [((" the baseline beat nobody", "dim"),)]
        other = view.files.source(self.against)
        if other is None:
            return [((f" the source of #{self.against} is not on record", "dim"),)]
        if self._diff is None or self._diff[:2] != (source.sha256, other.sha256):
            self._diff = (source.sha256, other.sha256, source_diff(other.text, source.text, self.against, number))
        return self._diff[2]

    def _coloured(self) -> None:
        """Called from the highlighting thread: draw in the app's own."""
        if self.is_attached and self.app.is_running:
            self.call_later(self.draw)


def _digest(view: View, row: Row, source: Text | None) -> Span:
    """The kernel id that export, verify and show give too; a file that is not the one on record says so."""
    if source is None:
        return "no file", "warn"
    known = view.files.identity(source)
    if known == "":
        return "the file was changed since it was measured", "warn"
    sha256 = known or row.source_sha256
    return (fmt.visible(figures.digest(sha256)), "accent") if sha256 else ("no kernel id on record", "dim")


PLUGIN: type[Pane] = Best
