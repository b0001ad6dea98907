"""What the inject dialog knows of a move while it is typed: completions, legal values, refusal, what it would do."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from cake_tui import figures, ir
from cake_tui import menu as menus
from cake_tui.errors import Ended, UserError
from cake_tui.ir import cost, laws
from cake_tui.menu import Action, Menu
from cake_tui.menu.action import spelled
from cake_tui.model.ending import word_of
from cake_tui.model.history import History
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import Schedule

_LAST_WORD = re.compile(r"[^+]*$")
MOST_WHOLE = 64  # whole moves offered for one action


@dataclass(frozen=True)
class Judgement:
    """Whether a text is a legal move from the incumbent now; `lines` say why not, or what it makes, `note` in short."""

    legal: bool
    text: str
    lines: tuple[str, ...]
    note: str = ""


class Moves:
    """A session's menu and the schedule that an injected move starts from; judgements are kept until that changes."""

    def __init__(self, history: History) -> None:
        """Raises UserError where actions.toml cannot be read."""
        self.history = history
        self.menu: Menu = menus.load(None, history.problem, history.device).without(history.disabled_actions)
        self._judged: dict[str, Judgement] = {}
        self._judged_from: object = None

    @property
    def base(self) -> tuple[int, Schedule] | None:
        """The incumbent and its schedule; None before candidate 0 is measured."""
        number = self.history.incumbent
        schedule = self.history.rows[number].schedule if number is not None else None
        return None if number is None or schedule is None else (number, schedule)

    def completions(self, text: str) -> list[tuple[str, Action]]:
        """(the whole text completed, the action) for the move being typed, those that begin like it first."""
        before, word = _split(text)
        name = word.strip().partition("(")[0].strip()
        if "(" in word:
            action = self.menu.action(name)
            return [(whole, action) for whole in self.whole(text)] if action is not None else []
        found = [action for action in self.menu.actions if name.lower() in action.name.lower()]
        found.sort(key=lambda action: (not action.usable, not action.name.startswith(name), action.name))
        lead = f"{before} " if before else ""
        return [(f"{lead}{action.name}({'' if action.parameters else ')'}", action) for action in found]

    def whole(self, text: str) -> list[str]:
        """The move being typed with all legal values that fit what is there of its arguments; all, once it is whole."""
        before, word = _split(text)
        name, opened, typed = word.strip().partition("(")
        action = self.menu.action(name.strip()) if opened else None
        if action is None:
            return []
        given = [] if ")" in typed else [part.rpartition("=")[2].strip() for part in typed.split(",")]
        values = [[spelled(value) for value in parameter.values] for parameter in action.parameters]
        for index, part in enumerate(given[: len(values)]):
            last = index == len(given) - 1
            kept = [value for value in values[index] if (value.startswith(part) if last else value == part)]
            if not kept:  # no value is like this: from here on all are offered
                break
            values[index] = kept
        lead = f"{before} " if before else ""
        wholes = itertools.islice(itertools.product(*values), MOST_WHOLE)
        return [f"{lead}{action.name}({', '.join(chosen)})" for chosen in wholes]

    def known(self, text: str) -> Judgement | None:
        """A judgement made before from the same incumbent."""
        if self._judged_from != self.history.incumbent:
            self._judged_from, self._judged = self.history.incumbent, {}
        return self._judged.get(text)

    def judge(self, text: str) -> Judgement:
        """Parse the moves, apply them to the incumbent's schedule as the loop will, ask laws, record and cost model."""
        found = self.known(text)
        if found is None:
            found = self._judged[text] = self._judge(text)
        return found

    def _judge(self, text: str) -> Judgement:
        if not text.strip():
            return Judgement(False, text, ())
        try:
            moves = self.menu.parse_moves(text)
        except UserError as error:
            return Judgement(False, text, tuple(str(error).splitlines()))
        whole = " + ".join(move.text for move in moves)
        if any(self.menu.reverts(move) for move in moves):
            return self._revert(whole, len(moves))
        if self.base is None:
            return Judgement(False, whole, ("there is no measured kernel to start from yet",))
        number, schedule = self.base
        try:
            changed, level = self.menu.apply(schedule, moves)
        except Ended as ended:
            return Judgement(False, whole, _refusal(ended))
        if changed == schedule:
            return Judgement(
                True, whole, (f"#{number} has this already: it would be answered from the record",), "has it"
            )
        refused, foretold, note = self._on_paper(schedule, changed)
        if refused:
            return Judgement(False, whole, refused)
        made = f"from #{number}, {level}: {', '.join(changes(schedule, changed))}"
        return Judgement(True, whole, (made, *foretold), note)

    def _on_paper(self, old: Schedule, new: Schedule) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """What the laws say against the program, what record and cost model say of it, and that in short."""
        problem, device = self.history.problem, self.history.device
        try:
            program = ir.full_build(problem, new, device)
            diagnostics = laws.verify(program, device, accumulation=problem.accumulation)
            if diagnostics:
                return tuple(diagnostic.text for diagnostic in diagnostics[:3]), (), ""
            lowered = ir.lower(program, device.target, device.arch, problem.shapes)
            before = ir.full_build(problem, old, device)
        except Ended as ended:
            return _refusal(ended), (), ""
        known = self.history.by_source.get(lowered.sha256)
        if known is not None:
            row = self.history.rows[known]
            ended_as = word_of(row.ended_as)
            told = f"the same source as #{known} ({ended_as}): it would be answered from the record"
            return (), ("the laws accept it", told), f"same source as #{known}, {ended_as}"
        expected, bound_by = _foretold(*(cost.estimate(each, device, problem.shapes) for each in (before, program)))
        bound = f" (bound by {bound_by})" if bound_by else ""
        return (), ("the laws accept it", f"the cost model {expected}{bound}"), expected

    def _revert(self, whole: str, count: int) -> Judgement:
        if count > 1:
            return Judgement(False, whole, ("revert_last() stands alone: it rewrites no schedule",))
        if self.history.incumbent in (None, 0):
            return Judgement(False, whole, ("there is nothing before candidate 0",))
        return Judgement(True, whole, ("the next round's proposals start from the incumbent's parent",))


