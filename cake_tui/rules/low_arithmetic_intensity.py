"""Low arithmetic intensity: the inner loop loads about as much as it computes.

*Signal*: a register block of m x n does m*n multiply-adds for m + n loads; below one multiply-add a load (on a GPU
two), and with arithmetic busy less than half of the time, loads are what the core waits for.

*Why it matters*: a core issues about as many loads as multiply-adds a cycle, a multiprocessor a quarter of that; with
fewer multiply-adds than that for each load the arithmetic units idle however fast the memory is.

*Try*: a larger register block, so that each loaded value is used several times from a register.
"""

from __future__ import annotations

from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._blocks import register_block

ENOUGH = {"c": 1.0, "cuda": 2.0}  # multiply-adds a load
IDLE_PCT = 50.0


def low_arithmetic_intensity(evidence: Evidence) -> Finding | None:
    """Count the multiply-adds a load of the schedule's register block."""
    schedule, profile = evidence.schedule, evidence.profile
    if schedule is None or evidence.problem.family != "contraction" or evidence.time_us is None:
        return None
    rows, columns = register_block(schedule, evidence.device)
    intensity = rows * columns / (rows + columns)
    busy = _busy_pct(profile)
    enough = ENOUGH[evidence.device.target]
    if intensity >= enough or (busy is not None and busy >= IDLE_PCT):
        return None
    # Without registers to block in, only another structure helps.
    can_block = schedule.knob("thread_m") is not None
    share = 1.0 - intensity / enough + 0.3
    return Finding(
        rule="low_arithmetic_intensity",
        label="low arithmetic intensity",
        kind="numeric" if can_block else "structural",
        confidence=confidence(share, None if busy is None else True, measured=busy is not None),
        evidence=(("multiply_adds_per_load", round(intensity, 3)), ("sm_busy_pct", busy)),
        actions=("apply_register_block",) if can_block else ("use_packed_panels", "use_tiled_loops"),
    )


def _busy_pct(profile: Profile | None) -> float | None:
    """How busy the multiply-add units are: counted by a profiler, else by the work over the time."""
    if profile is None:
        return None
    return profile.fma_pipe_pct if profile.fma_pipe_pct is not None else profile.sm_busy_pct


PLUGIN: Rule = low_arithmetic_intensity
