"""Rows and tallies: what the fold keeps of each candidate, action, win, mark and peer."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import msgspec

from cake_tui.model.facts import StaticFacts
from cake_tui.model.move import Level, Move, Proposal
from cake_tui.model.schedule import KnobValue, Schedule

WEIGHT_MIN, WEIGHT_MAX = 0.1, 8.0
LARGEST_LOG = 700.0  # whose exponential is still a number
WIN_FACTOR, WIN_BONUS, MISS_FACTOR = 1.5, 0.5, 0.93


# Decoding makes a new copy of every text for every line; rows hold one copy of what many of them say alike.
_SHARED: dict[Any, Any] = {}
_MOST_SHARED = 50_000
_NOTHING_LOST: dict[str, int] = {}
_Named = tuple[tuple[str, KnobValue], ...]
_T = TypeVar("_T", str, tuple[str, ...])


def times_as_fast(standing: float | None) -> float | None:
    """Return how many times as fast as candidate 0 something of this standing is; None where there is none."""
    return None if standing is None else math.exp(min(LARGEST_LOG, standing))


def _shared(value: _T) -> _T:
    found: _T = _SHARED.setdefault(value, value)
    return found


def _shared_named(named: _Named) -> _Named:
    # By type as well: 1 and True are equal, and a knob must keep which one it is.
    put = _SHARED.setdefault
    return tuple([put((name, value, value.__class__), (_shared(name), value)) for name, value in named])


class Row(msgspec.Struct, omit_defaults=True, gc=False):
    """One candidate, at most 1 KB: what the board shows and agents learn from. Details are in its folder."""

    number: int
    round: int
    proposal: Proposal
    level: Level | None = None
    schedule: Schedule | None = None
    predicted_us: float | None = None
    source_sha256: str | None = None
    audit: bool = False
    step: str = "planned"  # the last step that ended
    outcome: str | None = None
    verdict: str | None = None
    reason: str = ""
    time_us: float | None = None
    gain: float | None = None  # ln(t_holder / t_candidate), confirmed where the gate confirmed it
    against: int | None = None
    epoch: int = 0  # at which of the session's normal clocks it was timed
    standing: float | None = None  # ln(t_candidate0 / t_candidate), through the incumbents it met
    max_abs_err: float | None = None
    bound_share: float | None = None
    labels: tuple[str, ...] = ()
    behind: bool = False  # the gate found it surely slower than the holder, not only without a gain
    repeats: int | None = None
    profiled: bool = False  # the profiler was asked about it
    suspect: bool = False  # wrote where it should not, raced, or took its evaluator down
    sanitized: str | None = None  # memory and race checkers: clean, errors, doubtful, refused; None: never asked
    again: bool = False  # its failure had a cause outside of it: it may be proposed again
    elapsed_s: float = 0.0  # running time of the session when it ended
    # needed only while it is in flight, dropped when it ends
    full_sha256: str | None = None
    smoke_sha256: str | None = None
    facts: StaticFacts | None = None
    lost: dict[str, int] = {}

    def settle(self) -> None:
        """Drop what only a candidate in flight needs, and share what many rows hold alike."""
        if len(_SHARED) > _MOST_SHARED:
            _SHARED.clear()
        self.full_sha256 = self.smoke_sha256 = self.facts = None
        self.lost = _NOTHING_LOST
        self.step, self.reason, self.labels = _shared(self.step), _shared(self.reason), _shared(self.labels)
        if self.verdict is not None:
            self.verdict = _shared(self.verdict)
        if self.schedule is not None:
            self.schedule = Schedule(_shared(self.schedule.structure), _shared_named(self.schedule.knobs))
        old = self.proposal
        moves = tuple([Move(_shared(move.action), _shared_named(move.arguments)) for move in old.moves])
        self.proposal = Proposal(
            old.base, moves, _shared(old.reason), _shared(old.chosen_by), _shared(old.who), old.request  # type: ignore[arg-type]
        )  # fmt: skip

    @property
    def ended_as(self) -> str:
        """How it ended, as people are told: outcome or verdict, ``no_gain`` where the gate found no more than that."""
        if self.outcome is None:
            return "in flight"
        if self.number == 0 and self.outcome == "Measured":
            return "baseline"
        if self.verdict == "slower" and self.step == "gate" and not self.behind:
            return "no_gain"
        return self.verdict or self.outcome

    @property
    def in_flight(self) -> bool:
        """Planned and not ended."""
        return self.outcome is None

    @property
    def over_baseline(self) -> float | None:
        """How many times as fast as candidate 0, through the incumbents that it met; None without a time.

        By the ratios of pairs timed side by side: a time of now over one of a quieter hour says nothing.
        """
        return times_as_fast(self.standing)


class Tally(msgspec.Struct, gc=False):
    """What one action (or structure) has brought so far; `weight` rises with wins and decays without."""

    tries: int = 0
    wins: int = 0
    weight: float = 1.0
    best_standing: float | None = None
    failures: int = 0

    def count(self, row: Row) -> None:
        """Take in one ended candidate: a win multiplies the weight and adds, a miss or a failure decays it."""
        self.tries += 1
        if row.verdict == "accepted":
            self.wins += 1
            self.weight = min(WEIGHT_MAX, self.weight * WIN_FACTOR + WIN_BONUS)
        else:
            self.failures += row.outcome != "Measured"
            self.weight = max(WEIGHT_MIN, self.weight * MISS_FACTOR)
        if row.standing is not None:
            self.best_standing = max(row.standing, self.best_standing or row.standing)


class Queued(msgspec.Struct, frozen=True, gc=False):
    """A move somebody injected that has not been taken up yet."""

    id: str
    who: str
    moves: tuple[Move, ...]
    reason: str
    seq: int


class Win(msgspec.Struct, frozen=True, gc=False):
    """A point of the best-so-far step line."""

    candidate: int
    time_us: float
    elapsed_s: float
    standing: float


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Something that a person (or a guard) did, for the history plot."""

    candidate: int  # how many candidates there were
    elapsed_s: float
    who: str
    text: str


class Peer(msgspec.Struct, frozen=True, gc=False):
    """A peer's last side-by-side time and its ratio to the best (above 1: the best is faster)."""

    avg_us: float
    ratio: float
    against: int
    threads: int | None = None
    version: str = ""