def _split(text: str) -> tuple[str, str]:
    """The moves already written (with their ``+``) and the one being typed."""
    found = _LAST_WORD.search(text)
    at = found.start() if found else 0
    return text[:at].rstrip(), text[at:]


def _refusal(ended: Ended) -> tuple[str, ...]:
    outcome = ended.outcome
    if isinstance(outcome, Rejected) and outcome.diagnostics:
        return tuple(diagnostic.text for diagnostic in outcome.diagnostics)
    return (outcome.reason or type(outcome).__name__,)


def _foretold(before: cost.Estimate | None, after: cost.Estimate | None) -> tuple[str, str]:
    """The cost model on the two programs, against each other, and what binds; it is not asked what it would not say."""
    if before is None or after is None or before.abstains or after.abstains or before.predicted_us <= 0:
        return "abstains", ""
    ratio = after.predicted_us / before.predicted_us
    share = max(ratio, 1 / ratio) - 1
    if share < 0.005:
        return "expects no difference", after.bound_by
    if ratio >= 2:
        return f"expects {figures.ratio(ratio, 2)} the time", after.bound_by
    return f"expects about {100 * share:.0f} % {'slower' if ratio > 1 else 'faster'}", after.bound_by


def changes(old: Schedule, new: Schedule) -> list[str]:
    """``block_k 16 → 32`` for each knob; a new structure first."""
    lines = [] if old.structure == new.structure else [f"{old.structure} → {new.structure}"]
    before, after = dict(old.knobs), dict(new.knobs)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            lines.append(f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}")
    return lines
