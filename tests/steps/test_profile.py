"""The profile without a profiler: work of the problem over time against the device's peaks, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cake_tui.model.facts import StaticFacts
from cake_tui.model.measure import Pair, Series
from cake_tui.steps.profile import counters, imbalance_pct
from tests.rules.evidence import evidence


def problem(**changes: Any) -> Any:
    return evidence({"problem": changes}).problem


def test_shares_of_both_peaks() -> None:
    base = evidence()
    seen = counters(
        base.problem, base.device, 1500.0, StaticFacts(vector_share=0.9, spill_stores=2, spill_loads=5), 7.0
    )
    assert seen.source == "static+model"
    # 3.147776 MB in 1.5 ms are 2.0985 GB/s of 20; 0.268 GFLOP in 1.5 ms are 178.957 GFLOP/s of 300
    assert seen.memory_throughput_pct == pytest.approx(10.4926, rel=1e-4)
    assert seen.sm_busy_pct == pytest.approx(59.652, rel=1e-4)
    assert (seen.vector_share, seen.spills, seen.imbalance_pct) == (0.9, 7, 7.0)
    assert seen.sm_occupancy_pct is None
    assert seen.shared_mem_bank_conflicts is None


@pytest.mark.parametrize("time_us", [None, 0.0])
def test_without_a_time_only_the_build_tells(time_us: float | None) -> None:
    base = evidence()
    seen = counters(base.problem, base.device, time_us, StaticFacts(registers=42))
    assert seen.source == "static"
    assert seen.memory_throughput_pct is None
    assert seen.sm_busy_pct is None
    assert seen.regs_per_thread == 42
    assert seen.spills is None


def test_unknown_peaks_are_no_guess() -> None:
    base = evidence({"device": {"peak_gflops": {"none": True}, "memory_gbps": {"none": True}}})
    seen = counters(base.problem, base.device, 1500.0)
    assert (seen.source, seen.memory_throughput_pct, seen.sm_busy_pct) == ("static", None, None)


def test_limit_of_shared_memory_is_a_number_where_there_is_one() -> None:
    base = evidence({"device": {"smem_per_block_bytes": 232448}})
    assert counters(base.problem, base.device, None).max_smem_limit == 232448
    assert counters(base.problem, evidence().device, None).max_smem_limit is None


def test_imbalance_is_the_median_of_the_series_that_have_one() -> None:
    pair = (Pair(1.0, 1.0, True),)
    series = [Series(pair, imbalance_pct=value) for value in (3.0, None, 50.0, 4.0)]
    assert imbalance_pct(series) == 4.0
    assert imbalance_pct([Series(pair)]) is None
    assert imbalance_pct([]) is None
