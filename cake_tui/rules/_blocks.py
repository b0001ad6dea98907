"""Sizes of blocks and register blocks as a schedule's shared knob names give them."""

from __future__ import annotations

import math

from cake_tui.model.device import Device
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule

FLOAT_BYTES = 4


def number(schedule: Schedule, name: str, default: int = 1) -> int:
    """Return a knob as a whole number of 1 or more; `default` where the structure has no such number."""
    value = schedule.knob(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return default
    return value


def lanes(schedule: Schedule, device: Device) -> int:
    """Elements that one access moves: the `vector` knob; on ``c`` it never exceeds the device's registers."""
    wanted = number(schedule, "vector")
    return min(wanted, max(1, device.vector_bytes // FLOAT_BYTES)) if device.target == "c" else wanted


def register_block(schedule: Schedule, device: Device) -> tuple[int, int]:
    """Rows and columns of outputs that one thread (on ``c`` one micro-kernel) holds, columns in vectors on ``c``."""
    columns = number(schedule, "thread_n")
    return number(schedule, "thread_m"), columns


def block(schedule: Schedule, device: Device) -> tuple[int, int]:
    """Rows and columns of outputs of one task or thread block."""
    rows, columns = register_block(schedule, device)
    width = columns * lanes(schedule, device) if device.target == "c" else columns
    return number(schedule, "threads_y") * rows, number(schedule, "threads_x") * width


def tasks(problem: Problem, schedule: Schedule, device: Device) -> int | None:
    """How many tasks the last ranked shape of a contraction is cut into; None for other families.

    A structure without a block to set is one task on ``c``.
    """
    sizes = dict(problem.shapes[-1].sizes)
    if problem.family != "contraction" or not {"M", "N"} <= set(sizes):
        return None
    if schedule.knob("threads_x") is None:
        return 1 if device.target == "c" else None
    rows, columns = block(schedule, device)
    parts = number(schedule, "split_k")
    return math.ceil(sizes["M"] / rows) * math.ceil(sizes["N"] / columns) * parts
