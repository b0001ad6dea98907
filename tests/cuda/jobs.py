"""Small problems, lowered values and jobs around hand-written CUDA kernels."""

from __future__ import annotations

from pathlib import Path

from cake_tui.executors.local import Local
from cake_tui.model.jobs import BuildJob, Built, Check, EvaluatorReply, Subject, TimePairs
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered, TensorMap, Workspace
from cake_tui.model.problem import BufferSpec, Problem, Shape

KERNELS = Path(__file__).with_name("kernels")
BLOCK = (32, 8, 1)


def shape_of(m: int, n: int, k: int) -> Shape:
    return Shape((("M", m), ("N", n), ("K", k)))


SMOKE = (shape_of(33, 47, 29), shape_of(31, 40, 17))
RANKED = shape_of(256, 512, 384)


def problem_of(shape: Shape = RANKED, **changes: object) -> Problem:
    buffers = (
        BufferSpec("a", "f32", ("M", "K")),
        BufferSpec("b", "f32", ("K", "N"), scale="1/sqrt(K)"),
        BufferSpec("bias", "f32", ("N",)),
        BufferSpec("y", "f32", ("M", "N"), role="out"),
    )
    given: dict[str, object] = {
        "family": "contraction", "value": "relu(acc + bias[n])", "buffers": buffers, "shapes": (shape,),
    }  # fmt: skip
    return Problem(kernel="matmul_bias_relu", **{**given, **changes})  # type: ignore[arg-type]


def variant(arch: str, *faults: str, shapes: tuple[Shape, ...] = (RANKED,), align_bytes: int = 4) -> Lowered:
    """Return the plain kernel with the faults that the names stand for."""
    source = (KERNELS / "variants.cu").read_text(encoding="utf-8")
    options = tuple(f"-D{fault}" for fault in faults)
    workspace = "WORKSPACE" in faults
    plans = tuple(_plain_plan(shape, workspace) for shape in shapes)
    return Lowered("cuda", arch, source, options, plans, align_bytes=align_bytes)


def _plain_plan(shape: Shape, workspace: bool) -> LaunchPlan:
    names = [Argument("buffer", name) for name in ("a", "b", "bias", "y")]
    if workspace:
        names.append(Argument("workspace", "space"))
    names += [Argument("size", name) for name in "MNK"]
    spaces = (Workspace("space", 4 * shape["M"] * shape["N"]),) if workspace else ()
    grid = (-(-shape["N"] // BLOCK[0]), -(-shape["M"] // BLOCK[1]), 1)
    return LaunchPlan(shape, (Launch("kernel", grid, tuple(names), BLOCK),), spaces)


def feature(arch: str, name: str, shape: Shape = RANKED) -> Lowered:
    """Return the kernel through dynamic shared memory (100 KB of it), clusters or a tensor map."""
    source = (KERNELS / "features.cu").read_text(encoding="utf-8")
    first = Argument("tensor_map", "a_map") if name == "TENSOR_MAP" else Argument("buffer", "a")
    arguments = (first, *(Argument("buffer", other) for other in ("b", "bias", "y")))
    arguments += tuple(Argument("size", size) for size in "MNK")
    grid = (-(-shape["N"] // 128), shape["M"], 1)
    maps = (TensorMap("a_map", "a", "f32", (shape["K"], shape["M"]), (4 * shape["K"],), (32, 1)),)
    launch = Launch(
        "kernel", grid, arguments, (128, 1, 1), (2, 1, 1) if name == "CLUSTER" else (1, 1, 1),
        0 if name == "TENSOR_MAP" else 100 << 10, maps if name == "TENSOR_MAP" else (),
    )  # fmt: skip
    align = 16 if name == "TENSOR_MAP" else 4
    return Lowered("cuda", arch, source, (f"-D{name}",), (LaunchPlan(shape, (launch,)),), align_bytes=align)


def build(executor: Local, *lowered: Lowered) -> list[Subject]:
    """Build all; every one must build."""
    subjects: dict[int, Subject] = {}
    for position, reply in executor.build([BuildJob(one) for one in lowered]):
        assert isinstance(reply, Built), reply.log
        subjects[position] = Subject(reply.binary_sha256, lowered[position])
    return [subjects[position] for position in range(len(lowered))]


def check(
    executor: Local, subject: Subject, depth: str = "full", problem: Problem | None = None,
    truth: Subject | None = None, run_limit_s: float = 2.0,
) -> EvaluatorReply:  # fmt: skip
    job = Check(problem or problem_of(), subject, depth, seed=5, run_limit_s=run_limit_s, truth=truth)  # type: ignore[arg-type]
    return executor.evaluate(job, 60.0)


def pairs(
    holder: Subject, candidate: Subject, count: int = 2, problem: Problem | None = None, sample_ms: float = 1.0
) -> TimePairs:
    return TimePairs(problem or problem_of(), holder, candidate, count, seed=9, sample_ms=sample_ms, run_limit_s=2.0)
