"""SIMD rows: a task takes some rows, each with sums in the lanes of vector registers; on a CPU."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build import Structure
from cake_tui.ir.build._accesses import constants
from cake_tui.ir.build.reduction._problem import reduction_of
from cake_tui.ir.expr import Name, Number, Ref, Span, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Const, Declare, For, Guard, Lanes, Launch, Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import ACC, Problem
from cake_tui.model.schedule import Knob, KnobValue

LANES = (1, 4, 8, 16)
PART, TOTAL, LANES_KEPT = "part", "total", "lanes"
ALIGN = 64  # bytes of a cache line


class SimdRows:
    """`threads_y` rows a task; `thread_n` vectors of `vector` lanes are added up side by side."""

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the knobs; `threads_y` in rows, `thread_n` in vectors, `vector` in elements."""
        lanes = tuple(count for count in LANES if 4 * count <= max(device.vector_bytes, 16))
        return (
            Knob("threads_y", (1, 4, 16, 64, 256), 16),
            Knob("thread_n", (1, 2, 4, 8), 4),
            Knob("vector", lanes, lanes[-1]),
        )

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return none: tails are predicated."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program."""
        p = reduction_of(problem, target)
        lanes = Lanes(Name("vector"))
        total = Buffer(ACC, "register", p.dtype, (Name("columns"),), spread=lanes, init=p.identity)  # type: ignore[arg-type]
        part = Buffer(PART, "register", p.dtype, (Name("columns"),), spread=lanes)  # type: ignore[arg-type]
        inside = Guard(parse(f"turn*columns + column < {p.columns}"), p.identity)
        row = p.mapped(Name(p.r), parse("turn*columns + column"))
        read = Assign(Ref(PART, (Span(Number(0), Name("columns"), "column"),)), row, "=", Name("vector"), inside)
        lanes_kept = Declare(Buffer(LANES_KEPT, "shared", p.dtype, (Name("columns"),), align=ALIGN))  # type: ignore[arg-type]
        turns = parse(f"ceil({p.columns}/columns)")
        body = (
            Declare(total),
            For("turn", Number(0), turns, (Declare(part), read, p.take(Ref(ACC), Ref(PART)))),
            Assign(Ref(LANES_KEPT), Ref(ACC), "=", Name("vector")),
            Declare(Buffer(TOTAL, "register", p.dtype, init=p.identity)),  # type: ignore[arg-type]
            For("lane", Number(0), Name("columns"), (p.take(Ref(TOTAL), Ref(LANES_KEPT, (Name("lane"),))),)),
            Assign(Ref(p.out, (Name(p.r),)), p.finished(Ref(TOTAL))),
        )
        rows = For(p.r, parse("block*threads_y"), parse(f"min((block + 1)*threads_y, {p.rows})"), body)
        launch = Launch("rows", (Axis("block", parse(f"ceil({p.rows}/threads_y)")),), (lanes_kept, rows))
        consts = (*constants(knobs, self.knobs(problem, target, device)), Const("columns", parse("thread_n*vector")))
        return p.program("simd_rows", device, runtime_sizes, consts, (launch,))


PLUGIN: Structure = SimdRows()
