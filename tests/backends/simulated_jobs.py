"""Lowered values and subjects of a simulated device, without an IR: structure and knobs are all that counts."""

from __future__ import annotations

from cake_tui.model.jobs import Subject
from cake_tui.model.lowered import Launch, LaunchPlan, Lowered
from cake_tui.model.problem import BufferSpec, Problem, Shape
from cake_tui.model.schedule import Schedule

CUBE = Shape((("M", 512), ("N", 512), ("K", 512)))
PROBLEM = Problem(
    "matmul_bias_relu", "contraction", "relu(acc)", (BufferSpec("y", "f32", ("M", "N"), role="out"),), (CUBE,)
)
NAIVE = Schedule.of("naive", {"unroll": 1})
TILED = Schedule.of("tiled", {"thread_m": 4, "thread_n": 2, "block_k": 64, "vector": 8})
PACKED = Schedule.of("packed", {"thread_m": 8, "thread_n": 4, "block_k": 512, "vector": 16, "pad": 8})


def lowered(schedule: Schedule) -> Lowered:
    plan = LaunchPlan(CUBE, (Launch("entry", (1, 1, 1), ()),))
    return Lowered(
        "c", "x86-64-v4", f"/* {schedule.text} */", (), (plan,),
        structure=schedule.structure, constants=schedule.knobs,
    )  # fmt: skip


def subject(schedule: Schedule) -> Subject:
    return Subject("0" * 64, lowered(schedule))
