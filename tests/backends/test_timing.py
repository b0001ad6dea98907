"""Timing through the real evaluator: pairs, repeats, rankings, cache states, what timed launches wrote, peers."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.backends.cpu.timing import timed_shapes
from cake_tui.errors import UserError
from cake_tui.executors.local import Local
from cake_tui.model.jobs import Checked, Refused, Subject, Timed, TimePeer
from cake_tui.model.outcome import WrongAnswer
from cake_tui.model.problem import Problem
from tests.backends.contraction_kernels import (
    RANKED,
    WRONG,
    build,
    check,
    lowered_of,
    pairs,
    plan_of,
    problem_of,
    shape_of,
    source_of,
)

pytestmark = pytest.mark.cc

GOOD = source_of(WRONG / "honest" / "row_by_row.c")


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with Local("cpu", tmp_path_factory.mktemp("store"), PLUGIN.devices()[0]) as made:
        yield made


@pytest.fixture(scope="module")
def good(executor: Local) -> Subject:
    return build(executor, lowered_of(GOOD))[0]


def timed(executor: Local, holder: Subject, candidate: Subject, problem: Problem | None = None) -> Timed:
    reply = executor.evaluate(pairs(holder, candidate, 4, problem), 60.0)
    assert isinstance(reply, Timed), reply
    return reply


def test_order_alternates_and_begins_by_seed(executor: Local, good: Subject) -> None:
    for seed, begins in ((0, True), (1, False)):
        reply = executor.evaluate(msgspec.structs.replace(pairs(good, good, 5), seed=seed), 60.0)
        assert isinstance(reply, Timed)
        assert [pair.holder_first for pair in reply.series.pairs] == [begins ^ (i % 2 == 1) for i in range(5)]


def test_a_kernel_that_does_its_work_eight_times_takes_longer(executor: Local, good: Subject) -> None:
    """The shortest of many samples follows the work, also beside other programs."""
    again = "KERNEL { for (volatile int i = 0; i < 8; i++) once(task, a, b, bias, y, M, N, K); }"
    candidate = build(executor, lowered_of(f"#define entry once\n{GOOD}\n#undef entry\n{again}\n"))[0]
    reply = executor.evaluate(pairs(good, candidate, 12), 60.0)
    assert isinstance(reply, Timed)
    shortest = min(pair.holder_us for pair in reply.series.pairs), min(pair.candidate_us for pair in reply.series.pairs)
    assert shortest[1] > 2.0 * shortest[0]


def test_uneven_work_shows_as_imbalance(executor: Local, good: Subject) -> None:
    cores = PLUGIN.devices()[0].cores
    if cores < 2:
        pytest.skip("one core has nobody to wait for")
    lone = msgspec.structs.replace(lowered_of(GOOD.replace("task[0] * ROWS", "0").replace("ROWS && i < M", "M")))
    plan = msgspec.structs.replace(lone, plans=(plan_of(RANKED, tasks=1),))
    candidate = build(executor, plan)[0]
    imbalance = timed(executor, good, candidate).series.imbalance_pct
    assert imbalance == pytest.approx(100.0 * (cores - 1), rel=0.05)  # one thread has all the work


def test_cold_caches_are_timed_launch_by_launch(executor: Local, good: Subject) -> None:
    cold = timed(executor, good, good, problem_of(cache="cold"))
    assert all(pair.holder_us > 0 and pair.candidate_us > 0 for pair in cold.series.pairs)


@pytest.mark.parametrize("ranking", ["last", "mean", "geom"])
def test_every_ranked_shape_is_run(executor: Local, ranking: str) -> None:
    shapes = (shape_of(16, 24, 8), shape_of(64, 96, 80))
    plans = tuple(plan_of(shape) for shape in shapes)
    idle = GOOD.replace("KERNEL {", "KERNEL {\n    if (M == 16) return;", 1)
    assert idle != GOOD
    good, never = build(executor, *(msgspec.structs.replace(lowered_of(text), plans=plans) for text in (GOOD, idle)))
    problem = problem_of(shapes=shapes, ranking=ranking)
    timed(executor, good, good, problem)
    assert isinstance(check(executor, good, "full", problem), Checked)
    # One that does nothing at the first shape is found out where that shape is timed.
    reply = executor.evaluate(pairs(good, never, 4, problem), 60.0)
    assert isinstance(reply, Timed) == (ranking == "last")


def test_rankings_by_hand() -> None:
    problem = problem_of(shapes=(shape_of(1, 1, 1), shape_of(2, 2, 2)))
    assert timed_shapes(problem) == problem.shapes[1:]
    assert problem.ranked([8.0]) == 8.0
    assert msgspec.structs.replace(problem, ranking="mean").ranked([2.0, 8.0]) == 5.0
    assert msgspec.structs.replace(problem, ranking="geom").ranked([2.0, 8.0]) == pytest.approx(4.0)


def test_wrong_holder_is_told_from_a_wrong_candidate(executor: Local, good: Subject) -> None:
    wrong = build(executor, lowered_of(source_of(WRONG / "zeros.c")))[0]
    for holder, candidate, arm in ((wrong, good, "holder"), (good, wrong, "candidate")):
        reply = executor.evaluate(pairs(holder, candidate), 60.0)
        assert isinstance(reply, Refused)
        assert isinstance(reply.outcome, WrongAnswer)
        assert (reply.arm, reply.outcome.failure) == (arm, "timed_output")


def test_first_setting_is_held_as_truth_where_the_user_says_so(executor: Local, good: Subject) -> None:
    first = problem_of(family=None, value="", reference_is_first=True)
    alike = build(executor, lowered_of(source_of(WRONG / "honest" / "in_blocks.c")))[0]
    unlike = build(executor, lowered_of(source_of(WRONG / "last_row_term_missing.c")))[0]
    job = pairs(good, alike, 2, first)
    assert isinstance(check(executor, good, "baseline", first), Checked)
    assert isinstance(executor.evaluate(job, 60.0), Timed)
    agreed = check(executor, alike, "full", first, truth=good)
    assert isinstance(agreed, Checked), agreed
    refused = check(executor, unlike, "full", first, truth=good)
    assert isinstance(refused, Refused)
    assert isinstance(refused.outcome, WrongAnswer)


# --- peers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["relu(acc + bias[n])", "gelu_erf(acc + bias[n])"])
def test_numpy_is_timed_side_by_side_with_its_threads_stated(executor: Local, value: str) -> None:
    shape = shape_of(96, 96, 96)
    subject = build(executor, lowered_of(GOOD, shape))[0]
    problem = problem_of(shape, value)
    reply = executor.evaluate(TimePeer(problem, "numpy", subject, 3, seed=2, sample_ms=2.0), 60.0)
    assert isinstance(reply, Timed), reply
    assert reply.peer_version.startswith("numpy ")
    assert reply.peer_threads is None or 1 <= reply.peer_threads <= 1024
    assert len(reply.series.pairs) == 3
    assert all(math.isfinite(pair.candidate_us) and pair.candidate_us > 0 for pair in reply.series.pairs)


def test_peer_runs_every_ranked_shape(executor: Local) -> None:
    shapes = (shape_of(16, 24, 8), shape_of(64, 96, 80))
    subject = build(
        executor, msgspec.structs.replace(lowered_of(GOOD), plans=tuple(plan_of(shape) for shape in shapes))
    )[0]
    problem = problem_of(shapes=shapes, ranking="mean")
    for _ in range(2):  # the second time with the processes of the first
        reply = executor.evaluate(TimePeer(problem, "numpy", subject, 2, seed=2, sample_ms=1.0), 60.0)
        assert isinstance(reply, Timed), reply
        assert len(reply.series.pairs) == 2


def test_unknown_peer_names_the_known_ones(executor: Local, good: Subject) -> None:
    with pytest.raises(UserError, match=r'no peer "nunpy" \(did you mean "numpy"\?\); known on the CPU: numpy'):
        executor.evaluate(TimePeer(problem_of(), "nunpy", good, 1, seed=2), 60.0)


def test_peer_that_dies_is_said_and_started_again(executor: Local, good: Subject) -> None:
    job = TimePeer(problem_of(), "numpy", good, 2, seed=2, sample_ms=1.0)
    assert isinstance(executor.evaluate(job, 60.0), Timed)
    peers = [
        pid for pid in children_of(executor._evaluator.pid) if b"_peer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert len(peers) == 1  # the fastest of three
    os.kill(peers[0], signal.SIGKILL)
    reply = executor.evaluate(job, 60.0)
    assert isinstance(reply, Refused)
    assert "peer numpy ended" in reply.outcome.reason
    assert isinstance(executor.evaluate(job, 60.0), Timed)


def children_of(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found
