"""Jobs and replies between engine, executor and evaluator: JSON-encodable, binaries by content hash."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.lowered import Lowered
from cake_tui.model.measure import Series
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from cake_tui.model.problem import Problem


def binary_path(store: Path, sha256: str) -> Path:
    """Say where a store keeps a binary: by its content hash."""
    return store / "binaries" / sha256[:2] / sha256


class BuildJob(msgspec.Struct, frozen=True):
    """Compile one lowered value; `flavour` names the build in logs."""

    lowered: Lowered
    flavour: Literal["full", "smoke"] = "full"
    timeout_s: float = 120.0


class Built(msgspec.Struct, frozen=True, tag=True):
    """The binary is in the store under its hash; `command` is what a person would type to get it."""

    binary_sha256: str
    seconds: float
    facts: StaticFacts = StaticFacts()
    log: str = ""
    log_bytes: int = 0
    command: tuple[str, ...] = ()
    cached: bool = False


class NotBuilt(msgspec.Struct, frozen=True, tag=True):
    """The compiler failed or was ended; head and tail of its output with the true size."""

    reason: str
    seconds: float
    timed_out: bool = False
    log: str = ""
    log_bytes: int = 0
    command: tuple[str, ...] = ()


BuildReply = Built | NotBuilt


class Subject(msgspec.Struct, frozen=True):
    """A binary with its launch plans: all an evaluator needs to run it."""

    binary_sha256: str
    lowered: Lowered


class SelfTest(msgspec.Struct, frozen=True, tag=True):
    """Prove that the check of this problem tells right from wrong (numpy variants, no kernel)."""

    problem: Problem


class Check(msgspec.Struct, frozen=True, tag=True):
    """Check the subject at its plans' shapes. `depth`: ``smoke`` all probes at small odd shapes with the
    run-time build; ``full`` the ranked shapes; ``baseline`` one input set, one poison."""

    problem: Problem
    subject: Subject
    depth: Literal["smoke", "full", "baseline"]
    seed: int
    run_limit_s: float = 10.0  # one run longer than this ends the evaluator itself: `Lost(timed_out=True)`
    # With `reference = "first"`: candidate 0's build of the same flavour, whose outputs are held as truth.
    truth: Subject | None = None


class TimePairs(msgspec.Struct, frozen=True, tag=True):
    """Time `pairs` ABBA pairs of holder and candidate on buffers allocated afresh from `seed`."""

    problem: Problem
    holder: Subject
    candidate: Subject
    pairs: int
    seed: int
    sample_ms: float = 10.0
    run_limit_s: float = 10.0


class TimePeer(msgspec.Struct, frozen=True, tag=True):
    """Time a peer (a process of its own) side by side with the best: `pairs` ABBA pairs."""

    problem: Problem
    peer: str
    holder: Subject
    pairs: int
    seed: int
    sample_ms: float = 10.0


EvaluatorJob = SelfTest | Check | TimePairs | TimePeer


class SelfTested(msgspec.Struct, frozen=True, tag=True):
    """`cases`: (name, error in units of the bound, expected ``refused`` or ``accepted``, what happened)."""

    passed: bool
    cases: tuple[tuple[str, float, str, str], ...]
    max_abs_output: float
    nonzero_share: float
    tolerance: float


class Checked(msgspec.Struct, frozen=True, tag=True):
    """The candidate agrees with its reference."""

    agreement: Agreement
    seconds: float


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The check or the launch refused it: data about the candidate, or (while timing) about the holder."""

    outcome: WrongAnswer | LaunchFailed
    arm: Literal["candidate", "holder"] = "candidate"


class Timed(msgspec.Struct, frozen=True, tag=True):
    """One series; with a peer, the peer is the candidate arm."""

    series: Series
    peer_threads: int | None = None
    peer_version: str = ""


class Lost(msgspec.Struct, frozen=True, tag=True):
    """The evaluator died or was killed during this job; it has been replaced."""

    reason: str
    timed_out: bool = False
    signal: str | None = None
    limit_s: float = 0.0
    arm: Literal["candidate", "holder"] = "candidate"  # whose run it was, where the evaluator could say


EvaluatorReply = SelfTested | Checked | Refused | Timed | Lost

# --- tools that run a kernel their own way ------------------------------------------------------------

Tool = Literal["ncu", "memcheck", "racecheck"]


class Inspect(msgspec.Struct, frozen=True, tag=True):
    """Run candidates under a tool, in a process of its own: ``ncu`` counts, the others look for bad accesses.

    `subjects` are candidates by number. ``ncu`` runs the last ranked shape, the others the smallest one of each
    subject's plans. `seed` fills the inputs.
    """

    problem: Problem
    tool: Tool
    subjects: tuple[tuple[int, Subject], ...]
    seed: int


class Seen(msgspec.Struct, frozen=True):
    """What a tool says of one candidate; `complaints` are the first of `errors` in the tool's words."""

    candidate: int
    profile: Profile | None = None
    errors: int = 0
    complaints: tuple[str, ...] = ()
    failed: str = ""  # why it could not be run


class Inspected(msgspec.Struct, frozen=True, tag=True):
    """A tool's answers. Where it could not run at all, `refused` says why and `cure` what mends it."""

    seen: tuple[Seen, ...] = ()
    seconds: float = 0.0
    refused: str = ""
    cure: str = ""
