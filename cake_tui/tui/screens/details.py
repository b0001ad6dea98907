"""Details: all on record about one candidate: why, schedule, how it ended, times, findings, build log, source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.binding import Binding

from cake_tui import figures
from cake_tui.model import event as ev
from cake_tui.model import layout
from cake_tui.model.ending import meaning_of, reason_of
from cake_tui.model.outcome import Rejected
from cake_tui.model.row import Row
from cake_tui.store.line import decided
from cake_tui.tui import format as fmt
from cake_tui.tui import sections
from cake_tui.tui.format import Line
from cake_tui.tui.highlight import source_diff
from cake_tui.tui.record import Record
from cake_tui.tui.screens.dialog import Dialog
from cake_tui.tui.views import View

LOG_ENDS = 40  # lines of a log's head and tail
LINES_MOST = 5_000  # of a source or a program
INDENT = "   "


class Details(Dialog):
    """One document that scrolls; `section` is where it opens. The view is the moment at which it was opened."""

    BINDINGS = [
        Binding("enter,q", "dismiss_dialog", "close", show=False),
        Binding("tab", "section(1)", "next section", show=False),
        Binding("shift+tab", "section(-1)", "previous section", show=False),
        Binding("left_square_bracket", "other(-1)", "the candidate before", show=False),
        Binding("right_square_bracket", "other(1)", "the candidate after", show=False),
        Binding("d", "diff", "source, or its diff from the base", show=False),
    ]

    def __init__(self, view: View, number: int, section: str = "") -> None:
        super().__init__(view.ascii)
        self.view = view
        self.number = number
        self.section = section
        self.as_diff = False
        self._made: tuple[int, int, bool] | None = None
        self._lines: list[Line] = []
        self._starts: dict[str, int] = {}

    def caption(self) -> str:
        """Which candidate."""
        return f"candidate {self.number} of {fmt.visible(self.view.name, 40)}"

    def hint(self) -> str:
        """Keys."""
        return "tab section  [ ] other  d diff  esc close"

    def lines(self, width: int) -> list[Line]:
        """The document, made once a candidate and width."""
        key = (self.number, width, self.as_diff)
        if key != self._made:
            self._made, self._lines = key, []
            self._starts = {}
            row = self.view.history.rows[self.number]
            self._lines += _head(row, self.view, width)
            record = Record(self.view, row)
            for name, write in _SECTIONS:
                found = write(record, self.view, width)
                self._add(name, found)
            self._add("source", self._source(row))
            if self.section in self._starts:
                self.top, self.section = self._starts[self.section], ""
        return [fmt.shifted(line, self.left) for line in self._lines]

    def action_section(self, by: int) -> None:
        """The next heading, or the one before."""
        starts = sorted(self._starts.values())
        after = [at for at in starts if at > self.top] if by > 0 else [at for at in reversed(starts) if at < self.top]
        self.top = after[0] if after else 0
        self.draw()

    def action_other(self, by: int) -> None:
        """The candidate before or after."""
        there = self.number + by
        if 0 <= there < len(self.view.history.rows):
            self.number, self.top, self.left = there, 0, 0
        self.draw()

    def action_diff(self) -> None:
        """The source, or what it changed in its base's."""
        self.as_diff = not self.as_diff
        self.lines(self.box.size.width)
        self.top = self._starts.get("source", 0)
        self.draw()

    def _add(self, name: str, found: list[Line]) -> None:
        if found:
            self._lines.append(())
            self._starts[name] = len(self._lines)
            self._lines += [((f" ▾ {name}", "accentword"),), *found]

    def _source(self, row: Row) -> list[Line]:
        own = self.view.files.source(row.number)
        if own is None:
            return [_dim("no source on record: it was refused on paper, or its files were pruned")]
        known = self.view.files.identity(own)
        sha256 = row.source_sha256 if known is None else known
        told = figures.digest(sha256) if sha256 else "changed since it was measured" if known == "" else "no kernel id"
        lines = figures.count(own.text.count("\n"))
        head = [_dim(f"{own.path.name}, {lines} lines, {fmt.visible(told)}")]
        if self.as_diff:
            base = self.view.files.source(row.proposal.base)
            if base is None or row.number == 0:
                return [*head, _dim(f"the source of its base, #{row.proposal.base}, is not on record")]
            return [*head, *source_diff(base.text, own.text, row.proposal.base, row.number)]
        shown = own.text.splitlines()
        cut = [_dim(f"… {len(shown) - LINES_MOST} lines more")] if len(shown) > LINES_MOST else []
        return [*head, *(((INDENT + fmt.visible(line), ""),) for line in shown[:LINES_MOST]), *cut]


