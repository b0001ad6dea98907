"""Where a structure comes from: a builder, a program text, or a user's own kernel file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TypeVar

import msgspec

from cake_tui.errors import did_you_mean
from cake_tui.ir import text
from cake_tui.ir.build import load as load_builder
from cake_tui.ir.build import names as builder_names
from cake_tui.ir.expr import EvaluationError, Number, ParseError, evaluate, parse
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.program import Buffer, Launch, Program, Size
from cake_tui.ir.refusal import nearest_value, refuse
from cake_tui.model.device import Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Knob, KnobValue, Schedule, is_legal

TEMPLATE = "template"
TEXT = "text-"
LARGEST_SIZE = 1 << 30
_NO_TEXTS: Mapping[str, str] = {}


def text_structure(source: str) -> str:
    """Return the structure's name of a program text: ``text-`` and the first 12 digits of its hash."""
    return TEXT + hashlib.sha256(source.encode()).hexdigest()[:12]


def structures(problem: Problem, target: Target, texts: Mapping[str, str] = _NO_TEXTS) -> tuple[str, ...]:
    """List the structures that a schedule of this problem may name on a target, the first one the simplest."""
    if problem.template is not None:
        return (TEMPLATE,) if problem.template.target == target else ()
    return (*builder_names(problem.family, target), *sorted(texts))


def knobs(
    problem: Problem, structure: str, target: Target, device: Device, *, texts: Mapping[str, str] = _NO_TEXTS
) -> tuple[Knob, ...]:
    """Return a structure's knobs with the values legal on this device; raises Ended for an unknown structure."""
    if problem.template is None and structure not in texts:
        with suppress(_NoBuilder):
            return _knobs_of_builder(problem, structure, target, device)
    known = structures(problem, target, texts)
    if structure not in known:
        raise refuse(
            "structure", "structure", f"{structure}{did_you_mean(structure, known)}",
            f"a structure of this kernel on {target}: {', '.join(known) or 'none'}",
            nearest=known[0] if known else None,
        )  # fmt: skip
    if problem.template is not None:
        return problem.template.knobs
    made = []
    for const in _parsed(structure, texts).consts:
        if const.values and isinstance(const.value, Number):
            made.append(Knob(const.name, const.values, int(const.value.value)))
    return tuple(made)


class _NoBuilder(LookupError):
    """No builder has this name."""


@lru_cache(maxsize=256)
def _knobs_of_builder(problem: Problem, structure: str, target: Target, device: Device) -> tuple[Knob, ...]:
    """Return a builder's knobs, asked for many times a move; raises _NoBuilder where none has the name."""
    if structure not in builder_names(problem.family, target):
        raise _NoBuilder(structure)  # not remembered: a builder may be added
    return load_builder(problem.family or "", structure).knobs(problem, target, device)


def default_schedule(
    problem: Problem, structure: str, target: Target, device: Device, *, texts: Mapping[str, str] = _NO_TEXTS
) -> Schedule:
    """Return a structure with every knob at its default."""
    found = knobs(problem, structure, target, device, texts=texts)
    return Schedule.of(structure, {knob.name: knob.default for knob in found})


def first_schedule(problem: Problem, target: Target, device: Device) -> Schedule:
    """Return candidate 0's schedule: the naive structure, or a template at its defaults."""
    known = structures(problem, target)
    if not known:
        what = f"family {problem.family}" if problem.template is None else f"a {problem.template.target} template"
        raise refuse("structure", "structure", f"no structure for {what}", f"one that exists on {target}")
    return default_schedule(problem, known[0], target, device)


def build(
    problem: Problem,
    schedule: Schedule,
    target: Target,
    device: Device,
    *,
    runtime_sizes: bool,
    texts: Mapping[str, str] = _NO_TEXTS,
) -> Program | Opaque:
    """Build a schedule's program; raises Ended(Rejected) for an illegal knob or a broken constraint.

    With `runtime_sizes` the sizes are arguments, else those of the problem's first shape are constants.
    """
    values = _checked(problem, schedule, target, device, texts)
    _check_multiples(problem, schedule, target, device, texts)
    if problem.template is not None:
        return _template(problem, values, target, device, runtime_sizes)
    if schedule.structure in texts:
        program = _parsed(schedule.structure, texts)
        return _with_values(program, problem, schedule.structure, values, target, device, runtime_sizes)
    return _built(problem, schedule.structure, tuple(values.items()), target, device, runtime_sizes)


@lru_cache(maxsize=512)
def _built(
    problem: Problem,
    structure: str,
    values: tuple[tuple[str, KnobValue], ...],
    target: Target,
    device: Device,
    runtime_sizes: bool,
) -> Program:
    # An agent's question, the move and the plan each ask for the program of one schedule, and for its base's.
    made = load_builder(problem.family or "", structure).build(problem, dict(values), target, device, runtime_sizes)
    launches, buffers = tuple(map(_first_such, made.launches)), tuple(map(_first_such, made.buffers))
    return msgspec.structs.replace(made, launches=launches, buffers=buffers)


_Part = TypeVar("_Part", Launch, Buffer)


@lru_cache(maxsize=1 << 10)
def _first_such(part: _Part) -> _Part:
    """Return the first part that was equal: many schedules share it, and what was asked of it once is found again."""
    return part


def full_build(
    problem: Problem, schedule: Schedule, device: Device, *, texts: Mapping[str, str] = _NO_TEXTS
) -> Program | Opaque:
    """Build the program that is judged and timed; raises Ended(Rejected).

    Several ranked shapes share one binary, so only a single shape may be constant in it.
    """
    runtime_sizes = len(problem.shapes) > 1
    return build(problem, schedule, device.target, device, runtime_sizes=runtime_sizes, texts=texts)


