"""This machine: compilers in parallel, one evaluator for the device and a warm spare."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cake_tui import registry
from cake_tui.errors import ENVIRONMENT, DeviceLost, UserError
from cake_tui.executors import ExecutorFactory, OnFull, Wait, _leash
from cake_tui.executors._child import Child
from cake_tui.executors._inspect import Limits, inspect
from cake_tui.executors._patience import TICK_S, Limit
from cake_tui.executors._pool import Pool, signal_name
from cake_tui.executors._room import Room
from cake_tui.model.device import Device
from cake_tui.model.jobs import (
    BuildJob,
    BuildReply,
    EvaluatorJob,
    EvaluatorReply,
    Inspect,
    Inspected,
    Lost,
    Refused,
    TimePairs,
    TimePeer,
)
from cake_tui.model.outcome import WrongAnswer

START_S = 60.0  # numpy, the runtime's compile; usually a fifth of a second
STOPPED_S = 2.0  # a process that a kernel stopped has at least so long to go on
MEMORY_SHARE = 0.6  # of the machine's, for one evaluator


class Local:
    """Runs jobs of one backend on one device of this machine; binaries and build records live in `store`.

    Must be made and used in one thread that lives as long as it does (the evaluator dies with that thread).
    `parallel` compilers run at once (default: the processor's cores that the device leaves). While a kernel is
    timed compilers still at work are stopped and go on afterwards, unless the backend says that they do no harm.
    """

    def __init__(
        self, backend_name: str, store: Path, device: Device, parallel: int = 0, memory_bytes: int = 0
    ) -> None:
        self.store = Path(store).absolute()
        self.device = device
        self.memory_bytes = memory_bytes or int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)
        self.replacements = 0
        self._backend_name = backend_name
        self._backend: Any = registry.load("backends", backend_name)
        self._mark = secrets.token_hex(16)
        self._closed = False
        self._room = Room(self.store)
        parallel = parallel or max(min(device.cores, len(os.sched_getaffinity(0))), 1)
        self._pool = Pool(self._backend, self.store, device, parallel, self._room, self._mark)
        self.store.mkdir(parents=True, exist_ok=True)
        _sweep_leftovers(self.store)
        self._leash = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_leash.__file__), self._mark],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._evaluator = self._start()
        self._spare: Child | None = None

    def wait_for_room(self, on_full: OnFull) -> None:
        """Have `on_full` wait where a file of the store finds no space, instead of raising."""
        self._room.on_full = on_full

    # --- builds -----------------------------------------------------------------------------------------

    def build(self, jobs: Sequence[BuildJob], wait: Wait | None = None) -> Iterator[tuple[int, BuildReply]]:
        """Compile all, as many at once as the machine has cores, and yield (position, reply) as each ends.

        Equal jobs are compiled once; what is in the store is not compiled again. Leaving the iterator, or an
        exception from `wait`, ends the compilers at work. Raises UserError (ENVIRONMENT) without a compiler.
        """
        return self._pool.build(jobs, wait)

    def build_ahead(self, jobs: Sequence[BuildJob]) -> None:
        """Have compilers work on these beside what is evaluated; `build` of an equal job takes its reply over.

        Nothing happens where that would disturb what is timed. Raises UserError (ENVIRONMENT) without a compiler.
        """
        if self.builds_beside_timing:
            for job in jobs:
                if self._backend.build_in_process(job, self.device) is None:
                    self._pool.begin(job)
            self._pool.step()

    # --- evaluations ------------------------------------------------------------------------------------

    def evaluate(self, job: EvaluatorJob, timeout_s: float, wait: Wait | None = None) -> EvaluatorReply:
        """Run one job; `Lost` when the evaluator died, hung or took too much memory (it has been replaced then).

        `timeout_s` counts only time that was had. An exception from `wait` kills the evaluator at work, since
        what it was doing cannot be taken back, and travels on. Raises UserError from the evaluator as it is
        and RuntimeError with a traceback for a bug in it.
        """
        timed = isinstance(job, TimePairs | TimePeer)
        wait = self._pause_builds(timed, wait)
        try:
            if self._evaluator.has_ended():  # what the last kernel left behind got it, after its reply
                self._replace()
            self._await(self._evaluator, wait)
            self._spare = self._spare or self._start()
            if timed:  # a starting interpreter beside a timed kernel would be noise
                self._await(self._spare, wait)
            return self._guarded(job, timeout_s, wait)
        finally:
            self._pause_builds(False)

    def _guarded(self, job: EvaluatorJob, timeout_s: float, wait: Wait | None) -> EvaluatorReply:
        """Run the job; replace an evaluator that did not come back from it as it was."""
        whole = False
        try:
            reply = self._run(job, timeout_s, wait)
            # A process that a kernel changed, or whose memory it wrote to, measures nothing any more.
            whole = not (isinstance(reply, Refused) and _taints(reply))
            return reply
        except (RuntimeError, UserError):
            whole = True  # the evaluator answered
            raise
        finally:
            if not whole:
                self._replace()

    def _run(self, job: EvaluatorJob, timeout_s: float, wait: Wait | None) -> EvaluatorReply:
        evaluator, limit = self._evaluator, Limit(timeout_s)
        run_limit_s = getattr(job, "run_limit_s", 0.0)
        stopped = Limit(max(run_limit_s, STOPPED_S))
        evaluator.send(job)
        while True:
            try:
                reply = evaluator.poll(TICK_S / 5 if self._pool.busy else TICK_S)
            except EOFError:
                return self._lost_by_itself(run_limit_s)
            if reply is not None:
                return reply
            if limit.tick():
                self._replace()
                return Lost(f"still running after {timeout_s:g} s", timed_out=True, limit_s=timeout_s)
            if stopped.tick(counts=evaluator.is_stopped()):
                self._replace()
                return Lost(f"its process stood still for {stopped.seconds:g} s", timed_out=True, limit_s=run_limit_s)
            resident = evaluator.resident_bytes()
            if resident > self.memory_bytes:
                self._replace()
                return Lost(f"took {resident / 1e9:.1f} GB of memory, allowed: {self.memory_bytes / 1e9:.1f} GB")
            if wait is not None:
                wait()

    def _lost_by_itself(self, run_limit_s: float) -> Lost:
        """Say how the evaluator died, and replace it; raises DeviceLost where it was not a kernel's doing."""
        gone = self._evaluator
        word, arm = gone.last_word, gone.arm
        asked = not (gone.device_lost or gone.timed_out)
        why = self._backend.lost(self.device) if asked else word if gone.device_lost else None
        if why is not None:
            self._drop_spare()  # what it has of the device went too
        status = self._replace()
        if why is not None:
            raise DeviceLost(f"{self.device.name} ({self.device.uuid}) is lost: {why}", ENVIRONMENT)
        if gone.timed_out:
            return Lost(f"a run took longer than {run_limit_s:g} s", timed_out=True, limit_s=run_limit_s, arm=arm)
        if status < 0:
            name = signal_name(-status)
            return Lost(f"{name}: {word}" if word else f"ended by {name}", signal=name, arm=arm)
        return Lost(word or f"the evaluator ended with status {status} in the middle of a job", arm=arm)

    def _replace(self) -> int:
        """End the evaluator's whole group, put the spare in its place; return the exit status of the old one."""
        status = self._evaluator.end()
        self._evaluator.said()
        self.replacements += 1
        self._evaluator, self._spare = self._spare or self._start(), None
        return status

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.end()
            self._spare.said()
            self._spare = None

    def _start(self) -> Child:
        return self._room.keep_trying(
            self.store / "evaluators", 0,
            lambda: Child(self._backend_name, self.store, self.device, self.memory_bytes, self._mark),
        )  # fmt: skip

    def _await(self, child: Child, wait: Wait | None) -> None:
        """Wait until an evaluator can take jobs; raises DeviceLost or RuntimeError where it cannot start."""
        limit = Limit(START_S)
        while not child.ready:
            try:
                child.poll(TICK_S / 5)
            except UserError as error:
                self._drop_spare()
                if child is self._evaluator:
                    self._replace()  # the next job tries again
                raise DeviceLost(str(error), error.exit_code) from None
            except EOFError:
                status = child.end()
                raise RuntimeError(f"the evaluator ended with {status} at its start:\n{child.said()}") from None
            if limit.tick():
                raise RuntimeError(f"the evaluator did not start within {START_S:g} s:\n{child.said()}")
            if wait is not None:
                wait()

    def _pause_builds(self, paused: bool, wait: Wait | None = None) -> Wait | None:
        """Have compilers stand still or go on; where they do no harm they go on in any case, within `wait`."""
        if not self.builds_beside_timing:
            self._pool.pause(paused)
            return wait
        wait = self._pool.beside(wait)
        wait()  # a short job ends before its first tick
        return wait

    @property
    def builds_beside_timing(self) -> bool:
        """Whether what is timed does not notice compilers at work."""
        beside: bool = self._backend.builds_beside_timing(self.device)
        return beside

    @property
    def has_tools(self) -> bool:
        """Whether the backend has a profiler and a memory checker, installed or not."""
        return getattr(self._backend, "inspector", None) is not None

    def inspect(self, job: Inspect, timeout_s: float, wait: Wait | None = None) -> Inspected:
        """Run kernels under a tool; the evaluator has no job meanwhile, and compilers stand still."""
        inspector = getattr(self._backend, "inspector", None)
        if inspector is None:
            return Inspected(refused=f"the {self._backend_name} backend has no {job.tool}")
        wait = self._pause_builds(True, wait)
        try:
            return inspect(inspector, job, self.store, self.device, Limits(timeout_s, self._mark), wait)
        finally:
            self._pause_builds(False)

    # --- the end ----------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every process that this executor started, and whatever those started."""
        if self._closed:
            return
        self._closed = True
        self._pool.close()
        for child in (self._evaluator, self._spare):
            if child is not None:
                child.end()
                child.said()
        assert self._leash.stdin is not None
        self._leash.stdin.close()
        self._leash.wait()
        for name in ("building", "evaluators", "scratch"):
            shutil.rmtree(self.store / name, ignore_errors=True)

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sweep_leftovers(store: Path) -> None:
    """Remove what executors that were killed left in the store: their files are named after their processes."""
    for entry in (*store.glob("building/*"), *store.glob("evaluators/*")):
        pid = entry.name.split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(entry, ignore_errors=True)
            with contextlib.suppress(OSError):
                entry.unlink(missing_ok=True)


def _taints(reply: Refused) -> bool:
    """Say whether the kernel may have left its evaluator other than it was."""
    return isinstance(reply.outcome, WrongAnswer) and reply.outcome.failure in ("state", "guard")


PLUGIN: ExecutorFactory = Local
