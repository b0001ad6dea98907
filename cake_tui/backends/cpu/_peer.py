"""A peer process: numpy doing the kernel's work on the same inputs, in place where it can, with all its threads."""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cake_tui.backends._inputs import make_inputs
from cake_tui.backends._parent import die_with
from cake_tui.backends._peers import PeerAnswer, PeerOrder, biased, is_plain_product, say, serve
from cake_tui.backends._reference import Referee
from cake_tui.backends.cpu.device import core_processors
from cake_tui.backends.cpu.peers import fastest_batch
from cake_tui.ir.families import operands
from cake_tui.model.problem import Problem


def main() -> None:
    """Answer orders line by line until there are no more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args()
    die_with(options.parent)
    np.ones((64, 64), np.float32) @ np.ones((64, 64), np.float32)  # the library's threads start
    _spread_threads()
    say(PeerAnswer(threads=_threads(), version=f"numpy {np.__version__}"))
    serve(_prepare)


def _prepare(order: PeerOrder) -> Callable[[int, int], int]:
    """Make the order's work ready; return what runs batches of it and gives the fastest one's nanoseconds."""
    assert order.problem is not None
    assert order.shape is not None
    work = _work(order.problem, make_inputs(order.problem, order.shape, "default", order.seed))
    work()
    return lambda repeats, sample_ns: fastest_batch(partial(_batch, work, repeats), sample_ns)


def _batch(work: Callable[[], Any], repeats: int) -> int:
    """Do the work so often; return nanoseconds."""
    begin = time.perf_counter_ns()
    for _ in range(repeats):
        work()
    return time.perf_counter_ns() - begin


def _work(problem: Problem, inputs: dict[str, Any]) -> Callable[[], Any]:
    """Return the work to time: a matrix product, bias and ReLU in place; other values as numpy evaluates them."""
    factors = operands(problem)
    referee = Referee(problem, np, _erf)
    if factors is None or not is_plain_product(problem):
        return lambda: referee.in_single(inputs)
    a, b = (inputs[spec.name] for spec in factors)
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    if (found := biased(problem, "relu")) is not None:
        bias = inputs[found.name]

        def fused() -> None:
            np.matmul(a, b, out=out)
            np.add(out, bias, out=out)
            np.maximum(out, 0.0, out=out)

        return fused

    def general() -> Any:
        np.matmul(a, b, out=out)
        return referee.value_of(out, inputs)

    return general


def _erf(values: Any) -> Any:
    """Compute the error function in single precision (Abramowitz and Stegun 7.1.26 has too few digits; 7.1.28)."""
    x = np.abs(values)
    coefficients = (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784)
    poly = np.zeros_like(x)
    for coefficient in coefficients:
        poly = (poly + np.float32(coefficient)) * x
    poly += 1.0
    poly *= poly
    poly *= poly
    poly *= poly
    poly *= poly
    return np.copysign(1.0 - 1.0 / poly, values)


def _spread_threads() -> None:
    """Give each thread a core of its own, as the kernel's threads have: two that meet on one core may stay there."""
    tasks = sorted(int(task.name) for task in Path("/proc/self/task").iterdir())
    processors = core_processors()
    if len(tasks) == len(processors) > 1:
        for task, processor in zip(tasks, processors, strict=True):
            os.sched_setaffinity(task, {processor})


def _threads() -> int | None:
    """Ask the matrix library for its number of threads; None where it does not say."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.split(maxsplit=5)[-1]
        if "openblas" not in path:
            continue
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_", "openblas_get_num_threads"):
            if hasattr(library, name):
                return int(getattr(library, name)())
    return None


if __name__ == "__main__":
    main()
