"""The real evaluator refuses every wrong kernel for its own reason; honest ones pass, also after a crash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cake_tui.backends.cpu import PLUGIN
from cake_tui.executors.local import Local
from cake_tui.model.jobs import Checked, EvaluatorReply, Lost, Refused, Subject, Timed
from cake_tui.model.lowered import Argument, Lowered
from cake_tui.model.outcome import LaunchFailed, WrongAnswer
from tests.backends.contraction_kernels import (
    RANKED,
    SMOKE,
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

KERNELS = sorted(WRONG.glob("*.c"))
HONEST = sorted((WRONG / "honest").glob("*.c"))


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with Local("cpu", tmp_path_factory.mktemp("store"), PLUGIN.devices()[0]) as made:
        build(made, *(one for path in (*KERNELS, HONEST[0]) for one in both_builds(path)))  # all at once, in parallel
        yield made


def both_builds(path: Path) -> tuple[Lowered, Lowered]:
    source = source_of(path)
    workspace = "/* workspace */" in source
    return tuple(lowered_of(source, shape, workspace=workspace) for shape in (SMOKE, RANKED))  # type: ignore[return-value]


def named(reply: EvaluatorReply) -> str:
    """Say in one word how a job ended."""
    match reply:
        case Refused(outcome=WrongAnswer(failure=failure)):
            return failure
        case Lost(timed_out=True):
            return "TimedOut"
        case Lost():
            return "Crashed"
        case _:
            return type(reply).__name__


def ending(executor: Local, path: Path, holder: Subject) -> tuple[str, EvaluatorReply]:
    smoke, full = build(executor, *both_builds(path))
    reply = check(executor, smoke, "smoke")
    if isinstance(reply, Checked):
        reply = check(executor, full, "full")
    if isinstance(reply, Checked):
        reply = executor.evaluate(pairs(holder, full, 40, sample_ms=5.0), 60.0)
        if isinstance(reply, Refused):
            assert reply.arm == "candidate"
    return named(reply), reply


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_wrong_kernel_is_refused_for_its_reason(executor: Local, path: Path) -> None:
    expected = re.match(r"/\* refused: (\w+)\.", path.read_text(encoding="utf-8"))
    assert expected, f"{path.name} names no reason"
    holder = build(executor, both_builds(HONEST[0])[1])[0]
    found, reply = ending(executor, path, holder)
    assert found == expected[1], reply


def test_there_are_enough_of_them() -> None:
    assert len(KERNELS) >= 25


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
@pytest.mark.parametrize("k", [17, 512, 4096])
def test_honest_orders_of_summation_pass(executor: Local, path: Path, k: int) -> None:
    smoke, full = shape_of(19, 23, k), shape_of(24, 40, k)
    problem = problem_of(full)
    source = source_of(path)
    subjects = build(executor, lowered_of(source, smoke), lowered_of(source, full))
    for subject, depth in zip(subjects, ("smoke", "full")):
        reply = check(executor, subject, depth, problem)
        assert isinstance(reply, Checked), reply
        assert reply.agreement.deterministic
        assert reply.agreement.worst_unit < 80.0
        assert 0.0 < reply.agreement.bound_share < 0.5


def test_good_kernel_after_each_way_of_dying_has_its_normal_result(executor: Local) -> None:
    good = build(executor, both_builds(HONEST[0])[1])[0]
    calm = executor.evaluate(pairs(good, good, 4), 60.0)
    assert isinstance(calm, Timed)
    for name in ("null_pointer", "hangs", "exits", "stack_overflow", "background_thread", "writes_behind"):
        bad = build(executor, *both_builds(WRONG / f"{name}.c"))[0]
        replaced = executor.replacements
        assert not isinstance(check(executor, bad, "smoke"), Checked)
        assert executor.replacements == replaced + 1
        after = executor.evaluate(pairs(good, good, 4), 60.0)
        assert isinstance(after, Timed), after
        agreed = check(executor, good, "full")
        assert isinstance(agreed, Checked), agreed


def test_last_word_names_the_buffer_that_was_overrun(executor: Local) -> None:
    subject = build(executor, lowered_of(source_of(WRONG / "reads_behind.c"), SMOKE))[0]
    reply = check(executor, subject, "smoke")
    assert isinstance(reply, Lost)
    assert reply.signal == "SIGSEGV"
    assert "12 bytes past the end of b" in reply.reason


def test_grid_beyond_the_limit_is_refused_with_its_numbers(executor: Local) -> None:
    subject = build(executor, lowered_of(source_of(HONEST[0])))[0]
    for tasks in (2**31, 70_000 * 70_000, 0):
        plan = plan_of(RANKED)
        launch = msgspec.structs.replace(plan.launches[0], grid=(tasks, 1, 1))
        lowered = msgspec.structs.replace(subject.lowered, plans=(msgspec.structs.replace(plan, launches=(launch,)),))
        reply = check(executor, Subject(subject.binary_sha256, lowered), "full")
        assert isinstance(reply, Refused)
        assert isinstance(reply.outcome, LaunchFailed)
        assert f"grid.x {tasks}" in reply.outcome.reason
        assert (reply.outcome.limit, reply.outcome.asked, reply.outcome.available) == ("grid.x", tasks, 2**31 - 1)


def test_size_that_is_no_int_is_refused_by_its_name(executor: Local) -> None:
    shape = shape_of(1, 1, 2**31)
    buffers = tuple(
        msgspec.structs.replace(spec, shape=tuple("1" if size == "K" else size for size in spec.shape))
        for spec in problem_of().buffers
    )
    problem = problem_of(shape, "a[m, n] + b[m, n]", family="elementwise", buffers=buffers)
    subject = build(executor, lowered_of(source_of(HONEST[0]), shape))[0]
    reply = check(executor, subject, "full", problem)
    assert isinstance(reply, Refused)
    assert "K = 2147483648" in reply.outcome.reason


def test_missing_entry_and_unknown_buffer_are_launch_failures(executor: Local) -> None:
    subject = build(executor, lowered_of(source_of(HONEST[0])))[0]
    plan = subject.lowered.plans[0]
    for launch, word in (
        (msgspec.structs.replace(plan.launches[0], entry="elsewhere"), "elsewhere"),
        (msgspec.structs.replace(plan.launches[0], arguments=(Argument("buffer", "c"),)), "buffer c"),
        (msgspec.structs.replace(plan.launches[0], arguments=(Argument("tensor_map", "a"),)), "tensor_map a"),
        (msgspec.structs.replace(plan.launches[0], arguments=(Argument("size", "M"),) * 25), "25 arguments > 24"),
    ):
        lowered = msgspec.structs.replace(subject.lowered, plans=(msgspec.structs.replace(plan, launches=(launch,)),))
        reply = check(executor, Subject(subject.binary_sha256, lowered), "full")
        assert isinstance(reply, Refused)
        assert isinstance(reply.outcome, LaunchFailed)
        assert word in reply.outcome.reason
