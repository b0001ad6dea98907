"""Cache aliasing: rows of a tile fall into the same few sets of the cache.

*Signal*: a leading dimension that is a multiple of a power of two, walked over more rows than its cache sets have ways,
and no padding.

*Why it matters*: rows a power of two apart share their sets, so they push each other out while most of the cache
stays empty: every access misses although the tile would fit.

*Try*: a pad on the packed panel, packing the operand so that a tile is contiguous, or another block size.
"""

from __future__ import annotations

import math

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._blocks import FLOAT_BYTES, block, lanes, number, register_block

# A virtually indexed first-level cache has at most a page a way; its sets repeat after that many bytes.
WAY_BYTES = 4096
DENSE = ("packed",)  # structures whose panels are read from end to end


def cache_aliasing(evidence: Evidence) -> Finding | None:
    """Count the rows of a walk down a column that share their cache sets."""
    problem, schedule, device = evidence.problem, evidence.schedule, evidence.device
    if schedule is None or device.target != "c" or problem.family != "contraction" or not device.l1_bytes:
        return None
    sizes = dict(problem.shapes[-1].sizes)
    if not {"N", "K"} <= set(sizes) or number(schedule, "pad", 0) > 0:
        return None
    if schedule.structure in DENSE:
        return None
    staged = schedule.knob("shared") is True
    rows = min(number(schedule, "block_k", sizes["K"]), math.ceil(sizes["K"] / number(schedule, "split_k")))
    pitch = FLOAT_BYTES * (block(schedule, device)[1] if staged else sizes["N"])
    used = FLOAT_BYTES * register_block(schedule, device)[1] * lanes(schedule, device)
    ways = max(1, device.l1_bytes // WAY_BYTES)
    if pitch <= max(used, device.line_bytes):
        return None  # rows follow each other without a gap
    places = WAY_BYTES // math.gcd(pitch, WAY_BYTES)
    in_one_set = rows / places
    if in_one_set <= ways:
        return None
    return Finding(
        rule="cache_aliasing",
        label="cache aliasing",
        kind="numeric" if staged else "structural",
        confidence=confidence(1.0 - ways / in_one_set, None, measured=False),
        evidence=(("pitch_bytes", pitch), ("rows", rows), ("rows_per_set", in_one_set), ("ways", ways)),
        actions=("avoid_bank_conflict",) if staged else ("apply_shared_memory_load", "use_packed_panels"),
    )


PLUGIN: Rule = cache_aliasing
