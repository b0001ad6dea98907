"""The default agent: a bandit over structures and actions, a small Bayesian-style probe over numbers.

Structure and numbers are separate decisions. Each round gives some slots to structures (never tried ones; one
change of structure when rounds of numbers brought nothing), keeps slots for structures on trial from their own
best, and gives the rest to the numbers of structures drawn by their best standing and weight. Numbers are picked
by what a finding suggests, by the weight of actions, or by the probe's upper bound, from several configurations
at once. How far the bound reaches is `exploring`: it grows with rounds without a win and falls after one. While a
structure has few measurements the probe starts from what the cost model expects, as far as it was right so far.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cake_tui.agents import Agent, AgentFactory
from cake_tui.agents._forecast import YOUNG, Forecast
from cake_tui.agents._record import Record, Tried, standing_of
from cake_tui.agents._situation import Situation, is_explored, structure_of
from cake_tui.agents._space import Space, Step
from cake_tui.agents._surrogate import Array, Surrogate
from cake_tui.errors import UserError
from cake_tui.menu import Menu
from cake_tui.model.history import History
from cake_tui.model.move import ChosenBy, Proposal
from cake_tui.model.row import Row
from cake_tui.model.schedule import Schedule

NAME = "bandit"
BASES = 3  # configurations of a structure in play at a time
TOP, LATEST, FAILURES = 24, 16, 8  # rows that the probe learns from: the best, the latest, failures
JOINED, JOINED_MOST = 24, 3  # random joint moves a base, and how many moves one joins
JOINED_YOUNG = 6  # the same while a structure has few measurements
TELLING = 0.1  # ln units by which the cost model sets first settings of a structure apart
ASKED = 32  # options that the cost model is asked about
PROMISE = 4.0  # doublings of its tries that a structure's learning curve is drawn out by
OWED, OWED_TRIES = 3.0, 12.0  # optimism (ln units, times exploring) for a structure with few tries
WARMTH_LEAST, WARMTH = 0.05, 0.5  # ln units by which structures may differ and still share the slots
EASE = 1.0  # ln units below the best within which standings count in full
REACH_LATE, REACH_LEAST, REACH = 0.3, 0.4, 1.0  # how many standard deviations the probe hopes for
CLOSE = 0.03  # ln units: what counts as near the best in the last fifth
TAKES = 4  # settings that may turn out to be refused until a slot is given to another structure
BY_WEIGHT = 0.3  # share of number slots that go by the weight of actions
BY_FINDING = 0.5  # most a finding of full confidence and weight gets


class Pool:
    """Untried settings of one structure with what the probe expects of each; picks thin it out."""

    def __init__(
        self, options: list[tuple[Row, Step]], surrogate: Surrogate, reach: float, best: float,
        prior: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        """With a `prior`, one for each option, the surrogate speaks of what standings have beyond theirs."""
        self.options = options
        self.surrogate = surrogate
        self.best = best
        self.foreseen = prior is not None
        self._vectors = surrogate.vectors([step.schedule for _, step in options])
        self.mean, self.spread = surrogate.predict(self._vectors)
        if prior is not None:
            self.mean = self.mean + np.asarray(prior)
        self._score: Array = self.mean + reach * self.spread
        self._reach = reach

    def take(self, actions: Iterable[str] | None = None) -> tuple[Row, Step, float, float] | None:
        """Return base, step, mean and spread of the best option, of single moves of `actions` where given."""
        names = None if actions is None else frozenset(actions)
        score = self._score
        if names is not None:
            fits = [len(s.moves) == 1 and s.moves[0].action in names for _, s in self.options]
            score = np.where(fits, score, -np.inf)
        if not len(score) or not np.isfinite(score.max()):
            return None
        index = int(score.argmax())
        base, step = self.options[index]
        # What is alike would teach the same: the rest of the round looks elsewhere.
        self._score = self._score - self._reach * self.spread * self.surrogate.alike(self._vectors, index)
        self._score[index] = -np.inf
        return base, step, float(self.mean[index]), float(self.spread[index])


class BanditAgent:
    """See the module's text. What it remembers between rounds is a reading of history and menu, nothing else."""

    def __init__(self, macro: bool = True) -> None:
        self._macro = macro
        self._record = Record()
        self._space = Space()

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return up to `n` proposals, the changes of structure and the structures on trial first."""
        self._record.follow(history)
        self._space.bind(menu)
        situation = Situation.of(history, menu, self._record)
        if situation is None:
            return ()
        return _Round(self._record, self._space, situation, rng, self._macro).fill(n)


class _Round:
    """The decisions of one round."""

    def __init__(self, record: Record, space: Space, now: Situation, rng: random.Random, macro: bool) -> None:
        self._record, self._space, self._now, self._rng = record, space, now, rng
        self._forecast = Forecast(now.menu, record)
        self._macro = macro and not now.late
        self._suggested = now.suggestions()
        self._pools: dict[str, Pool | None] = {}
        self._taken: set[Schedule] = set()
        self._proposals: list[Proposal] = []

    def fill(self, n: int) -> list[Proposal]:
        """Spend the slots: structures, trials, numbers."""
        if self._macro:
            self._structures(n)
            if not self._now.reverted:
                for tried in self._now.on_trial()[: max(1, n - 1 - len(self._proposals))]:
                    if len(self._proposals) < n:
                        rounds = self._now.history.round - tried.first_round
                        self._numbers(
                            tried, f"{tried.structure} on trial, round {rounds} of {self._now.trial_rounds}: "
                        )
        misses = 0
        while len(self._proposals) < n and misses < 8:
            drawn = self._draw_structure()
            misses += 0 if drawn is not None and self._numbers(drawn) else 1
        if not self._proposals and self._macro:
            self._change_structure("no untried numbers near the best are left")
        return self._proposals

    # -- structure -------------------------------------------------------------------------------------

    def _structures(self, n: int) -> None:
        # Moves that change the structure are dear to ask for: only where there is a structure to be found.
        missing = not all(self._known(name) for name in self._now.menu.structures)
        untried = [name for name in self._reachable() if not self._known(name)] if missing else []
        # Beside candidate 0 alone nothing is worth a slot more than structures.
        alone = all(row.number == 0 for t in self._record.structures.values() for row in t.measured)
        for name in untried[: n if alone else math.ceil(n / 2)]:
            tried = sum(1 for t in self._record.structures.values() if t.measured)
            self._change_structure(f"{name} was never measured; {tried} structures so far", [name])
        if not untried and self._now.calls_for_macro:
            rounds = self._now.history.rounds_without_win
            self._change_structure(f"{rounds} rounds of numbers without a win")

    def _known(self, name: str) -> bool:
        """Whether a structure was measured, is on its way, or failed so often that it waits for a stall."""
        tried = self._record.structures.get(name)
        if tried is not None and (tried.measured or len(tried.failed) >= 3):
            return True
        return any(structure_of(row) == name for row in self._now.history.in_flight())

    def _reachable(self) -> list[str]:
        """Structures that a macro move leads to, in the menu's order."""
        return list(dict.fromkeys(step.schedule.structure for _, step in self._macro_steps()))

    def _macro_steps(self) -> list[tuple[Row, Step]]:
        """Untried macro steps from the base and from the best of every structure."""
        bests = [tried.best for tried in self._record.structures.values()]
        rows = [self._now.base] if self._now.reverted else [self._now.base, *(b for b in bests if b is not None)]
        return [
            (row, step)
            for row in {row.number: row for row in rows}.values()
            if row.schedule is not None
            for step in self._space.macro(row.schedule)
            if self._free(step.schedule)
        ]

    def _change_structure(self, why: str, among: Sequence[str] | None = None) -> bool:
        """Propose one macro step, drawn by the weight of its action and how well its structure stands."""
        steps = [pair for pair in self._macro_steps() if among is None or pair[1].schedule.structure in among]
        if not steps:
            return False
        weights = []
        fresh = among is not None and not any(self._known(name) for name in among)
        promises = self._promise([step.schedule for _, step in steps]) if fresh else [1.0] * len(steps)
        for (row, step), promise in zip(steps, promises):
            action = step.moves[0].action
            finding = self._suggested.get(action)
            raised = 1.0 + (2.0 * finding.confidence if finding else 0.0)
            tried = self._record.structures.get(step.schedule.structure)
            best = tried.best if tried else None
            behind = standing_of(best) - standing_of(self._now.incumbent) if best else 0.0
            from_behind = standing_of(row) - standing_of(self._now.incumbent)
            drawn = self._now.weight(action).weight * raised * math.exp(0.5 * behind + 0.5 * from_behind)
            weights.append(drawn * promise)
        row, step = self._rng.choices(steps, weights)[0]
        action = step.moves[0].action
        finding = self._suggested.get(action)
        by: ChosenBy = "finding" if finding else "weight"
        told = f'"{finding.label}" ({finding.confidence:.2f}) suggests {action}; ' if finding else ""
        return self._add(row, step, f"{told}{why}: to {step.schedule.structure}; {self._told(action)}", by)

    def _promise(self, entries: Sequence[Schedule]) -> list[float]:
        """Weigh settings to begin a structure with by what the cost model expects of them; 1 for the best."""
        told = [self._forecast.standing(entry) for entry in entries] if self._forecast.believed else []
        best = max((one for one in told if one is not None), default=-math.inf)
        if not math.isfinite(best):
            return [1.0] * len(entries)
        return [1.0 if one is None else math.exp((one - best) / TELLING) for one in told]

    # -- numbers ---------------------------------------------------------------------------------------

    def _draw_structure(self) -> Tried | None:
        """Draw the structure whose numbers are worked on; in the last fifth, the best one.

        The draw goes by the best standing, plus what its learning curve promises and what it is owed for few tries.
        """
        home = self._record.structures.get(structure_of(self._now.base))
        if self._now.late or self._now.reverted or not self._macro:
            return home
        spent = {name for name, pool in self._pools.items() if pool is None}
        ready = [t for t in self._record.structures.values() if t.measured and t.structure not in spent]
        warmth = WARMTH_LEAST + WARMTH * self._now.exploring
        weights = []
        for tried in ready:
            best = tried.best
            behind = standing_of(best) - standing_of(self._now.incumbent) if best else 0.0
            owed = OWED * self._now.exploring / math.sqrt(1.0 + len(tried.measured) / OWED_TRIES)
            promise = min(0.5, behind + PROMISE * tried.rising)
            weights.append(math.exp(max(-50.0, (promise + owed) / warmth)))
        return self._rng.choices(ready, weights)[0] if ready else home

    def _numbers(self, tried: Tried, prefix: str = "") -> bool:
        """Propose one setting of a structure; what the menu turns out to refuse is passed over."""
        if tried.structure not in self._pools:
            self._pools[tried.structure] = self._pool(tried)
        pool = self._pools[tried.structure]
        return pool is not None and any(self._number(pool, prefix) for _ in range(TAKES))

    def _number(self, pool: Pool, prefix: str) -> bool:
        """Take one setting: by a finding, by the weight of actions, or by the probe."""
        if self._now.late:
            prefix = "last fifth of the budget, near the best: "
        elif self._by_finding(pool, prefix) or (
            not pool.foreseen and self._rng.random() < BY_WEIGHT and self._by_weight(pool, prefix)
        ):
            return True
        taken = pool.take()
        if taken is None:
            return False
        base, step, mean, spread = taken
        gain = 100.0 * math.expm1(mean - pool.best)
        why = f"{prefix}probe expects {gain:+.1f} % ± {100.0 * spread:.1f} against its best; {self._exploring}"
        return self._add(base, step, why, "probe")

    def _by_finding(self, pool: Pool, prefix: str) -> bool:
        for action, finding in self._suggested.items():
            tally = self._now.weight(action)
            if self._rng.random() < BY_FINDING * finding.confidence * min(1.0, tally.weight):
                taken = pool.take([action])
                if taken is not None:
                    why = (
                        f'{prefix}"{finding.label}" ({finding.confidence:.2f}) suggests {action}; {self._told(action)}'
                    )
                    return self._add(taken[0], taken[1], why, "finding")
        return False

    def _by_weight(self, pool: Pool, prefix: str) -> bool:
        actions = list(dict.fromkeys(s.moves[0].action for _, s in pool.options if len(s.moves) == 1))
        if not actions:
            return False
        action = self._rng.choices(actions, [self._now.weight(name).weight for name in actions])[0]
        taken = pool.take([action])
        if taken is None:
            return False
        return self._add(taken[0], taken[1], f"{prefix}{self._told(action)}; {self._exploring}", "weight")

    def _pool(self, tried: Tried) -> Pool | None:
        """Collect untried settings around the configurations in play and condition the probe on what is known."""
        best = tried.best
        if best is None:
            return None
        if self._now.reverted and structure_of(self._now.base) == tried.structure:
            bases = [self._now.base]
        else:
            bases = tried.top(BASES)
        if self._now.late:
            bases = [row for row in bases if standing_of(row) >= standing_of(best) - CLOSE]
        options = self._options(tried, bases, JOINED)
        if not options:
            options = self._options(tried, tried.top(4 * BASES), 4 * JOINED, explored=False)
        if not options:
            return None
        reach = REACH_LATE if self._now.late else REACH_LEAST + REACH * self._now.exploring
        noise = self._now.history.pair_noise or 0.01
        if len(tried.measured) < YOUNG and not self._now.late and self._forecast.believed:
            foreseen = self._foreseen(tried, options, reach, noise)
            if foreseen is not None:
                return foreseen
        return Pool(options, _surrogate(tried, noise), reach, standing_of(best))

    def _foreseen(self, tried: Tried, options: list[tuple[Row, Step]], reach: float, noise: float) -> Pool | None:
        """Ask the cost model about some of the options; None where it knows nothing of this structure.

        The probe then speaks of what standings have beyond its forecasts. What cannot be built is left out.
        """
        rows = [
            (row.schedule, standing_of(row) - forecast)
            for row in tried.measured
            if row.schedule is not None
            for forecast in [self._forecast.standing(row.schedule)]
            if forecast is not None and math.isfinite(forecast)
        ]
        suggested = [one for one in options if len(one[1].moves) == 1 and one[1].moves[0].action in self._suggested]
        drawn = self._rng.sample(options, min(ASKED, len(options)))
        told = [
            (option, forecast)
            for schedule, option in {one[1].schedule: one for one in (*suggested, *drawn)}.items()
            for forecast in [self._forecast.standing(schedule)]
            if forecast is not None and math.isfinite(forecast)
        ]
        if not rows or not told:
            return None
        surrogate = Surrogate([schedule for schedule, _ in rows], [beyond for _, beyond in rows], noise)
        best = max(standing_of(row) for row in tried.leaders)
        return Pool([option for option, _ in told], surrogate, reach, best, [forecast for _, forecast in told])

    def _options(
        self, tried: Tried, bases: Sequence[Row], joined: int, explored: bool = True
    ) -> list[tuple[Row, Step]]:
        shapes = self._now.explored(tried) if explored else set()
        options: dict[Schedule, tuple[Row, Step]] = {}
        for row in bases:
            here = row.schedule
            if here is None:
                continue
            steps = list(self._space.micro(here))
            if not self._now.late or not explored:
                most = JOINED_YOUNG if len(tried.measured) < YOUNG else JOINED_MOST
                steps += self._space.joints(here, joined, most, self._rng)
            for step in steps:
                fresh = step.schedule not in options and self._free(step.schedule)
                if fresh and not is_explored(step.schedule, here, shapes):
                    options[step.schedule] = (row, step)
        return list(options.values())

    # -- both ------------------------------------------------------------------------------------------

    def _free(self, schedule: Schedule) -> bool:
        return schedule not in self._taken and not self._record.tried(schedule)

    def _add(self, base: Row, step: Step, reason: str, by: ChosenBy) -> bool:
        confirmed = self._space.confirm(base.schedule, step) if base.schedule is not None else None
        if confirmed is None or not self._free(confirmed.schedule):
            return False
        step = confirmed
        self._taken.add(step.schedule)
        self._proposals.append(Proposal(base.number, step.moves, reason, by, NAME))
        return True

    def _told(self, action: str) -> str:
        tally = self._now.weight(action)
        return f"weight {tally.weight:.1f}, {tally.wins} wins of {tally.tries}"

    @property
    def _exploring(self) -> str:
        return f"exploring {self._now.exploring:.2f}"


