"""Row panels: a task computes some whole rows of the output, element by element."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.build.contraction._problem import ACC, at_element, contraction_of
from cake_tui.ir.expr import Binary, Name, Number, Ref, parse
from cake_tui.ir.program import Assign, Axis, Buffer, Const, Declare, For, Launch, Program
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue

ROWS = Knob("threads_y", (1, 4, 16, 64), 16)


class RowPanels:
    """`threads_y` rows a task, so that all cores have work."""

    targets = ("c",)

    def knobs(self, problem: Problem, target: Target, device: Device) -> tuple[Knob, ...]:
        """Return the one knob: the rows of a task."""
        return (ROWS,)

    def multiples(self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target) -> dict[str, int]:
        """Return none: the last panel may be shorter."""
        return {}

    def build(
        self, problem: Problem, knobs: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
    ) -> Program:
        """Make the program."""
        c = contraction_of(problem, target)
        m, n, k = Name(c.m), Name(c.n), Name(c.k)
        product = Binary("*", Ref("a", (m, k)), Ref("b", (k, n)))
        element = (
            Declare(Buffer(ACC, "register", c.dtype, init=Number(0))),  # type: ignore[arg-type]
            For(c.k, Number(0), Name(c.depth), (Assign(Ref(ACC), product, "+="),)),
            Assign(Ref(c.out, (m, n)), at_element(c.value, Ref(ACC))),
        )
        columns = For(c.n, Number(0), Name(c.columns), element)
        stop = parse(f"min((by + 1)*threads_y, {c.rows})")
        rows = For(c.m, parse("by*threads_y"), stop, (columns,))
        consts = (Const("threads_y", Number(int(knobs["threads_y"])), tuple(int(value) for value in ROWS.values)),)
        grid = (Axis("by", parse(f"ceil({c.rows}/threads_y)")),)
        return c.program("row_panels", target, device, runtime_sizes, consts, (Launch("matmul", grid, (rows,)),))


PLUGIN = RowPanels()
