"""Uncoalesced access: the lanes of a warp load from places far apart.

*Signal*: a global load or store touches one and a half times as many 32-byte sectors as its width needs, or more (4
for 4 bytes a lane, 16 for 16 bytes).

*Why it matters*: each sector is fetched whole; where every lane needs another one, seven eighths of the traffic are
thrown away, and the load units are busy eight times as long.

*Try*: let neighbouring threads take neighbouring elements of the innermost axis; a block that is wide along it;
staging a tile in shared memory by rows where it has to be read by columns.
"""

from __future__ import annotations

from cake_tui.model.finding import Finding
from cake_tui.rules import Evidence, Rule, confidence
from cake_tui.rules._blocks import FLOAT_BYTES, number
from cake_tui.rules._waiting import LOADS, counted, idle, percent, share

SECTOR_BYTES, LANES = 32, 32
WASTEFUL = 1.5  # times the sectors that the width needs
WAITS = 0.30  # of all waiting for memory: from here on it shows
HARDLY = 0.10
WIDEST_BYTES = 16


def uncoalesced_access(evidence: Evidence) -> Finding | None:
    """Compare the sectors a request touches with those that its width needs."""
    profile = counted(evidence)
    if profile is None:
        return None
    needed = {way: _needed(evidence, mnemonic) for way, mnemonic in (("load", "LDG"), ("store", "STG"))}
    seen = {"load": profile.sectors_per_load, "store": profile.sectors_per_store}
    factors = {way: count / needed[way] for way, count in seen.items() if count is not None}
    worst = max(factors, key=factors.__getitem__, default=None)
    if worst is None or not factors[worst] > WASTEFUL:
        return None
    waits = share(profile, *LOADS)
    agrees = None if waits is None or HARDLY <= waits < WAITS else waits >= WAITS
    return Finding(
        rule="uncoalesced_access",
        label="uncoalesced access",
        kind="structural",
        confidence=confidence((1.0 - 1.0 / factors[worst]) * idle(profile), agrees, measured=True),
        evidence=(
            (f"sectors_per_{worst}", seen[worst]),
            ("sectors_needed", needed[worst]),
            ("load_stalls_pct", percent(waits)),
            ("issue_active_pct", profile.issue_active_pct),
        ),
        actions=("change_block_config", "apply_shared_memory_load", "use_tiled_loops"),
    )


def _needed(evidence: Evidence, mnemonic: str) -> float:
    """Sectors of one request whose lanes lie side by side; where its width is unknown, the most there can be."""
    mix = dict(evidence.facts.sass) if evidence.facts is not None else {}
    if mix:
        width = next((bits // 8 for bits in (128, 64) if mix.get(f"{mnemonic}.{bits}")), FLOAT_BYTES)
    elif evidence.schedule is not None and evidence.schedule.knob("vector") is not None:
        width = FLOAT_BYTES * number(evidence.schedule, "vector")
    else:
        width = WIDEST_BYTES
    return width * LANES / SECTOR_BYTES


PLUGIN: Rule = uncoalesced_access
