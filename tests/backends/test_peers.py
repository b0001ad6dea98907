"""A peer beside the kernel: each sleeps while the other runs, and a sample is worth its fastest batch."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator

import pytest

from cake_tui.backends.cpu._rates import ROUNDS, Bench
from cake_tui.backends.cpu.device import local_device
from cake_tui.backends.cpu.peers import LONG_NS, Peer, fastest_batch, settle
from tests.backends.contraction_kernels import problem_of, shape_of

MS = 1_000_000
SHAPE = shape_of(192, 160, 224)


class Batches:
    """Answers with the given times in turn, then with the last one."""

    def __init__(self, *times_ns: int) -> None:
        self.times = list(times_ns)
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


@pytest.mark.parametrize(
    ("times", "sample_ns", "fastest", "count"),
    [
        ((4 * MS, 1 * MS, 9 * MS), 10 * MS, 1 * MS, 10),
        ((1 * MS,), 10 * MS, 1 * MS, 10),
        ((30 * MS, 20 * MS, 25 * MS), 10 * MS, 20 * MS, 4),
        ((LONG_NS, 1), 10 * MS, LONG_NS, 1),
        ((LONG_NS // 2, LONG_NS // 2, 1), 10 * MS, LONG_NS // 2, 2),
        ((7 * MS, 1), 0, 7 * MS, 1),
    ],
)
def test_the_fastest_batch_of_a_sample_counts(times: tuple[int, ...], sample_ns: int, fastest: int, count: int) -> None:
    run = Batches(*times)
    assert fastest_batch(run, sample_ns) == fastest
    assert run.count == count


def test_waiting_for_sleep_ends_with_it_and_does_not_last_for_ever() -> None:
    looks = iter([False, False, True])
    settle(lambda: next(looks))
    assert next(looks, None) is None
    began = time.monotonic()
    settle(lambda: False)
    assert time.monotonic() - began < 30.0


def sleeps(asleep: Callable[[], bool]) -> bool:
    """Whether it sleeps in the end: on a busy machine a thread may have to wait even for that."""
    for _ in range(200):
        settle(asleep)
        if asleep():
            return True
    return False


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer("numpy")
    yield made
    made.end()


def test_the_peers_threads_sleep_when_its_turn_is_over(peer: Peer) -> None:
    peer.prepare(problem_of(SHAPE), SHAPE, 1)
    for _ in range(5):
        assert peer.run(20, 5 * MS) > 0
        assert sleeps(peer.asleep)


def test_a_sample_of_the_peer_is_worth_one_batch_and_not_all(peer: Peer) -> None:
    peer.prepare(problem_of(SHAPE), SHAPE, 1)
    sample_ns = 100 * MS  # hundreds of batches
    assert 0 < peer.run(1, sample_ns) < sample_ns // 2


@pytest.mark.cc
def test_the_pool_sleeps_when_its_turn_is_over() -> None:
    bench = Bench(local_device())
    launch = bench._launch("multiply_add", ctypes.addressof(bench.out), ROUNDS)
    for _ in range(3):
        bench.runtime.run([launch])
        assert sleeps(bench.runtime.asleep)
