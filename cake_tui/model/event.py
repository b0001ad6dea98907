"""Events: what the journal stores, one class a kind; unknown kinds and fields are skipped on reading.

An event has ``v seq t mono boot kind``; the loop leaves the first five at their defaults and the journal
stamps them. Names of kinds are the class names.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.measure import GateResult, Series, Stale
from cake_tui.model.move import Level, Proposal
from cake_tui.model.outcome import Outcome
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule

VERSION = 1


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True, omit_defaults=True, gc=False):
    """Header of every event; `mono` is monotonic seconds within `boot` (the machine's boot id).

    `v` is 0 until the journal stamps it: defaults are not written, and every line says its version.
    """

    v: int = 0
    seq: int = 0
    t: str = ""
    mono: float = 0.0
    boot: str = ""


# --- the session and its engine ---------------------------------------------------------------------


class SessionCreated(Event, frozen=True, tag=True, gc=False):
    """First event: everything resolved, so that the fold needs no other file."""

    name: str
    problem: Problem
    device: Device
    backend: str
    agent: str
    settings: dict[str, Any]
    versions: dict[str, str]
    goal: str | None = None
    started_from: str | None = None


class EngineStarted(Event, frozen=True, tag=True, gc=False):
    """An engine took the session; `changes` lists settings that differ from before, old and new."""

    pid: int
    host: str
    changes: tuple[tuple[str, str, str], ...] = ()


class EngineEnded(Event, frozen=True, tag=True, gc=False):
    """An orderly end: ``done``, ``stopped`` or ``failed``, why, and the process's exit code."""

    state: Literal["done", "stopped", "failed"]
    reason: str
    exit_code: int = 0


class GapSeen(Event, frozen=True, tag=True, gc=False):
    """Time that the run did not have: a suspended machine, a stopped process, a full disk, a stepped wall clock."""

    seconds: float
    what: Literal["wall", "stopped", "offline", "no space"]


class Noticed(Event, frozen=True, tag=True, gc=False):
    """Something that a person should see; `level` is info, warning or error."""

    level: Literal["info", "warning", "error"]
    text: str


class Probed(Event, frozen=True, tag=True, gc=False):
    """The test compile before the session starts."""

    compiler: str
    version: str


class SelfTestEnded(Event, frozen=True, tag=True, gc=False):
    """The check told right from wrong: the cases as in `SelfTested`."""

    cases: tuple[tuple[str, float, str, str], ...]


# --- requests ---------------------------------------------------------------------------------------


class RequestTaken(Event, frozen=True, tag=True, gc=False):
    """A request acted. `body` is its payload as sent; what it changed follows from `what` and `body`."""

    id: str
    who: str
    what: str
    body: dict[str, Any] = {}


class RequestRefused(Event, frozen=True, tag=True, gc=False):
    """A request did not act, and why."""

    id: str
    who: str
    what: str
    reason: str


class RequestUndone(Event, frozen=True, tag=True, gc=False):
    """A queued request was taken back before it acted."""

    id: str
    who: str
    undoes: str


class MenuChanged(Event, frozen=True, tag=True, gc=False):
    """The action space changed while the run goes on: one line a change, or why the edit was refused."""

    changes: tuple[str, ...]
    refused: str | None = None


class SettingsChanged(Event, frozen=True, tag=True, gc=False):
    """A setting was changed by a person or by resume."""

    changes: tuple[tuple[str, str, str], ...]
    settings: dict[str, Any]


class PausedByGuard(Event, frozen=True, tag=True, gc=False):
    """The engine paused itself: which guard, what it saw and which setting changes it."""

    guard: str
    reason: str
    again: tuple[int, ...] = ()  # candidates whose failure says nothing about them


# --- rounds and candidates --------------------------------------------------------------------------


class RoundBegan(Event, frozen=True, tag=True, gc=False):
    """Proposals of round `round` were asked for; `knew_round` is the last one that they knew whole (None: all)."""

    round: int
    size: int
    incumbent: int | None
    knew_round: int | None = None


class BaseReverted(Event, frozen=True, tag=True, gc=False):
    """``revert_last()``: the next round's proposals start from `base`; takes no candidate number."""

    base: int
    who: str
    reason: str
    request: str | None = None


class Planned(Event, frozen=True, tag=True, gc=False):
    """Steps 2 to 6 of a candidate ended well: it has a schedule and a lowered value."""

    candidate: int
    round: int
    proposal: Proposal
    level: Level | None
    schedule: Schedule
    predicted_us: float | None
    source_sha256: str
    audit: bool = False  # the screen would have dropped it; run all the same


class BuildEnded(Event, frozen=True, tag=True, gc=False):
    """Both builds of a candidate ended well."""

    candidate: int
    seconds: float
    full_sha256: str
    smoke_sha256: str
    facts: StaticFacts = StaticFacts()
    cached: bool = False


class CheckEnded(Event, frozen=True, tag=True, gc=False):
    """The candidate agrees with its reference."""

    candidate: int
    seconds: float
    agreement: Agreement


class Coarse(Event, frozen=True, tag=True, gc=False):
    """Look 0: three interleaved pairs with the incumbent; `avg_us` is the median of the three runs."""

    candidate: int
    against: int | None
    seconds: float
    avg_us: float
    runs_us: tuple[float, ...]
    gain: float  # median ln(t_holder / t_candidate); 0 for candidate 0
    seed: int = 0
    series: tuple[Series, ...] = ()
    stale_codes: tuple[str, ...] = ()


class GateEnded(Event, frozen=True, tag=True, gc=False):
    """The gate decided about a candidate; samples of first and confirming looks are in its folder."""

    candidate: int
    against: int
    seconds: float
    result: GateResult


class CandidateEnded(Event, frozen=True, tag=True, gc=False):
    """The candidate has its outcome; an accepted one is the incumbent from here on.

    Candidates that never reached `Planned` carry their proposal, level and schedule here.
    """

    candidate: int
    round: int
    outcome: Outcome
    proposal: Proposal | None = None
    level: Level | None = None
    schedule: Schedule | None = None
    predicted_us: float | None = None
    source_sha256: str | None = None
    findings: tuple[Finding, ...] = ()
    profile: Profile | None = None


class StepLost(Event, frozen=True, tag=True, gc=False):
    """A step of a candidate was in flight when the engine died; lost twice, the candidate ends `Crashed`."""

    candidate: int
    step: str


class RoundEnded(Event, frozen=True, tag=True, gc=False):
    """A summary of the round: trends of knobs, structures, wins."""

    round: int
    accepted: int
    summary: dict[str, Any]


class Stalled(Event, frozen=True, tag=True, gc=False):
    """`patience` rounds without a win."""

    rounds: int


class NoiseCalibrated(Event, frozen=True, tag=True, gc=False):
    """Pair noise s (robust standard deviation of ln ratios of self-pairs), as a fraction."""

    pair_noise: float
    pairs: int
    against: int


class IncumbentTimed(Event, frozen=True, tag=True, gc=False):
    """The incumbent's time refreshed from pairs; display only, decides nothing."""

    candidate: int
    avg_us: float


class PeerTimed(Event, frozen=True, tag=True, gc=False):
    """A peer timed side by side with the best; ratio is peer time over best time."""

    peer: str
    avg_us: float
    ratio: float
    against: int
    threads: int | None = None
    version: str = ""


class GuardFired(Event, frozen=True, tag=True, gc=False):
    """A stale-clock code fired around a candidate's series."""

    candidate: int | None
    stale: Stale


class EvaluatorReplaced(Event, frozen=True, tag=True, gc=False):
    """An evaluator died or was killed and a fresh one serves; charged to `candidate`."""

    candidate: int | None
    reason: str
    seconds: float | None = None


class PlayOffBegan(Event, frozen=True, tag=True, gc=False):
    """Before DONE: these candidates are gated against the holder once more."""

    candidates: tuple[int, ...]


class PlayedOff(Event, frozen=True, tag=True, gc=False):
    """One match of the play-off; an accepted candidate is the incumbent from here on."""

    candidate: int
    against: int
    seconds: float
    result: GateResult | None = None
    ended: Outcome | None = None  # it did not live to be gated again


class Profiled(Event, frozen=True, tag=True, gc=False):
    """The profiler was asked about these candidates, all in one call; timing waited for it.

    `profiles` and `findings` are by candidate; `failed` says why one has no counters, `refused` why none has.
    """

    seconds: float
    profiles: tuple[tuple[int, Profile], ...] = ()
    findings: tuple[tuple[int, tuple[Finding, ...]], ...] = ()
    failed: tuple[tuple[int, str], ...] = ()
    refused: str = ""
    cure: str = ""
    request: str | None = None


class Sanitized(Event, frozen=True, tag=True, gc=False):
    """A memory or race checker looked at a candidate's smoke build; `complaints` are in its own words."""

    candidate: int
    tool: str
    seconds: float
    errors: int = 0
    complaints: tuple[str, ...] = ()
    refused: str = ""
    cure: str = ""


class ProposalDropped(Event, frozen=True, tag=True, gc=False):
    """A proposal that is no candidate: it named no action of the menu, or a base that has no time."""

    proposal: Proposal
    reason: str


AnyEvent = (
    SessionCreated | EngineStarted | EngineEnded | GapSeen | Noticed | Probed | SelfTestEnded
    | RequestTaken | RequestRefused | RequestUndone | MenuChanged | SettingsChanged | PausedByGuard
    | RoundBegan | BaseReverted | Planned | BuildEnded | CheckEnded | Coarse | GateEnded
    | CandidateEnded | StepLost | RoundEnded | Stalled | NoiseCalibrated | IncumbentTimed | PeerTimed
    | GuardFired | EvaluatorReplaced | PlayOffBegan | PlayedOff | Profiled | Sanitized | ProposalDropped
)  # fmt: skip