# -- sections ------------------------------------------------------------------------------------------------


def _dim(text: str) -> Line:
    return ((INDENT + text, "dim"),)


def _field(name: str, text: str, width: int, tone: str = "") -> list[Line]:
    """A name and a text that is wrapped beside it."""
    pieces = fmt.wrap(text, max(10, width - 16))
    return [
        ((fmt.pad(INDENT + (name if at == 0 else ""), 15), "dim"), (piece, tone)) for at, piece in enumerate(pieces)
    ]


def _head(row: Row, view: View, width: int) -> list[Line]:
    glyph, word, tone = fmt.outcome_mark(row.ended_as)
    spans: list[tuple[str, str]] = [(f" {glyph} {word}", tone + ("word" if tone in ("good", "bad", "warn") else ""))]
    if row.time_us is not None:
        spans.append((f"  {figures.time(row.time_us)}", "strong"))
        rate = figures.rate(view.flops, row.time_us)
        spans.append((f"  {rate}" if rate != figures.UNKNOWN else "", ""))
    if row.gain is not None and row.number and row.against is not None:
        spans.append((f"  {figures.gain(row.gain)} against #{row.against}", ""))
    if row.number == view.history.incumbent:
        spans.append(("  the best so far", "goodword"))
    lines: list[Line] = [tuple(spans)]
    for told, tone in ((meaning_of(view.history, row), ""), (reason_of(row), "dim" if row.verdict else "")):
        if told:
            lines += [((f" {text}", tone),) for text in fmt.wrap(fmt.visible(told), max(10, width - 2))[:12]]
    return lines


def _why(record: Record, view: View, width: int) -> list[Line]:
    row = record.row
    proposal = row.proposal
    lines = _field("moves", fmt.visible(proposal.text), width, "strong")
    if row.number:
        lines += _field("base", f"#{proposal.base}", width)
    who = fmt.visible(f"{proposal.chosen_by}, by {proposal.who}" if proposal.who else proposal.chosen_by, 200)
    lines += _field("chosen by", who, width)
    if proposal.reason:
        lines += _field("reason", fmt.visible(proposal.reason, 4000), width)
    if proposal.request is not None:
        lines += _field("request", fmt.visible(proposal.request, 100), width)
    when = f"round {row.round}" + (f", {row.level} move" if row.level else "") + (", run as an audit" * row.audit)
    lines += _field("when", when + (f", {figures.duration(row.elapsed_s)} into the run" * bool(row.elapsed_s)), width)
    return lines


def _schedule(record: Record, view: View, width: int) -> list[Line]:
    schedule = record.row.schedule
    if schedule is None:
        return [_dim("none: the moves gave no schedule")]
    base = view.history.rows[record.row.proposal.base] if record.row.number else None
    before = base.schedule if base is not None else None
    lines: list[Line] = []
    renamed = before is not None and before.structure != schedule.structure
    was = f"  was {fmt.visible(before.structure, 60)}" if before is not None and renamed else ""
    lines.append(
        ((fmt.pad(INDENT + "structure", 15), "dim"), (fmt.visible(schedule.structure, 60), "strong"), (was, "warn"))
    )
    old = dict(before.knobs) if before is not None else {}
    for name, value in schedule.knobs:
        changed = before is not None and old.get(name) != value
        told = f"  was {fmt.visible(old[name], 60)}" if changed and name in old else "  new" if changed else ""
        lines.append((
            (fmt.pad(INDENT + fmt.visible(name, 40), 15), "dim"),
            (fmt.visible(value, 60), "strong" if changed else ""),
            (told, "warn"),
        ))  # fmt: skip
    gone = sorted({*old} - {name for name, _ in schedule.knobs})
    if gone:
        lines += _field("left out", ", ".join(fmt.visible(name, 40) for name in gone), width)
    return lines


