"""One evaluator process as its executor sees it: start, jobs out, lines in, the end of the whole group."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

import cake_tui
from cake_tui.config import child_environment
from cake_tui.errors import ENVIRONMENT, DeviceLost, UserError
from cake_tui.executors import _leash
from cake_tui.model.device import Device
from cake_tui.model.jobs import EvaluatorJob, EvaluatorReply

Arm = Literal["candidate", "holder"]

PACKAGE_ROOT = Path(cake_tui.__file__).parents[1]
STDERR_TAIL = 4000
KILL_S = 10.0  # a process in the middle of a driver's call may take a moment
# OpenBLAS threads of the reference spin for 2^16 cycles, then sleep, so that they never run beside a kernel.
BLAS = {"OPENBLAS_THREAD_TIMEOUT": "16"}


class _Line(msgspec.Struct):
    """A line from the evaluator; `reply` is decoded when its nonce is right."""

    nonce: str = ""
    ready: bool = False
    reply: msgspec.Raw = msgspec.Raw(b"")
    user_error: str | None = None
    exit_code: int = 0
    error: str | None = None
    last_word: str | None = None
    timed_out: bool = False
    arm: Arm = "candidate"
    device_lost: bool = False


class Child:
    """A running evaluator. It is ready once `ready` is true; `poll` waits for at most the time given."""

    def __init__(self, backend: str, store: Path, device: Device, memory_bytes: int, mark: str) -> None:
        self.ready = False
        self.last_word: str | None = None
        self.timed_out = False  # it ended itself, since a run outlived its limit
        self.arm: Arm = "candidate"  # whose run its last word is about
        self.device_lost = False
        self._nonce = ""
        self._incoming = b""
        self._outgoing = b""
        self.own_mark = f"{mark}.{secrets.token_hex(6)}"
        self._errors = store / "evaluators" / f"{os.getpid()}-{self.own_mark}.log"
        self._errors.parent.mkdir(parents=True, exist_ok=True)
        scratch = store / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        errors = self._errors.open("wb")
        jobs_read, self._jobs = os.pipe()
        self._replies, replies_write = os.pipe()
        path = os.pathsep.join([str(PACKAGE_ROOT), *(p for p in sys.path if p)])
        marks = {_leash.NAME: mark, _leash.EVALUATOR: self.own_mark}
        try:
            with errors:
                self._process = subprocess.Popen(
                    [
                        sys.executable, "-m", "cake_tui.backends._evaluator", "--backend", backend,
                        "--store", str(store.absolute()), "--device", msgspec.json.encode(device).decode(),
                        "--jobs", str(jobs_read), "--replies", str(replies_write), "--parent", str(os.getpid()),
                        # Resident memory is watched from outside; this is the last fence.
                        "--memory", str(2 * memory_bytes),
                    ],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=scratch,
                    pass_fds=(jobs_read, replies_write), start_new_session=True,
                    env=child_environment((), PYTHONPATH=path, PYTHONUTF8="1", **BLAS, **marks),
                )  # fmt: skip
        finally:
            os.close(jobs_read)
            os.close(replies_write)
        os.set_blocking(self._jobs, False)
        os.set_blocking(self._replies, False)

    @property
    def pid(self) -> int:
        """The process's id, which is its group's too."""
        return self._process.pid

    def send(self, job: EvaluatorJob) -> None:
        """Give it a job; `poll` moves what does not go at once."""
        self._nonce = secrets.token_hex(8)
        order: dict[str, Any] = {"nonce": self._nonce, "job": job}
        self._outgoing += msgspec.json.encode(order) + b"\n"
        self._write()

    def poll(self, seconds: float) -> EvaluatorReply | None:
        """Move bytes for at most `seconds`; return the reply once it is there.

        Raises EOFError where the process has ended, UserError where the user has to act, RuntimeError with the
        traceback for a bug in there.
        """
        poller = select.poll()
        poller.register(self._replies, select.POLLIN)
        if self._outgoing:
            poller.register(self._jobs, select.POLLOUT)
        poller.poll(seconds * 1e3)
        self._write()
        gone = self.has_ended()  # what it left behind may hold the pipe open
        ended = self._read() or gone
        while b"\n" in self._incoming:
            line, _, self._incoming = self._incoming.partition(b"\n")
            reply = self._take(line)
            if reply is not None:
                return reply
        if ended:
            raise EOFError
        return None

    def has_ended(self) -> bool:
        """Say whether the process is gone already."""
        return self._process.poll() is not None

    def is_stopped(self) -> bool:
        """Say whether it stands still by a signal, its own timers with it."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return False
        return state[state.rindex(b")") + 2 :][:1] == b"T"

    def resident_bytes(self) -> int:
        """Return its resident memory, 0 where it cannot be read."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> int:
        """Kill the whole group, reap the process; return its exit status (-n: ended by signal n).

        Raises DeviceLost where it does not go: a driver that holds it is beyond our help.
        """
        # A dying process may still be writing its core of exit status: give one that is going by itself a moment.
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._ended_by_itself():
                self._process.wait(0.5)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            status = self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            what = f"the evaluator (PID {self.pid}) does not end {KILL_S:g} s after it was killed"
            raise DeviceLost(f"{what}: its driver hangs; see dmesg, and resume once it is gone", ENVIRONMENT) from None
        _leash.sweep(_leash.EVALUATOR, self.own_mark)  # what left the group
        for fd in (self._jobs, self._replies):
            with contextlib.suppress(OSError):
                os.close(fd)
        return status

    def said(self) -> str:
        """Return the end of what it wrote to its error output, and forget the file."""
        try:
            text = self._errors.read_bytes()[-STDERR_TAIL:].decode(errors="replace").strip()
        except OSError:
            text = ""
        self._errors.unlink(missing_ok=True)
        return text

    def _ended_by_itself(self) -> bool:
        """Its reply pipe is closed: nobody in the group writes any more."""
        poller = select.poll()
        poller.register(self._replies, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poller.poll(0))

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                if self._outgoing:
                    self._outgoing = self._outgoing[os.write(self._jobs, self._outgoing) :]
            except BrokenPipeError:
                self._outgoing = b""  # the end shows on the other pipe

    def _read(self) -> bool:
        """Take what is there; return whether the pipe has ended."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self._replies, 1 << 16)
                if not data:
                    return True
                self._incoming += data
        return False

    def _take(self, line: bytes) -> EvaluatorReply | None:
        """Read one line; lines that are none, or bear another job's word, are dropped."""
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        self.ready = self.ready or found.ready
        self.last_word = found.last_word or self.last_word
        if found.last_word is not None:
            self.arm, self.device_lost = found.arm, found.device_lost
        self.timed_out = self.timed_out or found.timed_out
        if found.user_error is not None and found.nonce in ("", self._nonce):
            raise UserError(found.user_error, found.exit_code)
        if not self._nonce or found.nonce != self._nonce:
            return None
        if found.error is not None:
            raise RuntimeError(f"the evaluator failed:\n{found.error}")
        return msgspec.json.decode(found.reply, type=EvaluatorReply) if bytes(found.reply) else None
