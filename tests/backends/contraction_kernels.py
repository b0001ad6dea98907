"""Small problems, lowered values and jobs around hand-written C kernels, for tests of backend and executor."""

from __future__ import annotations

from pathlib import Path

from cake_tui.backends.cpu import PLUGIN
from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built, Check, EvaluatorReply, Subject, TimePairs
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered, Workspace
from cake_tui.model.problem import BufferSpec, Problem, Shape

WRONG = Path(__file__).parents[1] / "wrong_kernels"
ROWS = 8


def shape_of(m: int, n: int, k: int) -> Shape:
    return Shape((("M", m), ("N", n), ("K", k)))


SMOKE = shape_of(33, 47, 29)
RANKED = shape_of(64, 96, 80)


def problem_of(shape: Shape = RANKED, value: str = "relu(acc + bias[n])", **changes: object) -> Problem:
    buffers = (
        BufferSpec("a", "f32", ("M", "K")),
        BufferSpec("b", "f32", ("K", "N"), scale="1/sqrt(K)"),
        BufferSpec("bias", "f32", ("N",)),
        BufferSpec("y", "f32", ("M", "N"), role="out"),
    )
    given: dict[str, object] = {"family": "contraction", "value": value, "buffers": buffers, "shapes": (shape,)}
    return Problem(kernel="matmul_bias_relu", **{**given, **changes})  # type: ignore[arg-type]


def plan_of(shape: Shape, workspace: bool = False, tasks: int | None = None) -> LaunchPlan:
    names = [Argument("buffer", name) for name in ("a", "b", "bias", "y")]
    if workspace:
        names.append(Argument("workspace", "space"))
    names += [Argument("size", name) for name in "MNK"]
    spaces = (Workspace("space", 4 * shape["M"] * shape["N"]),) if workspace else ()
    grid = (tasks or -(-shape["M"] // ROWS), 1, 1)
    return LaunchPlan(shape, (Launch("entry", grid, tuple(names)),), spaces)


def lowered_of(source: str, shape: Shape = RANKED, options: tuple[str, ...] = ("-O2",), **plan: object) -> Lowered:
    arch = PLUGIN.devices()[0].arch
    return Lowered("c", arch, source, options, (plan_of(shape, **plan),))  # type: ignore[arg-type]


def source_of(path: Path) -> str:
    """Return a kernel's text with the shared rows in place of the include."""
    shared = (WRONG / "rows.h").read_text(encoding="utf-8")
    return path.read_text(encoding="utf-8").replace('#include "rows.h"\n', shared)


def build(executor: Local, *lowered: Lowered) -> list[Subject]:
    """Build all; every one must build."""
    subjects: dict[int, Subject] = {}
    for position, reply in executor.build([BuildJob(one) for one in lowered]):
        assert isinstance(reply, Built), reply.log
        subjects[position] = Subject(reply.binary_sha256, lowered[position])
    return [subjects[position] for position in range(len(lowered))]


def check(
    executor: Local, subject: Subject, depth: str, problem: Problem | None = None, truth: Subject | None = None
) -> EvaluatorReply:
    job = Check(problem or problem_of(), subject, depth, seed=5, run_limit_s=0.6, truth=truth)  # type: ignore[arg-type]
    return executor.evaluate(job, 60.0)


def pairs(
    holder: Subject, candidate: Subject, count: int = 2, problem: Problem | None = None, sample_ms: float = 2.0
) -> TimePairs:
    return TimePairs(problem or problem_of(), holder, candidate, count, seed=9, sample_ms=sample_ms, run_limit_s=5.0)
