"""This machine: compilers in parallel, one evaluator for the device and a warm spare."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import registry
from cake_tui.errors import ENVIRONMENT, DeviceLost, UserError, first_error
from cake_tui.executors import ExecutorFactory, OnFull, Wait, _leash
from cake_tui.executors._child import Child
from cake_tui.executors._compile import Compile
from cake_tui.executors._inspect import Limits, inspect
from cake_tui.executors._patience import TICK_S, Limit
from cake_tui.executors._room import Room
from cake_tui.model import layout
from cake_tui.model.device import Device
from cake_tui.model.jobs import (
    BuildJob,
    BuildReply,
    Built,
    EvaluatorJob,
    EvaluatorReply,
    Inspect,
    Inspected,
    Lost,
    NotBuilt,
    Refused,
    TimePairs,
    TimePeer,
    binary_path,
)
from cake_tui.model.outcome import WrongAnswer

START_S = 60.0  # numpy, the runtime's compile; usually a fifth of a second
STOPPED_S = 2.0  # a process that a kernel stopped has at least so long to go on
MEMORY_SHARE = 0.6  # of the machine's, for one evaluator


class Local:
    """Runs jobs of one backend on one device of this machine; binaries and build records live in `store`.

    Must be made and used in one thread that lives as long as it does (the evaluator dies with that thread).
    `parallel` compilers run at once (default: the processor's cores that the device leaves). While a kernel is
    timed on the CPU compilers still at work are stopped and go on afterwards, unless `build_while_timing`.
    """

    def __init__(
        self, backend_name: str, store: Path, device: Device, parallel: int = 0, memory_bytes: int = 0,
        build_while_timing: bool = False,
    ) -> None:  # fmt: skip
        self.store = Path(store).absolute()
        self.device = device
        self.parallel = parallel or max(min(device.cores, len(os.sched_getaffinity(0))), 1)
        self.memory_bytes = memory_bytes or int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)
        self.replacements = 0
        self._backend_name = backend_name
        self._backend: Any = registry.load("backends", backend_name)
        self._build_while_timing = build_while_timing or device.kind == "cuda"
        self._compilers: dict[int, Compile] = {}
        self._version: str | None = None
        self._mark = secrets.token_hex(16)
        self._closed = False
        self._room = Room(self.store)
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
        waiting: dict[str, list[int]] = {}
        for position, job in enumerate(jobs):
            reply = self._backend.build_in_process(job, self.device)
            key = self._key(job) if reply is None else ""
            if reply is None:
                reply = self._recorded(key)
            if reply is not None:
                yield position, reply
            else:
                waiting.setdefault(key, []).append(position)
        queue, running = list(waiting), dict[str, Compile]()
        try:
            while queue or running:
                while queue and len(running) < self.parallel:
                    key = queue.pop(0)
                    running[key] = self._compile(jobs[waiting[key][0]])
                    self._compilers[id(running[key])] = running[key]
                ended = self._step(running)
                if wait is not None:
                    wait()
                for key, status in ended:
                    one = running.pop(key)
                    self._compilers.pop(id(one), None)
                    reply = self._ended(key, jobs[waiting[key][0]], one, status)
                    if isinstance(reply, NotBuilt) and self._room.waited(one.folder / "kernel.so", reply.log):
                        queue.insert(0, key)
                        continue
                    for position in waiting[key]:
                        yield position, reply
        finally:
            for one in running.values():
                self._compilers.pop(id(one), None)
                one.end()
                shutil.rmtree(one.folder, ignore_errors=True)

    def _step(self, running: dict[str, Compile]) -> list[tuple[str, int]]:
        """Let the compilers work for at most a tick; return those that ended with their status."""
        poller = select.poll()
        for one in running.values():
            poller.register(one.fd, select.POLLIN)
        poller.poll(TICK_S * 1e3 / 5)
        found = [(key, one.poll()) for key, one in running.items()]
        return [(key, status) for key, status in found if status is not None]

    def _compile(self, job: BuildJob) -> Compile:
        scratch = self.store / "building"
        self._room.keep_trying(scratch, 0, lambda: scratch.mkdir(parents=True, exist_ok=True))
        text = job.lowered.source.encode()
        folder = self._room.keep_trying(
            scratch, len(text), lambda: Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=scratch))
        )
        source = folder / self._source(job)
        self._room.keep_trying(source, len(text), lambda: source.write_bytes(text))
        return Compile(self._command(job), folder, job.timeout_s, self._mark)

    def _source(self, job: BuildJob) -> Path:
        return Path(layout.SOURCES[job.lowered.target])

    def _command(self, job: BuildJob) -> tuple[str, ...]:
        return tuple(self._backend.compile_command(job, self.device, self._source(job), Path("kernel.so")))

    def _ended(self, key: str, job: BuildJob, one: Compile, status: int) -> BuildReply:
        """Turn an ended compiler into a reply; a binary goes into the store."""
        command, log = self._command(job), one.log
        binary = one.folder / "kernel.so"
        try:
            if one.timed_out:
                reason = f"the compiler took longer than {job.timeout_s:g} s and was ended"
            elif status < 0:
                reason = f"the compiler was ended by {signal_name(-status)}"
            elif status > 0:
                reason = first_error(log.text) or f"the compiler ended with {status}"
            elif not binary.is_file() or not binary.stat().st_size:
                reason = "the compiler ended well but wrote no binary"
            else:
                facts = self._backend.read_facts(binary, log.text)
                data = binary.read_bytes()
                sha256 = hashlib.sha256(data).hexdigest()
                self._keep(binary_path(self.store, sha256), data)
                built = Built(sha256, one.seconds, facts, log.text, log.bytes, command)
                self._keep(self._record(key), msgspec.json.encode(built))
                return built
            return NotBuilt(reason, one.seconds, one.timed_out, log.text, log.bytes, command)
        finally:
            shutil.rmtree(one.folder, ignore_errors=True)

    def _key(self, job: BuildJob) -> str:
        """Identity of a build: source, command with its options and architecture, and the compiler's version."""
        if self._version is None:
            self._version = self._backend.probe(self.device).version
        identity = (self._backend.name, self._version, self._command(job), job.lowered.arch, job.lowered.source)
        return hashlib.sha256(msgspec.json.encode(identity)).hexdigest()

    def _record(self, key: str) -> Path:
        return self.store / "builds" / key[:2] / f"{key}.json"

    def _recorded(self, key: str) -> Built | None:
        """Return an earlier build whose binary is whole, else None."""
        try:
            built = msgspec.json.decode(self._record(key).read_bytes(), type=Built)
            data = binary_path(self.store, built.binary_sha256).read_bytes()
        except (OSError, msgspec.DecodeError):
            return None
        if hashlib.sha256(data).hexdigest() != built.binary_sha256:
            return None
        return msgspec.structs.replace(built, cached=True)

    def _keep(self, path: Path, data: bytes) -> None:
        """Write a file of the store, whole or not at all."""
        self._room.keep_trying(path, len(data), lambda: self._write(path, data))

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).rename(path)
        finally:
            Path(name).unlink(missing_ok=True)

    # --- evaluations ------------------------------------------------------------------------------------

    def evaluate(self, job: EvaluatorJob, timeout_s: float, wait: Wait | None = None) -> EvaluatorReply:
        """Run one job; `Lost` when the evaluator died, hung or took too much memory (it has been replaced then).

        `timeout_s` counts only time that was had. An exception from `wait` kills the evaluator at work, since
        what it was doing cannot be taken back, and travels on. Raises UserError from the evaluator as it is
        and RuntimeError with a traceback for a bug in it.
        """
        timed = isinstance(job, TimePairs | TimePeer)
        self._pause_builds(timed)
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
                reply = evaluator.poll(TICK_S)
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
        status = self._replace()
        if gone.device_lost:
            raise DeviceLost(f"{self.device.name} ({self.device.uuid}) is lost: {word}", ENVIRONMENT)
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
                raise DeviceLost(str(error), error.exit_code) from None
            except EOFError:
                status = child.end()
                raise RuntimeError(f"the evaluator ended with {status} at its start:\n{child.said()}") from None
            if limit.tick():
                raise RuntimeError(f"the evaluator did not start within {START_S:g} s:\n{child.said()}")
            if wait is not None:
                wait()

    def _pause_builds(self, paused: bool) -> None:
        for one in self._compilers.values():
            one.pause(paused and not self._build_while_timing)

    @property
    def has_tools(self) -> bool:
        """Whether the backend has a profiler and a memory checker, installed or not."""
        return getattr(self._backend, "inspector", None) is not None

    def inspect(self, job: Inspect, timeout_s: float, wait: Wait | None = None) -> Inspected:
        """Run kernels under a tool; the evaluator has no job meanwhile, and compilers stand still."""
        inspector = getattr(self._backend, "inspector", None)
        if inspector is None:
            return Inspected(refused=f"the {self._backend_name} backend has no {job.tool}")
        self._pause_builds(True)
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
        for one in self._compilers.values():
            one.end()
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


def signal_name(number: int) -> str:
    """Return SIGSEGV for 11; signals without a name keep their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


PLUGIN: ExecutorFactory = Local