def _surrogate(tried: Tried, noise: float) -> Surrogate:
    """Condition a probe on a structure's best and latest rows; failures count as its slowest."""
    rows = {row.number: row for row in (*tried.top(TOP), *tried.measured[-LATEST:])}
    best = max(standing_of(row) for row in rows.values())
    known = [(row, _eased(best, standing_of(row))) for row in rows.values()]
    slowest = min(standing for _, standing in known)
    pairs = [
        (row.schedule, standing)
        for row, standing in (*known, *((row, slowest) for row in tried.failed[-FAILURES:]))
        if row.schedule is not None
    ]
    return Surrogate([schedule for schedule, _ in pairs], [standing for _, standing in pairs], noise)


def _eased(best: float, standing: float) -> float:
    """Press far losers together: how slow they are says little about what is near the best."""
    return best - EASE * math.tanh((best - standing) / EASE)


def make(options: dict[str, Any]) -> Agent:
    """Make a bandit; ``bandit:micro`` switches its macro level off. Raises UserError for another argument."""
    argument = str(options.get("argument") or "")
    if argument not in ("", "micro"):
        raise UserError(f'--agent bandit: found "{argument}", allowed: bandit, or bandit:micro (numbers only)')
    return BanditAgent(macro=argument != "micro")


PLUGIN: AgentFactory = make
