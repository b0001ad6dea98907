"""For each rule a real kernel with its fault and one without: judged from counters that a real GPU gave.

``tests/cuda/recording.py`` says how the counters are taken.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cake_tui import registry
from tests.cuda import recording
from tests.cuda.recording import RECORDED, Recording, Taken, pairs, variants, verdict

# Rules that look at something else than counters, or at a processor; tests/data/rules has their cases.
NOT_BY_COUNTERS = {
    "build_failed", "cache_aliasing", "error_margin", "no_vector_code", "noise", "over_limit", "uneven_work",
    "wrong_answer",
}  # fmt: skip


def recorded() -> Recording | None:
    try:
        return msgspec.json.decode(RECORDED.read_bytes(), type=Recording)
    except FileNotFoundError:
        return None


def taken() -> list[Taken]:
    found = recorded()
    return list(found.taken) if found is not None else []


def test_every_rule_that_reads_counters_has_a_pair() -> None:
    assert {pair["rule"] for pair in pairs()} == set(registry.names("rules")) - NOT_BY_COUNTERS
    assert all((recording.PAIRS / pair["source"]).is_file() for pair in pairs())
    assert all("sound" in pair or "before" in pair for pair in pairs())


def test_the_recording_holds_every_kernel() -> None:
    assert all(one.profile is not None and one.profile.source == "ncu" for one in taken())
    wanted = {(number, variant) for number, pair in enumerate(pairs()) for variant in variants(pair)}
    missing = wanted - {(one.pair, one.variant) for one in taken()}
    if missing:
        rules = {pairs()[number]["rule"] for number, _ in missing}
        pytest.skip(f"counters to be taken on a GPU, as tests/cuda/recording.py says: {', '.join(sorted(rules))}")


@pytest.mark.parametrize("one", taken(), ids=lambda one: f"{one.rule}-{one.variant}-{one.pair}")
def test_the_rule_speaks_of_its_fault_and_of_nothing_else(one: Taken) -> None:
    found = recorded()
    assert found is not None
    assert verdict(one, found.device) == ""


@pytest.mark.cuda
def test_the_rules_judge_this_gpu_alike(tmp_path: Path) -> None:
    from cake_tui.backends.cuda.devices import look

    device = look().devices[0]
    wrong = [
        f"{one.rule} {one.variant}: {said}"
        for one in recording.record(device, tmp_path)
        if (said := verdict(one, device))
    ]
    assert wrong == []
