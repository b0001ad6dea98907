"""The IR: program types, text form, builders, edits and lowering; what the other parts call is named here.

`build` makes a program of a schedule, `full_build` the one that is timed; `apply` rewrites a schedule, `lower`
makes source and launch plans.
"""

from cake_tui.ir.edits import apply
from cake_tui.ir.edits import names as edit_names
from cake_tui.ir.edits import parameters as edit_parameters
from cake_tui.ir.lower import lower, text_of
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.origins import (
    build,
    default_schedule,
    first_schedule,
    full_build,
    knobs,
    multiples,
    structures,
    text_structure,
)
from cake_tui.ir.program import Program

__all__ = [
    "Opaque",
    "Program",
    "apply",
    "build",
    "default_schedule",
    "edit_names",
    "edit_parameters",
    "first_schedule",
    "full_build",
    "knobs",
    "lower",
    "multiples",
    "structures",
    "text_of",
    "text_structure",
]
