"""Edits: pure rewrites of a schedule, one a file, each with a ``PLUGIN`` found by place.

An edit never changes what it is given; it returns another schedule or refuses with the field that forbids it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from cake_tui import registry
from cake_tui.errors import Ended, did_you_mean
from cake_tui.ir import origins
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Program
from cake_tui.ir.refusal import nearest_value, refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue, Schedule, is_legal

PLACE = "ir/edits"
Arguments = Mapping[str, KnobValue]


class Ground(msgspec.Struct, frozen=True):
    """What an edit stands on: the problem, the target and the device that say which values are legal."""

    problem: Problem
    target: Target
    device: Device
    texts: Mapping[str, str]

    @property
    def structures(self) -> tuple[str, ...]:
        """Structures of this kernel on this target."""
        return origins.structures(self.problem, self.target, self.texts)

    def knobs(self, structure: str) -> dict[str, Knob]:
        """Return a structure's knobs by name; raises Ended(Rejected) for one that is not there."""
        found = origins.knobs(self.problem, structure, self.target, self.device, texts=self.texts)
        return {knob.name: knob for knob in found}

    def set_knobs(self, schedule: Schedule, changes: Arguments) -> Schedule:
        """Lay knobs over a schedule; refuses unknown knobs, illegal values and a change that changes nothing."""
        known = self.knobs(schedule.structure)
        for name, value in changes.items():
            if name not in known:
                raise refuse(
                    "no-meaning", name, f"{schedule.structure} has no knob {name}{did_you_mean(name, known)}",
                    f"a structure with {name}, or one of: {', '.join(known) or 'no knobs at all'}",
                )  # fmt: skip
            legal = known[name].values
            if not is_legal(value, legal):
                raise refuse(
                    "legal-values", name, f"{name} = {value}", f"one of {' '.join(str(other) for other in legal)}",
                    nearest=str(nearest_value(value, legal)),
                )  # fmt: skip
        changed = schedule.with_knobs(changes)
        if changed == schedule:
            shown = ", ".join(f"{name} = {value}" for name, value in changes.items())
            raise refuse("no-change", next(iter(changes), "knobs"), f"already {shown}", "a value that differs")
        return changed

    def set_sides(self, schedule: Schedule, changes: Arguments) -> Schedule:
        """Lay the sides of a block over a schedule; a side that the structure lacks is one long and may be left so."""
        known = self.knobs(schedule.structure)
        felt = {name: value for name, value in changes.items() if name in known or value != 1}
        return self.set_knobs(schedule, felt or changes)

    def change_structure(self, schedule: Schedule, structure: str, changes: Arguments) -> Schedule:
        """Go to another structure with the knobs that both have, legal ones kept, and `changes` over them."""
        known = self.knobs(structure)
        if structure == schedule.structure:
            if not changes:
                raise refuse("no-change", "structure", f"already {structure}", "another structure")
            return self.set_knobs(schedule, changes)
        kept = {name: value for name, value in schedule.knobs if name in known and is_legal(value, known[name].values)}
        start = Schedule.of(structure, {name: knob.default for name, knob in known.items()} | kept)
        differing = {name: value for name, value in changes.items() if start.knob(name) != value}
        return self.set_knobs(start, differing) if differing else start


class Edit(msgspec.Struct, frozen=True):
    """A pure rewrite ``(schedule, arguments, ground) -> schedule`` and the names of its arguments.

    `open` edits take further arguments beyond `parameters`.
    """

    rewrite: Callable[[Schedule, Arguments, Ground], Schedule]
    parameters: tuple[str, ...] = ()
    open: bool = False


def names() -> tuple[str, ...]:
    """List the edits that an action may be made of."""
    return registry.names(PLACE)


def load(name: str) -> Edit:
    """Import one edit; raises UserError for a name that is not there."""
    return cast(Edit, registry.load(PLACE, name))


def parameters(name: str) -> tuple[str, ...]:
    """Return the names of an edit's arguments; raises UserError for an unknown edit."""
    return load(name).parameters


def apply(
    problem: Problem,
    schedule: Schedule,
    name: str,
    arguments: Arguments,
    target: Target,
    device: Device,
    *,
    texts: Mapping[str, str] = {},
) -> Schedule:
    """Rewrite a schedule by one edit; raises Ended(Rejected) with the field that forbids it."""
    edit = load(name)
    for parameter in edit.parameters:
        if parameter not in arguments:
            raise refuse("arguments", parameter, f"{name} without {parameter}", f"{name}({', '.join(edit.parameters)})")
    extra = [argument for argument in arguments if argument not in edit.parameters]
    if extra and not edit.open:
        found = f"{name} has no argument {extra[0]}{did_you_mean(extra[0], edit.parameters)}"
        raise refuse("arguments", extra[0], found, f"{name}({', '.join(edit.parameters)})")
    ground = Ground(problem, target, device, texts)
    changed = edit.rewrite(schedule, arguments, ground)
    _refuse_idle(schedule, changed, ground)
    return changed


def _refuse_idle(before: Schedule, after: Schedule, ground: Ground) -> None:
    """Refuse a knob that the program does not feel as its other knobs stand: padding where nothing is staged."""
    if before.structure != after.structure:
        return
    programs = [_program(schedule, ground) for schedule in (before, after)]
    if programs[0] is None or programs[0] != programs[1]:
        return
    name, value = next(item for item in after.knobs if item not in before.knobs)
    flags = ", ".join(f"{key} = {flag}" for key, flag in after.knobs if isinstance(flag, bool))
    found = f"{name} = {value} changes nothing in {after.structure}{f' with {flags}' if flags else ''}"
    raise refuse("no-meaning", name, found, f"other settings under which {name} has a meaning")


def _program(schedule: Schedule, ground: Ground) -> Program | Opaque | None:
    try:
        return origins.build(
            ground.problem, schedule, ground.target, ground.device, runtime_sizes=False, texts=ground.texts
        )
    except Ended:
        return None  # whatever forbids it is said when it is built
