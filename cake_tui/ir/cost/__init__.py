"""The cost model: predicted time of a program, corrected by what this device's measurements taught."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cake_tui.ir.cost import gpu, processor
from cake_tui.ir.cost.correction import Correction
from cake_tui.ir.cost.estimate import CostRow, Estimate
from cake_tui.ir.cost.figures import Figures, combine
from cake_tui.ir.cost.nests import flops_of, nests_of
from cake_tui.ir.cost.screening import screen
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.model.device import Device
from cake_tui.model.problem import Shape

__all__ = ["Correction", "CostRow", "Estimate", "estimate", "screen"]


def estimate(program: Program | Opaque, device: Device, shapes: Sequence[Shape] | Shape) -> Estimate | None:
    """Predict one run of the ranked shapes from the program and the device; None for an opaque program.

    `Correction.apply` puts in what was measured. An estimate abstains where the program's numbers have no value.
    """
    if isinstance(program, Opaque):
        return None
    return _estimate(program, device, (shapes,) if isinstance(shapes, Shape) else tuple(shapes))


@lru_cache(maxsize=512)  # an agent asks for what it may propose
def _estimate(program: Program, device: Device, wanted: tuple[Shape, ...]) -> Estimate:
    model, overhead_us = (processor, processor.LAUNCH_US) if program.target == "c" else (gpu, gpu.LAUNCH_US)
    runs: list[Figures] = []
    flops = 0.0
    try:
        for shape in wanted:
            nests = nests_of(program, dict(shape.sizes))
            flops += sum(flops_of(nest) for nest in nests)
            runs.append(combine([model.figures_of(nest, device) for nest in nests], overhead_us))
    except (ValueError, ArithmeticError) as error:  # an extent of 0, a name without a value
        return Estimate(program.structure, 1.0, 1.0, abstains=str(error))
    total_us = sum(run.total_us for run in runs)
    terms = {name: sum(run.terms.get(name, 0.0) for run in runs) / len(runs) for run in runs for name in run.terms}
    bound_by = max(
        (name for name in terms if name.startswith("roof.")), key=lambda name: terms[name], default="roof."
    ).removeprefix("roof.")
    structure = program.structure or program.name
    return Estimate(structure, total_us, total_us, tuple(sorted(terms.items())), flops=flops, bound_by=bound_by)
