"""Tail divergence: part of the lanes, or of the device, has nothing left to do.

*Signal*: an instruction is executed by less than 85 % of a warp's lanes on average, or the last wave of blocks leaves
a fifth of the whole work's places empty.

*Why it matters*: a warp takes as long as its longest lane, and a launch as long as its last block; masked lanes and
idle multiprocessors cost the same time as busy ones.

*Try*: blocks and tiles that divide the sizes, bounds that are the same for a whole warp, a tail of its own behind the
main loop; smaller blocks or split-k where the last wave is nearly empty.
"""

from __future__ import annotations

import math

from cake_tui.model.facts import Profile
from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._waiting import counted

LANES = 32.0
LOST_LANES, LOST_WAVE = 0.15, 0.20


def tail_divergence(evidence: Evidence) -> Finding | None:
    """Compare lanes at work with a full warp, and the waves of blocks with whole ones."""
    profile = counted(evidence)
    if profile is None:
        return None
    lanes = None if profile.active_lanes is None else 1.0 - profile.active_lanes / LANES
    wave = _lost_wave(profile)
    lost = max(
        lanes if lanes is not None and lanes >= LOST_LANES else 0.0,
        wave if wave is not None and wave >= LOST_WAVE else 0.0,
    )
    if not lost > 0.0:
        return None
    return Finding(
        rule="tail_divergence",
        label="tail divergence",
        kind="structural",
        confidence=confidence(lost, True, measured=True),
        evidence=(
            ("active_lanes", profile.active_lanes),
            ("waves", profile.waves),
            ("blocks", profile.blocks),
        ),
        actions=("change_block_config", "apply_tiling", "split_k"),
    )


def _lost_wave(profile: Profile) -> float | None:
    """Share of all waves' places that stay empty; None for less than one wave: that is low occupancy."""
    if profile.waves is None or not 1.0 <= profile.waves < math.inf:
        return None
    return 1.0 - profile.waves / math.ceil(profile.waves)


PLUGIN: Rule = tail_divergence