def multiples(
    problem: Problem, schedule: Schedule, target: Target, device: Device, *, texts: Mapping[str, str] = _NO_TEXTS
) -> dict[str, int]:
    """Return, for every size, the multiple that the schedule needs of it (1 where any value will do)."""
    found = dict.fromkeys(problem.size_names, 1)
    if problem.template is not None:
        return found
    if schedule.structure in texts:
        sizes = _parsed(schedule.structure, texts).sizes
        return found | {size.name: size.multiple for size in sizes if size.name in found}
    structure = load_builder(problem.family or "", schedule.structure)
    return found | structure.multiples(problem, dict(schedule.knobs), target)


def sizes(problem: Problem, runtime_sizes: bool, needed: Mapping[str, int] = {}) -> tuple[Size, ...]:
    """Return the problem's sizes as a program declares them."""
    made = []
    for name in problem.size_names:
        multiple = needed.get(name, 1)
        if runtime_sizes:
            made.append(Size(name, None, multiple, multiple, LARGEST_SIZE))
        else:
            made.append(Size(name, problem.shapes[0][name], multiple))
    return tuple(made)


def parameters(problem: Problem, align: int = 4) -> tuple[Buffer, ...]:
    """Return the problem's buffers as a program declares them, by default at the least alignment."""
    made = []
    for spec in problem.buffers:
        shape = tuple(parse(extent) for extent in spec.shape)
        made.append(Buffer(spec.name, "param", spec.dtype, shape, spec.role, align))  # type: ignore[arg-type]
    return tuple(made)


def _checked(
    problem: Problem, schedule: Schedule, target: Target, device: Device, texts: Mapping[str, str]
) -> dict[str, KnobValue]:
    known = {knob.name: knob for knob in knobs(problem, schedule.structure, target, device, texts=texts)}
    given = dict(schedule.knobs)
    for name, value in given.items():
        if name not in known:
            raise refuse(
                "knob", name, f"{schedule.structure} has no knob {name}{did_you_mean(name, known)}",
                f"one of {', '.join(known) or 'none'}", step="build",
            )  # fmt: skip
        legal = known[name].values
        if not is_legal(value, legal):
            raise refuse(
                "knob", name, f"{name} = {value}", f"one of {' '.join(str(other) for other in legal)}",
                nearest=str(nearest_value(value, legal)), step="build",
            )  # fmt: skip
    return {name: given.get(name, knob.default) for name, knob in known.items()}


def _check_multiples(
    problem: Problem, schedule: Schedule, target: Target, device: Device, texts: Mapping[str, str]
) -> None:
    for name, multiple in multiples(problem, schedule, target, device, texts=texts).items():
        for shape in problem.shapes:
            if shape[name] % multiple:
                raise refuse(
                    "multiples", name, f"{name} = {shape[name]}", f"a multiple of {multiple}",
                    nearest=str(max(1, round(shape[name] / multiple)) * multiple), step="build",
                )  # fmt: skip


def _parsed(structure: str, texts: Mapping[str, str]) -> Program:
    try:
        return text.parse(texts[structure])
    except ParseError as error:
        raise refuse("grammar", f"line {error.line}", error.found, error.expected, step="build") from None


def _with_values(
    program: Program,
    problem: Problem,
    structure: str,
    values: Mapping[str, KnobValue],
    target: Target,
    device: Device,
    runtime_sizes: bool,
) -> Program:
    """Put knobs, sizes and architecture into a program text: its parameters must be the problem's."""
    if program.target != target:
        raise refuse("target", "target", f"a program for {program.target}", f"one for {target}", step="build")
    declared = {buffer.name: buffer for buffer in program.buffers if buffer.space == "param"}
    for wanted in parameters(problem):
        found = declared.pop(wanted.name, None)
        if found is None or (found.dtype, found.shape, found.access) != (wanted.dtype, wanted.shape, wanted.access):
            shown = "no such parameter" if found is None else text.show_buffer(found)
            raise refuse("parameters", wanted.name, shown, text.show_buffer(wanted), step="build")
    for name in declared:
        raise refuse("parameters", name, f"a parameter {name}", "only the kernel's buffers", step="build")
    needed = {size.name: size.multiple for size in program.sizes}
    consts = tuple(
        msgspec.structs.replace(const, value=Number(int(values[const.name]))) if const.name in values else const
        for const in program.consts
    )
    return msgspec.structs.replace(
        program, arch=device.arch, structure=structure, consts=consts, sizes=sizes(problem, runtime_sizes, needed)
    )


def _template(
    problem: Problem, values: Mapping[str, KnobValue], target: Target, device: Device, runtime_sizes: bool
) -> Opaque:
    template = problem.template
    assert template is not None  # the caller looked
    for shape in problem.shapes:
        names = {**dict(shape.sizes), **{name: value for name, value in values.items() if not isinstance(value, str)}}
        for condition in template.require:
            try:
                holds = evaluate(parse(condition), names)
            except EvaluationError as error:
                raise refuse(
                    "require", condition, str(error), "a condition over knobs and sizes", step="build"
                ) from None
            if not holds:
                used = ", ".join(f"{name} = {value}" for name, value in values.items() if name in condition)
                raise refuse("require", condition, used or shape.text, condition, step="build")
    return Opaque(
        name=problem.kernel,
        target=target,
        arch=device.arch,
        source=template.source,
        entry=template.entry,
        sizes=sizes(problem, runtime_sizes),
        knobs=tuple(sorted(values.items())),
        buffers=parameters(problem),
        grid=tuple(parse(axis) for axis in template.grid),
        block=tuple(parse(axis) for axis in template.block),
        smem_bytes=parse(template.smem_bytes),
    )
