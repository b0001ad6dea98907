"""What the inject dialog knows of a move while it is typed: completions, legal values, refusal, what it would do."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import msgspec

from cake_tui import figures, ir
from cake_tui import menu as menus
from cake_tui.errors import Ended, UserError
from cake_tui.ir import cost, laws
from cake_tui.menu import Action, Menu
from cake_tui.menu.action import spelled
from cake_tui.model.diagnostic import Diagnostic
from cake_tui.model.ending import word_of
from cake_tui.model.history import History
from cake_tui.model.outcome import Rejected
from cake_tui.model.schedule import Schedule

_LAST_WORD = re.compile(r"[^+]*$")
FAMILIAR = "apply_register_block"  # the action that examples are taken from first
MOST_WHOLE = 64  # whole moves offered for one action


@dataclass(frozen=True)
class Judgement:
    """Whether a text is a legal move from the incumbent now; `lines` say why not, or what it makes, `note` in short."""

    legal: bool
    text: str
    lines: tuple[str, ...]
    note: str = ""
    expected: float | None = None  # the time that the cost model expects, over the incumbent's
    known: bool = False  # it would be answered from the record

    @property
    def place(self) -> tuple[int, float]:
        """Sorts what is offered: the best expected first, what the record answers and what is refused last."""
        if not self.legal:
            return 4, 0.0
        if self.known:
            return 3, 0.0
        return (0, self.expected) if self.expected is not None else (1, 0.0)


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
            return [(whole, action) for whole in sorted(self.whole(text), key=self._place)] if action else []
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

    def _place(self, text: str) -> tuple[int, float]:
        found = self.known(text)
        return found.place if found is not None else (2, 0.0)  # not judged yet

    def examples(self) -> Iterator[str]:
        """Whole moves to show somebody who has typed nothing: the best expected of an action comes after all of it."""
        named = sorted(self.menu.actions, key=lambda action: action.name != FAMILIAR)
        for action in (action for action in named if action.usable and action.parameters):
            yield from self.whole(f"{action.name}(")

    def example(self, text: str) -> str:
        """The best expected of the moves that are offered beside one, once all are judged; empty where none is new."""
        beside = self.whole(text)
        found = [(judged.place, one) for one in beside if (judged := self.known(one)) is not None]
        if len(found) < len(beside) or not found or min(found)[0][0] > 1:
            return ""
        return min(found)[1]

    def instead(self, text: str) -> list[str]:
        """Of the moves that are offered in place of a refused one, the two legal ones with the values nearest to its.

        Only those that have been judged are known.
        """
        values = _values(text)
        beside = ((one, self.known(one)) for one in self.whole(text) if one != text)
        legal = [one for one, judged in beside if judged is not None and judged.legal and not judged.known]
        return sorted(legal, key=lambda one: _far(values, _values(one)))[:2] if values else []

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
            told = f"#{number} has this already: it would be answered from the record"
            return Judgement(True, whole, (told,), "has it", known=True)
        found = self._on_paper(whole, schedule, changed)
        if not found.legal:
            return found
        made = f"from #{number}, {level}: {', '.join(changes(schedule, changed))}"
        return replace(found, lines=(made, *found.lines))

    def _on_paper(self, whole: str, old: Schedule, new: Schedule) -> Judgement:
        """What the laws say against the program, else what record and cost model say of it."""
        problem, device = self.history.problem, self.history.device
        try:
            program = ir.full_build(problem, new, device)
            diagnostics = laws.verify(program, device, accumulation=problem.accumulation)
            if diagnostics:
                return Judgement(False, whole, tuple(map(_refused, diagnostics[:3])))
            lowered = ir.lower(program, device.target, device.arch, problem.shapes)
            before = ir.full_build(problem, old, device)
        except Ended as ended:
            return Judgement(False, whole, _refusal(ended))
        known = self.history.by_source.get(lowered.sha256)
        if known is not None:
            row = self.history.rows[known]
            ended_as = word_of(row.ended_as)
            told = f"the same source as #{known} ({ended_as}): it would be answered from the record"
            note = f"same source as #{known}, {ended_as}"
            return Judgement(True, whole, ("the laws accept it", told), note, known=True)
        ratio, expected, bound_by = _foretold(
            *(cost.estimate(each, device, problem.shapes) for each in (before, program))
        )
        bound = f" (bound by {bound_by})" if bound_by else ""
        return Judgement(True, whole, ("the laws accept it", f"the cost model {expected}{bound}"), expected, ratio)

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
        return tuple(map(_refused, outcome.diagnostics))
    return (outcome.reason or type(outcome).__name__,)


def _refused(diagnostic: Diagnostic) -> str:
    """A refusal without the law's nearest value, which need not be on offer: the dialog names moves that are."""
    return msgspec.structs.replace(diagnostic, nearest=None).text


def _values(text: str) -> list[str]:
    """The values of the last move of a text."""
    inside = text.rpartition("+")[2].partition("(")[2].partition(")")[0]
    return [part.rpartition("=")[2].strip() for part in inside.split(",")] if inside else []


def _far(asked: Sequence[str], offered: Sequence[str]) -> tuple[int, float, int]:
    """How far the values of two moves are apart: how many differ, by which factors; the smaller ones first."""
    differing = [(one, other) for one, other in zip_longest(asked, offered, fillvalue="") if one != other]
    factors = 0.0
    for one, other in differing:
        numbers = one.isdecimal() and other.isdecimal() and int(one) and int(other)
        factors += abs(math.log(int(other) / int(one))) if numbers else 1.0
    return len(differing), factors, sum(int(value) for value in offered if value.isdecimal())


def _foretold(before: cost.Estimate | None, after: cost.Estimate | None) -> tuple[float | None, str, str]:
    """The cost model on the two programs: their ratio, that in words, what binds; not asked what it would not say."""
    if before is None or after is None or before.abstains or after.abstains or before.predicted_us <= 0:
        return None, "abstains", ""
    ratio = after.predicted_us / before.predicted_us
    share = max(ratio, 1 / ratio) - 1
    if share < 0.005:
        return ratio, "expects no difference", after.bound_by
    if ratio >= 2:
        return ratio, f"expects {figures.ratio(ratio, 2)} the time", after.bound_by
    return ratio, f"expects about {100 * share:.0f} % {'slower' if ratio > 1 else 'faster'}", after.bound_by


def changes(old: Schedule, new: Schedule) -> list[str]:
    """``block_k 16 → 32`` for each knob; a new structure first."""
    lines = [] if old.structure == new.structure else [f"{old.structure} → {new.structure}"]
    before, after = dict(old.knobs), dict(new.knobs)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            lines.append(f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}")
    return lines
