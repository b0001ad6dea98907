"""Build failed: the compiler refused the source, or did not end in time.

*Signal*: the compiler's own first error line, or the time limit.

*Why it matters*: the rest of its output repeats or follows from that line.

*Try*: undo the move that this candidate added; after a time-out, unroll less and use smaller register blocks.
"""

from __future__ import annotations

from cake_tui.errors import first_error
from cake_tui.model.finding import Finding
from cake_tui.model.outcome import BuildFailed, TimedOut
from cake_tui.rules import Evidence, Rule, confidence


def build_failed(evidence: Evidence) -> Finding | None:
    """Pick the first error out of the log."""
    outcome = evidence.outcome
    if isinstance(outcome, TimedOut) and outcome.step == "build":
        seen: tuple[tuple[str, float | str | None], ...] = (("limit_s", outcome.limit_s),)
    elif isinstance(outcome, BuildFailed):
        seen = (("error", first_error(outcome.log) or outcome.reason), ("log_bytes", outcome.log_bytes))
    else:
        return None
    return Finding(
        rule="build_failed",
        label="build failed",
        kind="numeric",
        confidence=confidence(1.0, True, measured=True),
        evidence=seen,
        actions=("apply_unroll",) if isinstance(outcome, TimedOut) else (),
    )


PLUGIN: Rule = build_failed
