"""How a candidate ended: exactly one outcome; a verdict only with `Measured`."""

from __future__ import annotations

from typing import Literal

import msgspec

from cake_tui.model.diagnostic import Diagnostic

Verdict = Literal["accepted", "slower", "undecided", "noisy", "coarse_only"]
CheckFailure = Literal[
    "bound", "exact", "unwritten", "stale", "guard", "inputs_changed", "nan", "fingerprint",
    "race", "alignment", "state", "precision", "timed_output",
]  # fmt: skip


class _Ending(msgspec.Struct, frozen=True, tag_field="kind", tag=True, kw_only=True, gc=False):
    """What every outcome says: the step it ended in and one line for people."""

    step: str = ""
    reason: str = ""


class Rejected(_Ending, frozen=True, tag=True, gc=False):
    """A law or an edit refuses it."""

    diagnostics: tuple[Diagnostic, ...] = ()


class Screened(_Ending, frozen=True, tag=True, gc=False):
    """The cost model expects it to lose."""

    predicted_us: float | None = None  # None: the cost model abstained


class Repeated(_Ending, frozen=True, tag=True, gc=False):
    """The same lowered value was evaluated before: answered from the record."""

    of: int = 0


class BuildFailed(_Ending, frozen=True, tag=True, gc=False):
    """The compiler refused it; `log` keeps head and tail, `log_bytes` the true size."""

    log: str = ""
    log_bytes: int = 0


class LaunchFailed(_Ending, frozen=True, tag=True, gc=False):
    """It could not be launched (a limit, an argument, a missing symbol)."""

    limit: str | None = None
    asked: float | None = None
    available: float | None = None
    unit: str | None = None


class Crashed(_Ending, frozen=True, tag=True, gc=False):
    """It killed the evaluator, or a step was lost twice."""

    signal: str | None = None


class TimedOut(_Ending, frozen=True, tag=True, gc=False):
    """A compile or a run outlived its limit and was ended; `log` is what the compiler had said, head and tail."""

    limit_s: float = 0.0
    log: str = ""
    log_bytes: int = 0


class WrongAnswer(_Ending, frozen=True, tag=True, gc=False):
    """The check refused it: which probe, how many elements, the first bad one."""

    failure: CheckFailure = "bound"
    input_set: str = ""
    shape: str = ""
    bad_elements: int = 0
    elements: int = 0
    first_index: tuple[int, ...] = ()
    expected: float | None = None
    found: str | None = None  # text: NaN and infinities stay valid JSON
    max_abs_err: float | None = None
    worst_unit: float | None = None


class Measured(_Ending, frozen=True, tag=True, gc=False):
    """It ran, was right and has a time; candidate 0 alone has no verdict."""

    verdict: Verdict | None = None
    avg_us: float = 0.0


class Interrupted(_Ending, frozen=True, tag=True, gc=False):
    """An orderly stop ended it; it may be tried again."""


Outcome = (
    Rejected
    | Screened
    | Repeated
    | BuildFailed
    | LaunchFailed
    | Crashed
    | TimedOut
    | WrongAnswer
    | Measured
    | Interrupted
)

# A candidate that reached one of these counts against the budget.
EFFECTIVE = ("Measured", "WrongAnswer")
FAILED = ("BuildFailed", "LaunchFailed", "Crashed", "TimedOut", "WrongAnswer")


def kind_of(outcome: Outcome) -> str:
    """Return the outcome's name as the journal writes it."""
    return type(outcome).__name__
