"""The state of a session: what the fold of its journal keeps, and the questions that everybody asks of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from cake_tui.model import event as ev
from cake_tui.model.device import Device
from cake_tui.model.finding import Finding
from cake_tui.model.problem import Problem
from cake_tui.model.row import Mark, Peer, Queued, Row, Tally, Win

ENDED = ("done", "stopped", "failed")  # states in which no engine runs


class State(msgspec.Struct):
    """The state of a session as of event `seq`."""

    seq: int = 0
    session: ev.SessionCreated | None = None
    settings: dict[str, Any] = {}
    state: str = "created"  # created running paused done stopped failed
    state_reason: str = ""
    paused_by: str | None = None
    exit_code: int = 0
    rows: list[Row] = []
    flying: list[int] = []  # candidates that were planned and have not ended, oldest first
    by_source: dict[str, int] = {}
    forgiven: int = 0  # candidates that may be proposed again
    incumbent: int | None = None
    incumbent_us: float | None = None
    wins: list[Win] = []
    base_override: int | None = None
    base_round: int = 0  # the last round whose proposals start from it
    round: int = 0
    finished_round: int = 0  # the last one that was summed up: before `round`, while one or two are under way
    last_win_round: int = 0
    last_source_round: int = 0
    stalled: bool = False
    playing_off: tuple[int, ...] = ()
    actions: dict[str, Tally] = {}
    structures: dict[str, Tally] = {}
    counts: dict[str, int] = {}
    queue: dict[str, Queued] = {}
    undone: dict[str, str] = {}  # request id -> the moves that were taken back
    request_ids: dict[str, str] = {}  # id -> taken | refused | undone
    disabled_actions: tuple[str, ...] = ()
    wanted_profiles: tuple[int, ...] = ()  # candidates that people want profiled, oldest request first
    wanted_checks: tuple[int, ...] = ()  # candidates that people want looked at for races and bad accesses
    inspected_s: float = 0.0  # of the running time, spent in profilers and checkers
    findings: tuple[Finding, ...] = ()  # of the latest candidates, most confident first: what agents read
    pair_noise: float | None = None
    noise_of: int | None = None
    retime_due: bool = False  # since a gap the incumbent has not been timed again
    clocks: tuple[float, ...] = ()  # normal rates so far, additions a nanosecond; 0: not recorded
    epoch: int = 0  # which of them is the normal one now; every row says at which it was timed
    peers: dict[str, Peer] = {}
    marks: list[Mark] = []
    elapsed_s: float = 0.0
    last_mono: float = 0.0
    last_boot: str = ""
    last_t: str = ""
    self_tested: bool = False
    last_round_summary: dict[str, Any] = {}

    @property
    def problem(self) -> Problem:
        """The session's problem; raises ValueError before the first event."""
        if self.session is None:
            raise ValueError("the journal has no SessionCreated event")
        return self.session.problem

    @property
    def device(self) -> Device:
        """The session's device; raises ValueError before the first event."""
        if self.session is None:
            raise ValueError("the journal has no SessionCreated event")
        return self.session.device

    @property
    def effective(self) -> int:
        """Candidates that count against the budget."""
        return self.counts.get("effective", 0)

    @property
    def rounds_without_win(self) -> int:
        """Finished rounds since the incumbent last changed."""
        return max(0, self.finished_round - self.last_win_round)

    @property
    def rounds_without_source(self) -> int:
        """Finished rounds since one brought a source that was not on record."""
        return max(0, self.finished_round - self.last_source_round)

    @property
    def baseline_us(self) -> float | None:
        """Time of candidate 0, None before it was measured."""
        return self.rows[0].time_us if self.rows else None

    @property
    def speedup(self) -> float | None:
        """How many times as fast as candidate 0 the incumbent is; None before there is one."""
        return None if self.incumbent is None else self.rows[self.incumbent].over_baseline

    @property
    def budget_share(self) -> float:
        """Share of the budget that is used, by candidates or by time, whichever is more."""
        by_count = self.effective / max(1, int(self.settings.get("candidates", 600)))
        by_time = self.elapsed_s / max(1.0, float(self.settings.get("hours", 24.0)) * 3600)
        return min(1.0, max(by_count, by_time))

    def in_flight(self) -> Iterator[Row]:
        """Candidates that were planned and have not ended, oldest first."""
        return (self.rows[number] for number in tuple(self.flying))

    def of_round(self, number: int) -> list[Row]:
        """A round's candidates, oldest first; it is one of the latest."""
        latest = itertools.takewhile(lambda row: row.round >= number, reversed(self.rows))
        return [row for row in latest if row.round == number][::-1]

    def measured(self) -> Iterator[Row]:
        """Rows that have a time, oldest first."""
        return (row for row in self.rows if row.time_us is not None)

    def calm_us(self, row: Row) -> float | None:
        """A row's time as candidate 0's clock would have shown it: by ratios of pairs, so that drift drops out."""
        over = row.over_baseline
        return None if over is None or self.baseline_us is None else self.baseline_us / over

    def lineage(self, number: int) -> tuple[int, ...]:
        """The candidate and its bases down to 0, newest first."""
        path = [number]
        while 0 < path[-1] < len(self.rows) and len(path) <= len(self.rows):
            path.append(self.rows[path[-1]].proposal.base)
        return tuple(path)
