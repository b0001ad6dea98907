"""Peers on the GPU: cuBLAS through CuPy and torch, each in a process of its own, turn by turn with the best kernel."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from cake_tui.backends._peers import PeerProcess
from cake_tui.errors import Ended
from cake_tui.model.device import Device
from cake_tui.model.jobs import Timed, TimePeer
from cake_tui.model.measure import Pair, Series
from cake_tui.model.outcome import LaunchFailed
from cake_tui.model.problem import Shape

if TYPE_CHECKING:  # both import CuPy
    from cake_tui.backends.cuda.lane import Lane, Repeats
    from cake_tui.backends.cuda.subject import Gpu
    from cake_tui.backends.cuda.timing import ReadClock, Work
    from cake_tui.backends.cuda.vault import Vault

KNOWN = {"cublas": "cupy", "torch": "torch"}  # and the module that each needs
# Plain fp32 arithmetic: settings from outside that would round inputs to TF32 are dropped.
DROPPED = ("CUPY_TF32", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG")
MOST_REPEATS = 200
LIMIT_S = 600.0  # of the holder's runs: it has run before


class Peers:
    """The peers of one evaluator, one process a peer, started when first asked for."""

    def __init__(self, device: Device) -> None:
        self._uuid = device.uuid
        self._running: dict[str, PeerProcess] = {}
        self._prepared: dict[str, tuple[object, ...]] = {}

    def of(self, job: TimePeer, shape: Shape, seed: int) -> PeerProcess:
        """Return a peer ready for the job's problem and these inputs; raises Ended for one not known or not here."""
        if job.peer not in KNOWN:
            raise Ended(
                LaunchFailed(reason=f'no peer "{job.peer}" on a GPU; known: {", ".join(sorted(KNOWN))}')
            )  # fmt: skip
        if importlib.util.find_spec(KNOWN[job.peer]) is None:
            raise Ended(LaunchFailed(reason=f"{KNOWN[job.peer]} is not installed"))
        if job.peer not in self._running:
            extra = {"CUDA_VISIBLE_DEVICES": self._uuid}
            self._running[job.peer] = PeerProcess("cake_tui.backends.cuda._peer", job.peer, DROPPED, extra)
        key = (job.problem, shape, seed)
        if self._prepared.get(job.peer) != key:
            self._running[job.peer].prepare(job.problem, shape, seed)
            self._prepared[job.peer] = key
        return self._running[job.peer]

    def drop(self, name: str) -> None:
        """End one, so that the next attempt gets a new process."""
        self._prepared.pop(name, None)
        if name in self._running:
            self._running.pop(name).end()

    def close(self) -> None:
        """End all."""
        for peer in self._running.values():
            peer.end()
        self._running.clear()
        self._prepared.clear()


def time_peer(gpu: Gpu, vault: Vault, repeats: Repeats, peers: Peers, job: TimePeer, clock: ReadClock) -> Timed:
    """Time the peer (the candidate's arm) turn by turn with the holder; raises Ended(LaunchFailed) where it fails.

    While one runs the other's context is idle. Several ranked shapes: a peer is made ready for each in turn.
    """
    from cake_tui.backends.cuda.lane import Lane
    from cake_tui.backends.cuda.timing import Work, timed_shapes

    problem = job.problem
    lanes: list[Lane] = []
    try:
        for position, shape in enumerate(timed_shapes(problem)):
            lanes.append(Lane(gpu, vault, problem, shape, {"holder": job.holder}, job.seed + position, LIMIT_S))
        works = [Work(lane, repeats, {"holder": job.holder}, job.sample_ms) for lane in lanes]
        pairs = []
        before = clock()
        for position in range(max(job.pairs, 1)):
            holder_first = position % 2 == job.seed % 2
            times: dict[str, list[float]] = {"holder": [], "peer": []}
            for work in works:
                for arm in ("holder", "peer") if holder_first else ("peer", "holder"):
                    sample = _holder_us if arm == "holder" else _peer_us
                    times[arm].append(sample(gpu, work, peers, job))
            pairs.append(Pair(problem.ranked(times["holder"]), problem.ranked(times["peer"]), holder_first))
        after = clock()
        version = peers.of(job, lanes[-1].shape, lanes[-1].seed).version
    except Ended:
        peers.drop(job.peer)
        _free(lanes)
        raise
    _free(lanes)
    return Timed(Series(tuple(pairs), before, after), peer_version=version)


def _holder_us(gpu: Gpu, work: Work, peers: Peers, job: TimePeer) -> float:
    from cake_tui.backends.cuda.timing import collect

    work.lead()
    queued = work.lane.queue("holder", work.counts["holder"], 0)
    return collect(gpu, [queued], LIMIT_S)[0].us


def _peer_us(gpu: Gpu, work: Work, peers: Peers, job: TimePeer) -> float:
    peer = peers.of(job, work.lane.shape, work.lane.seed)
    once_us = peer.run(1) / 1e3
    count = min(max(int(job.sample_ms * 1e3 / max(once_us, 0.1)), 1), MOST_REPEATS)
    return peer.run(count, round(job.sample_ms * 1e6)) / 1e3 / count


def _free(lanes: list[Lane]) -> None:
    for lane in lanes:
        lane.free()
