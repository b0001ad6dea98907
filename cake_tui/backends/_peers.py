"""A peer as its evaluator sees it: a library that does the same work, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

import cake_tui
from cake_tui.config import child_environment
from cake_tui.errors import Ended
from cake_tui.ir.expr import parse
from cake_tui.ir.families import axes, inputs_of, operands, outputs_of
from cake_tui.model.outcome import LaunchFailed
from cake_tui.model.problem import BufferSpec, Problem, Shape


class PeerOrder(msgspec.Struct, frozen=True):
    """One line to a peer: prepare a problem's shape from a seed, or run it so often, in batches for `sample_ns`."""

    problem: Problem | None = None
    shape: Shape | None = None
    seed: int = 0
    repeats: int = 0  # a batch
    sample_ns: int = 0  # 0: one batch


class PeerAnswer(msgspec.Struct, frozen=True):
    """One line from a peer: nanoseconds of the fastest batch; at first its threads and version."""

    ns: int = 0
    threads: int | None = None
    version: str = ""
    error: str | None = None


class PeerProcess:
    """One running peer; raises Ended(LaunchFailed) where it ends or fails, for that is no bug of ours.

    `module` is run with ``--peer NAME --parent PID``; variables in `dropped` are taken from its environment.
    """

    def __init__(self, module: str, name: str, dropped: tuple[str, ...], extra: Mapping[str, str]) -> None:
        self.name = name
        root = str(Path(cake_tui.__file__).parents[1])
        path = os.pathsep.join([root, *(entry for entry in sys.path if entry)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, "--peer", name, "--parent", str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=child_environment(dropped, PYTHONPATH=path, **extra),
        )  # fmt: skip
        hello = self._line()
        self.threads, self.version = hello.threads, hello.version

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def prepare(self, problem: Problem, shape: Shape, seed: int) -> None:
        """Have it make its inputs, the same that the kernel gets."""
        self._ask(PeerOrder(problem, shape, seed))

    def run(self, repeats: int, sample_ns: int = 0) -> int:
        """Have it do the work `repeats` times, in batches for `sample_ns`; return nanoseconds of the fastest batch."""
        return self._ask(PeerOrder(repeats=repeats, sample_ns=sample_ns)).ns

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _ask(self, order: PeerOrder) -> PeerAnswer:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end shows when the answer is read
            self._process.stdin.write(msgspec.json.encode(order) + b"\n")
            self._process.stdin.flush()
        return self._line()

    def _line(self) -> PeerAnswer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise _failed(f"peer {self.name} ended with status {self._process.wait()}")
        answer = msgspec.json.decode(line, type=PeerAnswer)
        if answer.error is not None:
            raise _failed(f"peer {self.name} failed: {answer.error}")
        return answer


def is_plain_product(problem: Problem) -> bool:
    """Say whether the problem sums products of two fp32 matrices, as a matrix library does."""
    factors = operands(problem)
    if factors is None or problem.reference is not None:
        return False
    names = [axes(spec) for spec in factors]
    plain = [len(one) for one in names] == [2, 2] and names[0][1:] == names[1][:1]
    return plain and all(spec.dtype == "f32" for spec in factors)


def biased(problem: Problem, function: str) -> BufferSpec | None:
    """Return the bias where a plain product's value is ``function(acc + bias[n])``, else None."""
    factors = operands(problem)
    extra = [spec for spec in inputs_of(problem) if factors is not None and spec not in factors]
    if not is_plain_product(problem) or len(extra) != 1 or extra[0].shape != outputs_of(problem)[0].shape[-1:]:
        return None
    wanted = parse(f"{function}(acc + {extra[0].name}[{axes(extra[0])[0]}])")
    return extra[0] if parse(problem.value) == wanted else None


def serve(prepare: Callable[[PeerOrder], Callable[[int, int], int]]) -> None:
    """In the peer's process: answer orders line by line until there are no more.

    `prepare` makes ready for an order's problem and returns what runs it: (repeats, sample_ns) -> nanoseconds.
    """
    run: Callable[[int, int], int] | None = None
    decoder = msgspec.json.Decoder(PeerOrder)
    for line in sys.stdin.buffer:
        try:
            order = decoder.decode(line)
            if order.problem is not None and order.shape is not None:
                run = prepare(order)
            say(PeerAnswer(ns=run(order.repeats, order.sample_ns) if run is not None and order.repeats else 0))
        except Exception:  # noqa: BLE001 - a process boundary: the last line of the traceback travels
            say(PeerAnswer(error=traceback.format_exc().strip().splitlines()[-1]))


def say(answer: PeerAnswer) -> None:
    """Write one line out."""
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def _failed(reason: str) -> Ended:
    return Ended(LaunchFailed(reason=reason))
