"""What every executor keeps, whichever the registry finds: jobs in, replies out, all processes ended at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cake_tui import ir, kernels, registry
from cake_tui.executors import Executor
from cake_tui.ir.opaque import Opaque
from cake_tui.model.device import Device
from cake_tui.model.jobs import (
    BuildJob,
    Built,
    Check,
    Checked,
    EvaluatorReply,
    SelfTest,
    SelfTested,
    Subject,
    TimePairs,
)
from cake_tui.model.jobs import Timed as TimedReply
from cake_tui.model.lowered import Lowered

PROBLEM = kernels.load("matmul_bias_relu", target="c", shapes=("M=16,N=8,K=8",))
DEVICE: Device = registry.load("backends", "simulated").device("ridge")


@pytest.fixture(params=registry.names("executors"))
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Executor]:
    made: Executor = registry.load("executors", request.param)("simulated", tmp_path / "store", DEVICE)
    yield made
    made.close()


def lowered(structure: str) -> Lowered:
    schedule = ir.default_schedule(PROBLEM, structure, "c", DEVICE)
    program = ir.build(PROBLEM, schedule, "c", DEVICE, runtime_sizes=False)
    assert not isinstance(program, Opaque)
    return ir.lower(program, "c", DEVICE.arch, PROBLEM.shapes)


def built(executor: Executor) -> list[Subject]:
    sources = [lowered("naive"), lowered("packed")]
    replies = dict(executor.build([BuildJob(one) for one in sources]))
    assert set(replies) == {0, 1}
    subjects = []
    for position, reply in sorted(replies.items()):
        assert isinstance(reply, Built)
        subjects.append(Subject(reply.binary_sha256, sources[position]))
    return subjects


def test_every_kind_of_job_has_its_reply(executor: Executor) -> None:
    naive, packed = built(executor)
    replies = [
        executor.evaluate(SelfTest(PROBLEM), 60.0),
        executor.evaluate(Check(PROBLEM, packed, "full", seed=1), 60.0),
        executor.evaluate(TimePairs(PROBLEM, naive, packed, pairs=3, seed=1, sample_ms=1.0), 60.0),
    ]
    assert [type(reply) for reply in replies] == [SelfTested, Checked, TimedReply]
    assert isinstance(replies[2], TimedReply)
    assert len(replies[2].series.pairs) == 3
    for reply in replies:
        assert msgspec.json.decode(msgspec.json.encode(reply), type=EvaluatorReply) == reply


def test_equal_sources_are_one_binary_and_none_is_no_work(executor: Executor) -> None:
    replies = dict(executor.build([BuildJob(lowered("naive")), BuildJob(lowered("naive"))]))
    assert replies[0].binary_sha256 == replies[1].binary_sha256  # type: ignore[union-attr]
    assert list(executor.build([])) == []


def test_what_the_caller_raises_while_it_waits_travels_on(executor: Executor) -> None:
    class Enough(Exception):
        pass

    def wait() -> None:
        raise Enough

    with pytest.raises(Enough):
        executor.evaluate(SelfTest(PROBLEM), 60.0, wait)
    assert isinstance(executor.evaluate(SelfTest(PROBLEM), 60.0), SelfTested)


def test_closing_twice_does_no_harm(executor: Executor) -> None:
    built(executor)
    executor.close()
    executor.close()
