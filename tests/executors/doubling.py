"""A small kernel, the jobs around it and what tests of the executor ask about processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from cake_tui.backends.cpu import PLUGIN
from cake_tui.executors import _leash
from cake_tui.executors.local import Local
from cake_tui.model.jobs import (
    BuildJob,
    Built,
    Check,
    Subject,
)
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered
from cake_tui.model.problem import BufferSpec, Problem, Shape

SHAPE = Shape((("N", 4096),))
PROBLEM = Problem(
    kernel="double", family="elementwise", value="2 * x[n]", shapes=(SHAPE,),
    buffers=(BufferSpec("x", "f32", ("N",)), BufferSpec("y", "f32", ("N",), role="out")),
)  # fmt: skip
GOOD = (
    "void entry(const int task[3], const float *x, float *y, int N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
)


def lowered(source: str, options: tuple[str, ...] = ("-O1",)) -> Lowered:
    arguments = (Argument("buffer", "x"), Argument("buffer", "y"), Argument("size", "N"))
    plan = LaunchPlan(SHAPE, (Launch("entry", (1, 1, 1), arguments),))
    return Lowered("c", PLUGIN.devices()[0].arch, source, options, (plan,))


def doing(statement: str) -> str:
    """A kernel that does something else before it does its work."""
    return "#include <stdlib.h>\n#include <unistd.h>\n" + GOOD.replace("{ for", f"{{ {statement} for")


def build_one(executor: Local, source: str) -> Subject:
    made = lowered(source)
    [(_, reply)] = list(executor.build([BuildJob(made)]))
    assert isinstance(reply, Built), reply
    return Subject(reply.binary_sha256, made)


def check(subject: Subject, run_limit_s: float = 5.0) -> Check:
    return Check(PROBLEM, subject, "full", 1, run_limit_s)


def state_of(pid: int) -> str:
    """The process's state as /proc names it, Z once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def alive(pid: int) -> bool:
    return state_of(pid) != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def marked(mark: str) -> list[int]:
    return _leash._marked(f"{_leash.NAME}={mark}".encode())
