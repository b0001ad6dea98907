"""Peers: libraries that do the same work in processes of their own, timed turn by turn with the best kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cake_tui.backends._peers import PeerProcess
from cake_tui.backends.cpu.clock import read_clock
from cake_tui.backends.cpu.runtime import Runtime
from cake_tui.backends.cpu.subject import Libraries
from cake_tui.backends.cpu.timing import Bench, Repeats, repeats_for, timed_shapes
from cake_tui.errors import Ended, UserError, did_you_mean
from cake_tui.model.jobs import Timed, TimePeer
from cake_tui.model.measure import Pair, Series
from cake_tui.model.problem import Problem, Shape

KNOWN = ("numpy",)
PROCESSES = 3  # of which the fastest is kept: where a process's memory and threads land changes its speed
# Threads of OpenBLAS spin for 2^20 cycles, a third of a millisecond, so that they stay awake within a sample and
# sleep beside the kernel; its settings from outside are dropped, so that it uses all cores.
BLAS_TIMEOUT = "20"
DROPPED = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_NUM_THREADS",
    "GOTO_NUM_THREADS",
)  # fmt: skip
# A sample is a row of batches of a millisecond, of which the fastest counts, for kernel and peer alike: other programs
# make any of them slower, none faster, and longer ones are hardly ever left alone on a machine that others use.
BATCH_MS = 1.0
LEAST_BATCHES = 10
LONG_NS = 100_000_000  # a sample that took so long is not made longer for the least number of batches
SETTLE_S = 0.05  # at most, for threads to fall asleep; usually a third of a millisecond
LOOK_S = 0.0005


def fastest_batch(run: Callable[[], int], sample_ns: int) -> int:
    """Run batches until `sample_ns` have passed, ten at least unless they are long; return the shortest time."""
    best = spent = run()
    count = 1
    while spent < sample_ns or (sample_ns > 0 and count < LEAST_BATCHES and spent < LONG_NS):
        ns = run()
        best, spent, count = min(best, ns), spent + ns, count + 1
    return best


def settle(asleep: Callable[[], bool]) -> None:
    """Wait until threads sleep, for a twentieth of a second at most: one that something woke is no reason to stop."""
    until = time.monotonic() + SETTLE_S
    while not asleep() and time.monotonic() < until:
        time.sleep(LOOK_S)


class Peer(PeerProcess):
    """One running peer process; raises Ended(LaunchFailed) where it ends or fails, for that is no bug of ours."""

    def __init__(self, name: str) -> None:
        super().__init__("cake_tui.backends.cpu._peer", name, DROPPED, {"OPENBLAS_THREAD_TIMEOUT": BLAS_TIMEOUT})

    def run(self, repeats: int, sample_ns: int = 0) -> int:
        """Have it do the work `repeats` times, in batches for `sample_ns`; return nanoseconds of the fastest batch.

        Its threads sleep when this returns, where nothing else wakes them.
        """
        ns = super().run(repeats, sample_ns)
        settle(self.asleep)
        return ns

    def repeats_for(self, batch_ms: float) -> int:
        """Return how often makes a batch."""
        return repeats_for(self.run, batch_ms)

    def asleep(self) -> bool:
        """Say whether none of its threads runs or would like to."""
        tasks = Path(f"/proc/{self.pid}/task")
        try:
            states = [(task / "stat").read_bytes().rpartition(b") ")[2][:1] for task in tasks.iterdir()]
        except OSError:  # a thread ended meanwhile: look again
            return False
        return b"R" not in states


class Peers:
    """The peers of one evaluator, one process a peer and shape, started when first asked for."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._running: dict[tuple[str, Problem, Shape], Peer] = {}

    def of(self, job: TimePeer, shape: Shape) -> Peer:
        """Return the fastest of three processes for this peer; raises UserError for a name that is not known."""
        if job.peer not in KNOWN:
            raise UserError(
                f'no peer "{job.peer}"{did_you_mean(job.peer, KNOWN)}; known on the CPU: {", ".join(KNOWN)}'
            )
        key = (job.peer, job.problem, shape)
        if key not in self._running:
            self._end_others(job)
            tried: list[tuple[float, int, Peer]] = []
            for number in range(PROCESSES):
                peer = Peer(job.peer)
                peer.prepare(job.problem, shape, job.seed)
                count = peer.repeats_for(_batch_ms(job))
                peer.run(count, _sample_ns(job))  # which warms it up
                tried.append((peer.run(count, _sample_ns(job)) / count, number, peer))
            tried.sort(key=lambda one: one[:2])
            for _, _, peer in tried[1:]:
                peer.end()
            self._running[key] = tried[0][2]
        return self._running[key]

    def _end_others(self, job: TimePeer) -> None:
        """End peers of other problems: one problem is tuned at a time."""
        for key in [key for key in self._running if key[:2] != (job.peer, job.problem)]:
            self._running.pop(key).end()

    def close(self) -> None:
        """End all."""
        for peer in self._running.values():
            peer.end()
        self._running.clear()


