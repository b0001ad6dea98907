"""Work of a problem, weighed as its ranking weighs times; figures by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cake_tui.ir.work import work
from tests.rules.evidence import evidence


def problem(**changes: Any) -> Any:
    return evidence({"problem": changes}).problem


def test_work_of_a_matmul_is_its_arithmetic_and_each_buffer_once() -> None:
    least = work(problem())
    assert least.flops == 2 * 512**3
    assert least.bytes_moved == 4 * (3 * 512 * 512 + 512)
    assert least.throughput_tflops(1000.0) == pytest.approx(0.268435456)


SHAPES = [{"sizes": [["M", 10], ["N", 10], ["K", 10]]}, {"sizes": [["M", 40], ["N", 10], ["K", 10]]}]


@pytest.mark.parametrize(("ranking", "flops"), [("last", 8000.0), ("mean", 5000.0), ("geom", 4000.0)])
def test_work_is_weighed_as_the_times_are(ranking: str, flops: float) -> None:
    assert work(problem(shapes=SHAPES, ranking=ranking)).flops == pytest.approx(flops)


def test_buffer_that_is_read_and_written_counts_twice() -> None:
    buffers = [{"name": "x", "dtype": "f16", "shape": ["M", "N"], "role": "inout"}]
    assert work(problem(buffers=buffers)).bytes_moved == 2 * 2 * 512 * 512


@pytest.mark.parametrize("minimum", ["0", "", "2*M*Q", "M/0", "-M", "M**", "1e400", "nan"])
def test_work_that_nobody_stated_is_unknown(minimum: str) -> None:
    least = work(problem(minimum_work=minimum))
    assert least.flops is None
    assert least.throughput_tflops(1.0) is None


def test_one_shape_without_a_value_makes_the_whole_unknown() -> None:
    assert work(problem(shapes=SHAPES, ranking="mean", minimum_work="M - 10")).flops is None
