"""Launch limits of a user's own kernel file, the only laws that an opaque program can be held to."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir.expr import EvaluationError, Expr, evaluate
from cake_tui.ir.laws.launch_limits import GRID, THREADS
from cake_tui.ir.opaque import Opaque
from cake_tui.model.device import Device
from cake_tui.model.diagnostic import Diagnostic

NAME = "launch-limits"


def check_opaque(program: Opaque, device: Device | None) -> Iterator[Diagnostic]:
    """Yield launch expressions without a value or beyond the device's limits; run-time sizes are not judged."""
    names: dict[str, int | float] = {
        **{size.name: size.value for size in program.sizes if size.value is not None},
        **{name: value for name, value in program.knobs if not isinstance(value, str)},
    }
    if any(size.value is None for size in program.sizes):
        return
    try:
        grid, block = [_whole(expr, names) for expr in program.grid], [_whole(expr, names) for expr in program.block]
        smem = _whole(program.smem_bytes, names)
    except EvaluationError as error:
        yield Diagnostic(NAME, "launch", str(error), "expressions over sizes and knobs")
        return
    for what, extents in (("grid", grid), ("block", block)):
        for axis, extent in zip("xyz", extents):
            if extent < 1:
                yield Diagnostic(NAME, f"launch.{what}.{axis}", f"{extent}", "at least 1", nearest="1")
    if smem < 0:
        yield Diagnostic(NAME, "launch.smem_bytes", f"{smem}", "at least 0", nearest="0")
    if program.target != "cuda":
        return
    stated = device.threads_per_block if device is not None else 0
    yield from _over("launch.block", "threads_per_block", math.prod(block), stated or THREADS, "threads")
    for axis, extent, most in zip("xyz", grid, GRID):
        yield from _over(f"launch.grid.{axis}", f"grid_{axis}", extent, most, "blocks")
    if device is not None and device.smem_per_block_bytes:
        yield from _over("launch.smem_bytes", "max_smem_limit", smem, device.smem_per_block_bytes, "bytes")


def _whole(expr: Expr, names: dict[str, int | float]) -> int:
    value = evaluate(expr, names)
    if not math.isfinite(value) or value != int(value):
        raise EvaluationError(f"{value} is not a whole number")
    return int(value)


def _over(field: str, limit: str, asked: int, available: int, unit: str) -> Iterator[Diagnostic]:
    if asked > available:
        yield Diagnostic(
            NAME,
            field,
            f"{asked} {unit}",
            f"at most {available}",
            nearest=str(available),
            limit=limit,
            asked=float(asked),
            available=float(available),
            unit=unit,
        )