def time_peer(runtime: Runtime, libraries: Libraries, repeats: Repeats, peers: Peers, job: TimePeer) -> Timed:
    """Time the peer (the candidate's arm) turn by turn with the holder; raises Ended(LaunchFailed) where it fails.

    While one of them runs the threads of the other sleep. A time is that of a sample's fastest batch.
    """
    with runtime.pinned():
        return _time_peer(runtime, libraries, repeats, peers, job)


def _time_peer(runtime: Runtime, libraries: Libraries, repeats: Repeats, peers: Peers, job: TimePeer) -> Timed:
    problem, sample_ns = job.problem, _sample_ns(job)
    shapes = timed_shapes(problem)
    benches: dict[Shape, Bench] = {}
    arms: Mapping[Shape, tuple[Peer, int]] = {}
    try:
        for position, shape in enumerate(shapes):
            benches[shape] = Bench(runtime, libraries, problem, shape, {"holder": job.holder}, job.seed + position)
        arms = {shape: _prepared(peers, job, shape, job.seed + position) for position, shape in enumerate(shapes)}
        counts = {shape: repeats.of(bench, "holder", job.holder, _batch_ms(job)) for shape, bench in benches.items()}
        before = read_clock(runtime)
        pairs = []
        for position in range(max(job.pairs, 1)):
            holder_first = position % 2 == job.seed % 2
            times: dict[str, list[float]] = {"holder": [], "peer": []}
            for shape, bench in benches.items():
                peer, peer_count = arms[shape]
                for name in ("holder", "peer") if holder_first else ("peer", "holder"):
                    if name == "holder":
                        ns = fastest_batch(partial(_batch_ns, bench, counts[shape]), sample_ns)
                        settle(runtime.asleep)
                        times[name].append(ns / counts[shape] / 1e3)
                    else:
                        times[name].append(peer.run(peer_count, sample_ns) / peer_count / 1e3)
            pairs.append(Pair(problem.ranked(times["holder"]), problem.ranked(times["peer"]), holder_first))
        after = read_clock(runtime)
        last = shapes[-1]
        return Timed(
            Series(pairs=tuple(pairs), before=before, after=after),
            peer_threads=arms[last][0].threads, peer_version=arms[last][0].version,
        )  # fmt: skip
    except Ended:
        peers.close()  # the next attempt gets new processes
        raise
    finally:
        for bench in benches.values():
            bench.free()


def _prepared(peers: Peers, job: TimePeer, shape: Shape, seed: int) -> tuple[Peer, int]:
    peer: Any = peers.of(job, shape)
    peer.prepare(job.problem, shape, seed)
    return peer, peer.repeats_for(_batch_ms(job))


def _batch_ns(bench: Bench, count: int) -> int:
    return bench.sample("holder", count).ns


def _batch_ms(job: TimePeer) -> float:
    return min(BATCH_MS, job.sample_ms)


def _sample_ns(job: TimePeer) -> int:
    return round(job.sample_ms * 1e6)
