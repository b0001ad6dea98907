"""Wrong, hanging, leaking and crashing kernels: each is charged to itself, and the next one runs as if nothing was."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest

from cake_tui.executors.local import Local
from cake_tui.model.device import Device
from cake_tui.model.jobs import Checked, Lost, Refused, Timed
from cake_tui.model.outcome import WrongAnswer
from tests.cuda.jobs import RANKED, SMOKE, build, check, pairs, problem_of, variant

pytestmark = pytest.mark.cuda

BACK_S = 10.0


@pytest.mark.parametrize(
    ("faults", "failures"),
    [
        (("HALF_OUTPUT",), ("unwritten",)),
        (("NOTHING",), ("unwritten",)),
        (("ACCUMULATES",), ("nan", "stale")),
        (("WORKSPACE", "DIRTY_WORKSPACE"), ("exact", "stale")),
        (("LAST_TERM_MISSING",), ("exact",)),
        (("TF32_INPUTS",), ("precision",)),
        (("ALL_NAN",), ("nan",)),
        (("RACES",), ("race", "exact")),
        (("CHANGES_AN_INPUT",), ("inputs_changed",)),
        (("WRITES_BEHIND",), ("guard",)),
        (("WRITES_BEFORE",), ("guard",)),
        (("WANTS_ALIGNMENT",), ("alignment",)),
        (("SKIPS_WHEN_WRITTEN",), ("stale", "timed_output", "race", "fingerprint")),
    ],
)
def test_a_wrong_kernel_is_refused_for_its_reason(
    executor: Local, device: Device, faults: tuple[str, ...], failures: tuple[str, ...]
) -> None:
    (subject,) = build(executor, variant(device.arch, *faults))
    reply = check(executor, subject)
    assert isinstance(reply, Refused), reply
    assert isinstance(reply.outcome, WrongAnswer)
    assert reply.outcome.failure in failures, reply.outcome


def test_unwritten_elements_are_counted_and_shown(executor: Local, device: Device) -> None:
    half, none = build(executor, variant(device.arch, "HALF_OUTPUT"), variant(device.arch, "NOTHING"))
    for subject, rows, first in ((half, RANKED["M"] // 2, (RANKED["M"] // 2, 0)), (none, RANKED["M"], (0, 0))):
        reply = check(executor, subject)
        assert isinstance(reply, Refused)
        assert isinstance(reply.outcome, WrongAnswer)
        assert reply.outcome.bad_elements == rows * RANKED["N"]
        assert reply.outcome.first_index == first
        assert reply.outcome.found == "nan"


@pytest.fixture
def honest(executor: Local, device: Device) -> Iterator[float]:
    """Yield nothing wrong before; behind the test an honest kernel is checked and timed within the limit."""
    (plain,) = build(executor, variant(device.arch))
    began = executor.replacements
    normal = executor.evaluate(pairs(plain, plain), 60.0)
    assert isinstance(normal, Timed)
    yield normal.series.pairs[-1].holder_us
    since = time.monotonic()
    assert isinstance(check(executor, plain), Checked)
    again = executor.evaluate(pairs(plain, plain), 60.0)
    assert isinstance(again, Timed)
    assert time.monotonic() - since < BACK_S
    assert executor.replacements == began + 1


def test_a_hanging_kernel_is_ended(executor: Local, device: Device, honest: float) -> None:
    (subject,) = build(executor, variant(device.arch, "HANGS"))
    began = time.monotonic()
    reply = check(executor, subject, run_limit_s=1.0)
    assert isinstance(reply, Lost), reply
    assert reply.timed_out
    assert reply.arm == "candidate"
    assert time.monotonic() - began < BACK_S


def test_an_illegal_write_is_named_and_charged(executor: Local, device: Device, honest: float) -> None:
    (subject,) = build(executor, variant(device.arch, "WRITES_FAR"))
    reply = check(executor, subject)
    assert isinstance(reply, Lost), reply
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in reply.reason
    assert not reply.timed_out


def test_a_kernel_that_crashes_while_it_is_timed_is_told_from_the_holder(
    executor: Local, device: Device, honest: float
) -> None:
    plain, bad = build(executor, variant(device.arch), variant(device.arch, "WRITES_FAR"))
    reply = executor.evaluate(pairs(plain, bad), 60.0)
    assert isinstance(reply, Lost), reply
    assert reply.arm == "candidate"


def test_a_holder_that_crashes_is_no_fault_of_the_candidate(executor: Local, device: Device, honest: float) -> None:
    plain, bad = build(executor, variant(device.arch), variant(device.arch, "WRITES_FAR"))
    reply = executor.evaluate(pairs(bad, plain), 60.0)
    assert isinstance(reply, Lost), reply
    assert reply.arm == "holder"


def test_a_kernel_that_hangs_while_it_is_timed_is_ended(executor: Local, device: Device, honest: float) -> None:
    plain, subject = build(
        executor, variant(device.arch), variant(device.arch, "RIGHT_FOR_A_WHILE", "LATER=1500", "HANGS_LATER")
    )
    began = time.monotonic()
    reply = executor.evaluate(pairs(plain, subject, 4, sample_ms=20.0), 60.0)
    assert isinstance(reply, Lost), reply
    assert (reply.timed_out, reply.arm) == (True, "candidate")
    assert time.monotonic() - began < BACK_S


def test_a_kernel_that_keeps_memory_is_refused(executor: Local, device: Device, honest: float) -> None:
    (subject,) = build(executor, variant(device.arch, "LEAKS", shapes=SMOKE))
    reply = check(executor, subject, "smoke")
    assert isinstance(reply, Refused), reply
    assert isinstance(reply.outcome, WrongAnswer)
    assert reply.outcome.failure == "state"


@pytest.mark.parametrize("how", [(), ("STOPS_WRITING",)])
def test_a_kernel_right_only_in_checked_calls_is_refused(executor: Local, device: Device, how: tuple[str, ...]) -> None:
    plain, subject = build(
        executor, variant(device.arch), variant(device.arch, "RIGHT_FOR_A_WHILE", "LATER=3000", *how)
    )  # fmt: skip
    assert isinstance(check(executor, subject), Checked)
    reply = executor.evaluate(pairs(plain, subject, 4, sample_ms=50.0), 60.0)
    assert isinstance(reply, Refused), reply
    assert isinstance(reply.outcome, WrongAnswer)
    assert (reply.outcome.failure, reply.arm) == ("timed_output", "candidate")


def test_an_evaluator_that_wrote_beyond_its_buffers_is_replaced(executor: Local, device: Device, honest: float) -> None:
    (subject,) = build(executor, variant(device.arch, "WRITES_BEHIND"))
    assert isinstance(check(executor, subject), Refused)


def test_strict_precision_refuses_tensor_instructions(executor: Local, device: Device) -> None:
    lowered = variant(device.arch)
    comment = '// asm("mma.sync.aligned")\n'
    (subject,) = build(executor, msgspec.structs.replace(lowered, source=comment + lowered.source))
    reply = check(executor, subject, "full", problem_of(precision="strict"))
    assert isinstance(reply, Refused)
    assert isinstance(reply.outcome, WrongAnswer)
    assert reply.outcome.failure == "precision"
