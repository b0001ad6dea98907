"""The compilers at work, at most so many at once, and what came of those that nobody has asked for yet."""

from __future__ import annotations

import hashlib
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.errors import UserError, first_error
from cake_tui.executors import Wait
from cake_tui.executors._compile import Compile
from cake_tui.executors._patience import TICK_S
from cake_tui.executors._room import Room
from cake_tui.model import layout
from cake_tui.model.device import Device
from cake_tui.model.jobs import BuildJob, BuildReply, Built, NotBuilt, binary_path

BINARY = "kernel.so"


class Pool:
    """Builds of one backend for one device; binaries and records of builds live in `store`.

    Equal jobs are compiled once, and what is in the store is not compiled again. A job that `begin` put in is moved
    on by whoever calls `step`; its reply waits for the `build` that asks for it.
    """

    def __init__(self, backend: Any, store: Path, device: Device, parallel: int, room: Room, mark: str) -> None:
        self.store, self.device, self.parallel = store, device, parallel
        self._backend, self._room, self._mark = backend, room, mark
        self._version: str | None = None
        self._queue: dict[str, BuildJob] = {}
        self._running: dict[str, tuple[BuildJob, Compile]] = {}
        self._replies: dict[str, BuildReply] = {}

    def begin(self, job: BuildJob) -> str:
        """Put a job in and return its key; at once answered where it is on record, under way where it was begun."""
        key = self._key(job)
        if not (key in self._replies or key in self._running or key in self._queue):
            recorded = self._recorded(key)
            if recorded is not None:
                self._replies[key] = recorded
            else:
                self._queue[key] = job
        return key

    def build(self, jobs: Sequence[BuildJob], wait: Wait | None = None) -> Iterator[tuple[int, BuildReply]]:
        """Yield (position, reply) as each ends; leaving it, or what `wait` raises, ends the compilers of these jobs.

        Raises UserError (ENVIRONMENT) without a compiler.
        """
        asked: dict[str, list[int]] = {}
        try:
            for position, job in enumerate(jobs):
                reply = self._backend.build_in_process(job, self.device)
                if reply is not None:
                    yield position, reply
                else:
                    asked.setdefault(self.begin(job), []).append(position)
            while asked:
                for key in [key for key in asked if key in self._replies]:
                    reply = self._replies.pop(key)
                    for position in asked.pop(key):
                        yield position, reply
                if asked:
                    self.step(TICK_S / 5)
                    if wait is not None:
                        wait()
        finally:
            for key in asked:
                self._drop(key)

    def step(self, timeout_s: float = 0.0) -> None:
        """Start what has room, give the compilers at most so long to say something, and take in those that ended."""
        while self._queue and len(self._running) < self.parallel:
            key, job = next(iter(self._queue.items()))
            self._running[key] = job, self._compile(job)
            del self._queue[key]
        poller = select.poll()
        for _, one in self._running.values():
            poller.register(one.fd, select.POLLIN)
        if self._running:
            poller.poll(timeout_s * 1e3)
        for key, (job, one) in list(self._running.items()):
            status = one.poll()
            if status is None:
                continue
            del self._running[key]
            reply = self._ended(key, job, one, status)
            if isinstance(reply, NotBuilt) and self._room.waited(one.folder / BINARY, reply.log):
                self._queue[key] = job
            else:
                self._replies[key] = reply

    def beside(self, wait: Wait | None) -> Callable[[], None]:
        """Return a `wait` that moves the compilers on as well; one that cannot start is left to who asks for it."""

        def both() -> None:
            if self.busy:
                try:
                    self.step()
                except UserError:
                    self._queue.clear()
            if wait is not None:
                wait()

        return both

    @property
    def busy(self) -> bool:
        """Whether compilers are at work, or wait for their turn."""
        return bool(self._queue or self._running)

    def pause(self, paused: bool) -> None:
        """Have the compilers stand still, or go on."""
        for _, one in self._running.values():
            one.pause(paused)

    def close(self) -> None:
        """End every compiler at work; what was not asked for is forgotten."""
        for key in [*self._queue, *self._running]:
            self._drop(key)
        self._replies.clear()

    def _drop(self, key: str) -> None:
        self._queue.pop(key, None)
        if key in self._running:
            _, one = self._running.pop(key)
            one.end()
            shutil.rmtree(one.folder, ignore_errors=True)

    # --- one compiler -----------------------------------------------------------------------------------------

    def _compile(self, job: BuildJob) -> Compile:
        scratch = self.store / "building"
        self._room.keep_trying(scratch, 0, lambda: scratch.mkdir(parents=True, exist_ok=True))
        text = job.lowered.source.encode()
        folder = self._room.keep_trying(
            scratch, len(text), lambda: Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=scratch))
        )
        source = folder / layout.SOURCES[job.lowered.target]
        self._room.keep_trying(source, len(text), lambda: source.write_bytes(text))
        return Compile(self._command(job), folder, job.timeout_s, self._mark)

    def _command(self, job: BuildJob) -> tuple[str, ...]:
        source = Path(layout.SOURCES[job.lowered.target])
        return tuple(self._backend.compile_command(job, self.device, source, Path(BINARY)))

    def _ended(self, key: str, job: BuildJob, one: Compile, status: int) -> BuildReply:
        """Turn an ended compiler into a reply; a binary goes into the store."""
        command, log = self._command(job), one.log
        binary = one.folder / BINARY
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

    # --- the store --------------------------------------------------------------------------------------------

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


def signal_name(number: int) -> str:
    """Return SIGSEGV for 11; signals without a name keep their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