def _ending(record: Record, view: View, width: int) -> list[Line]:
    ended = record.last(ev.CandidateEnded)
    if ended is None:
        return [_dim(f"in flight: its last step on record is {fmt.visible(record.row.step, 40)}")]
    outcome = ended.outcome
    if isinstance(outcome, Rejected) and outcome.diagnostics:
        lines: list[Line] = []
        for diagnostic in outcome.diagnostics:
            lines += _field("refused by", fmt.visible(diagnostic.text), width, "bad")
        return lines
    told = {name: value for name, value in sections.known(outcome).items() if value != 0}
    for name in ("kind", "verdict", "avg_us", "reason"):  # at the head
        told.pop(name, None)
    log = told.pop("log", None)
    lines = sections.entries(told, INDENT, width)
    if isinstance(log, str):
        lines += [((INDENT + fmt.visible(text), "dim"),) for text in _ends(log)]
    for lost in record.all(ev.StepLost):
        lines.append(_dim(f"the step after {fmt.visible(lost.step, 40)} was lost with its engine"))
    for replaced in record.all(ev.EvaluatorReplaced):
        lines += _field("evaluator", f"replaced: {fmt.visible(replaced.reason)}", width, "warn")
    return lines


def _times(record: Record, view: View, width: int) -> list[Line]:
    row = record.row
    lines: list[Line] = []
    if row.predicted_us is not None:
        lines += _field("predicted", f"{figures.time(row.predicted_us)} by the cost model", width)
    coarse = record.last(ev.Coarse)
    if coarse is not None:
        runs = ", ".join(figures.time(one) for one in coarse.runs_us[:12])
        gain = f"; {figures.gain(coarse.gain)} against #{coarse.against}" if coarse.against is not None else ""
        lines += _field("coarse", f"{figures.time(coarse.avg_us)}, the median of {runs}{gain}", width)
        clocks = [one.after for one in coarse.series if one.after is not None]
        if clocks:
            seen = {name: value for name, value in sections.known(clocks[-1]).items() if not name.endswith("mono")}
            text = ", ".join(f"{name} {sections.scalar(value)}" for name, value in seen.items())
            lines += _field("clock", fmt.visible(text), width)
    for gate in record.all(ev.GateEnded):
        result = gate.result
        told = f"{decided(result)}: {figures.gain(result.gain)}, at least {figures.gain(result.gain_low)}"
        told += f", after {result.series} series in {result.looks} looks against #{gate.against}"
        codes = f"; stale codes {' '.join(result.stale_codes)}" if result.stale_codes else ""
        lines += _field("gate", fmt.visible(f"{told}; {result.reason}{codes}"), width)
    best_us = view.history.incumbent_us
    if row.number == view.history.incumbent and best_us is not None and view.trail.timed_beside is not None:
        others = "by itself" if view.trail.timed_beside == row.number else f"beside #{view.trail.timed_beside}"
        told = f"{figures.time(best_us)}, {others}, as the headline has it; the time above is from its own gate"
        lines += _field("timed again", told, width)
    for match in record.all(ev.PlayedOff):
        said = decided(match.result) if match.result is not None else "did not live to be gated"
        lines += _field("play-off", f"against #{match.against}: {said}", width)
    for guard in record.all(ev.GuardFired):
        told = f"{guard.stale.code}: {guard.stale.saw} → {guard.stale.reaction}"
        lines += _field("stale", fmt.visible(told), width, "warn")
    return lines


def _agreement(record: Record, view: View, width: int) -> list[Line]:
    checked = record.last(ev.CheckEnded)
    return [] if checked is None else sections.entries(sections.known(checked.agreement), INDENT, width)


def _findings(record: Record, view: View, width: int) -> list[Line]:
    """What the profiler led to, where it was asked, else what was said when the candidate ended."""
    ended, profiled = record.last(ev.CandidateEnded), record.last(ev.Profiled)
    found = dict(profiled.findings).get(record.row.number, ()) if profiled is not None else ()
    found = found or (ended.findings if ended is not None else ())
    return sections.findings([sections.as_told(finding) for finding in found], width)


def _profile(record: Record, view: View, width: int) -> list[Line]:
    number, ended = record.row.number, record.last(ev.CandidateEnded)
    found = ended.profile if ended is not None else None
    lines: list[Line] = []
    for event in record.all(ev.Profiled):
        found = dict(event.profiles).get(number, found)
        if number in dict(event.failed):
            lines += _field("profiler", fmt.visible(dict(event.failed)[number]), width, "warn")
    if number in view.history.wanted_profiles:
        lines += _field("profiler", "asked for, after this round", width, "accent")
    for look in record.all(ev.Sanitized):
        told = look.refused or ("nothing found" if not look.errors else f"{look.errors} errors")
        lines += _field(fmt.visible(look.tool, 12), fmt.visible(told), width, "bad" if look.errors else "")
        lines += [((INDENT * 2 + fmt.visible(one), "bad"),) for one in look.complaints[:20]]
    if found is None:
        return [*lines, _dim("no profile on record: only measured candidates have one")]
    return [*lines, *sections.entries(sections.known(found), INDENT, width)]


def _build(record: Record, view: View, width: int) -> list[Line]:
    lines: list[Line] = []
    built = record.last(ev.BuildEnded)
    if built is not None:
        cached = ", from the cache" if built.cached else ""
        lines += _field("built", f"in {figures.duration(built.seconds, exact=True)}{cached}", width)
        lines += sections.entries(sections.known(built.facts), INDENT, width)
    log = view.files.text(record.row.number, layout.BUILD_LOG)
    if log is not None:
        lines.append(_dim(f"{layout.BUILD_LOG}:" if log.text.strip() else f"{layout.BUILD_LOG} is empty"))
        lines += [((INDENT + fmt.visible(text), ""),) for text in _ends(log.text)]
    return lines


def _program(record: Record, view: View, width: int) -> list[Line]:
    found = view.files.program(record.row.number)
    return (
        [] if found is None else [((INDENT + fmt.visible(line), ""),) for line in found.text.splitlines()[:LINES_MOST]]
    )


def _files(record: Record, view: View, width: int) -> list[Line]:
    folder = view.files.candidate(record.row.number)
    lines: list[Line] = []
    for path in _listed(folder):
        lines.append(((fmt.pad(INDENT + fmt.visible(path.name, 60), 24), ""), (_size(path), "dim")))
    if lines:
        lines.insert(0, _dim(fmt.visible(folder, 400)))
    for path in _listed(folder):
        if path.stem in ("prompt", "reply"):
            text = view.files.text(record.row.number, path.name)
            lines.append(((f"{INDENT}{fmt.visible(path.name, 60)}:", "accent"),))
            shown = _ends(text.text) if text is not None else []
            lines += [((INDENT + piece, ""),) for line in shown for piece in fmt.wrap(fmt.visible(line), width - 4)]
    return lines


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _size(path: Path) -> str:
    try:
        return f"{figures.count(path.stat().st_size)} bytes"
    except OSError:
        return "not readable"


def _ends(text: str) -> list[str]:
    """Head and tail of a text by lines."""
    found = text.splitlines()
    if len(found) <= 2 * LOG_ENDS:
        return found
    return [*found[:LOG_ENDS], f"… {len(found) - 2 * LOG_ENDS} lines …", *found[-LOG_ENDS:]]


_SECTIONS: tuple[tuple[str, Callable[[Record, View, int], list[Line]]], ...] = (
    ("why it was tried", _why), ("schedule", _schedule), ("how it ended", _ending), ("times", _times),
    ("findings", _findings), ("profile", _profile), ("agreement", _agreement), ("build", _build), ("files", _files),
    ("program", _program),
)  # fmt: skip
