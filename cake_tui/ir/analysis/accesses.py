"""Every access of a program to a buffer as affine forms, with the loops, guards and branches around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import msgspec

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.affine import ONE, ZERO, Affine, Scope
from cake_tui.ir.analysis.forms import Unbounded, floor_of, form_of
from cake_tui.ir.analysis.seen import Seen, seen
from cake_tui.ir.expr import OPPOSITE, All, Binary, Expr, Number, Ref, Span, Unary, conjuncts
from cake_tui.ir.program import Buffer, Launch, Program, Statement
from cake_tui.ir.walk import Path, buffers_of, children, reads, writes

Mode = Literal["read", "write", "atomic"]


class AxisReach(msgspec.Struct, frozen=True, gc=False):
    """One axis of an access: first element, how many, the element's own form, and the axis' extent.

    `element` is None where the index cannot be bounded (it is read from a buffer).
    """

    start: Affine | None
    length: Affine
    element: Affine | None
    extent: Affine


class Around(msgspec.Struct, frozen=True, gc=False):
    """A grid axis or loop around an access: its variable in the forms and how many values it takes."""

    kind: Literal["grid", "loop"]
    name: str
    variable: str
    count: Affine


class Accessing(msgspec.Struct, frozen=True, eq=False):
    """One reference of one statement. `update` writes read the old value too; `guards` are forms known to be <= 0.

    Each is equal to itself alone; schedules whose launches no analysis can tell apart share theirs.
    """

    path: Path
    launch: int
    statement: Statement
    ref: Ref
    buffer: Buffer
    mode: Mode
    axes: tuple[AxisReach, ...]
    scope: Scope
    guards: tuple[Affine, ...]
    around: tuple[Around, ...]
    update: bool = False
    branches: tuple[tuple[Path, bool], ...] = ()
    fixed: frozenset[str] = frozenset()  # variables that a branch holds at one value


@dataclass
class _Place:
    scope: Scope
    names: dict[str, Affine]
    around: tuple[Around, ...] = ()
    branches: tuple[tuple[Path, bool], ...] = ()
    fixed: frozenset[str] = field(default_factory=frozenset)

    def child(self) -> _Place:
        return _Place(self.scope.child(), dict(self.names), self.around, self.branches, self.fixed)


def accesses_of(program: Program, sizes: Mapping[str, int] | None = None) -> list[Accessing]:
    """List the accesses of a program, in the order of the text.

    With `sizes` every size is that number; else run-time sizes are variables within their ranges.
    """
    given = None if sizes is None else tuple(sizes.items())
    return [
        access
        for index, launch in enumerate(program.launches)
        for access in _accesses_of(launch, index, seen(program, launch), given)
    ]


@lru_cache(maxsize=128)
def _accesses_of(
    launch: Launch, index: int, around: Seen, given: tuple[tuple[str, int], ...] | None
) -> tuple[Accessing, ...]:
    place = _Place(Scope(), {})
    for size in around.sizes:
        place.names[size.name] = _size(size, place.scope, None if given is None else dict(given))
    for const in around.consts:
        try:
            place.names[const.name] = form_of(const.value, place.names, place.scope)
        except Unbounded:
            continue
    return tuple(_Reader(launch, index, around.buffers).read(place))


def _size(size: ir.Size, scope: Scope, sizes: Mapping[str, int] | None) -> Affine:
    known = sizes.get(size.name) if sizes is not None else size.value
    if known is not None:
        return Affine.number(known)
    step = max(1, size.multiple)
    low = Affine.number(max(1, -(-(size.low or 1) // step)))
    high = Affine.number((size.high if size.high is not None else 1 << 40) // step)
    name = size.name if step == 1 else f"{size.name}/{step}"
    return scope.declare(name, low, high).times(step)


class _Reader:
    def __init__(self, launch: Launch, index: int, buffers: tuple[Buffer, ...]) -> None:
        self.launch = launch
        self.index = index
        self.buffers = buffers_of(buffers, launch)
        self.fresh = 0

    def read(self, place: _Place) -> Iterator[Accessing]:
        for axis in self.launch.axes:
            self._around(place, "grid", axis.name, Number(0), axis.extent, Number(1))
        for at, statement in enumerate(self.launch.body):
            yield from self._statement(statement, (self.index, at), place)

    def _variable(self, name: str) -> str:
        self.fresh += 1
        return f"{name}.{self.fresh}"

    def _around(
        self, place: _Place, kind: Literal["grid", "loop"], name: str, start: Expr, stop: Expr, step: Expr
    ) -> None:
        try:
            low, high = form_of(start, place.names, place.scope), form_of(stop, place.names, place.scope)
            stride = form_of(step, place.names, place.scope).value
        except Unbounded:
            place.names.pop(name, None)
            return
        if not stride or stride < 0:
            place.names.pop(name, None)
            return
        last = floor_of((high - low - 1).over(stride), place.scope)
        variable = self._variable(name)
        place.scope.declare(variable, ZERO, last)
        place.names[name] = low + Affine.variable(variable).times(stride)
        place.around = (*place.around, Around(kind, name, variable, last + 1))

    def _statement(self, statement: Statement, path: Path, place: _Place) -> Iterator[Accessing]:
        match statement:
            case ir.For(variable=name, start=start, stop=stop, step=step):
                inner = place.child()
                self._around(inner, "loop", name, start, stop, step)
                for at, child in children(statement):
                    yield from self._statement(child, (*path, at), inner)
            case ir.If(condition=condition):
                yield from self._accesses(statement, path, place)
                for at, child in children(statement):
                    inner = place.child()
                    inner.branches = (*place.branches, (path, at >= 0))
                    parts = conjuncts(condition) if at >= 0 else _negated(condition)
                    inner.scope = inner.scope.know(*self._facts(parts, inner))
                    inner.fixed = place.fixed | self._fixed(parts, inner)
                    yield from self._statement(child, (*path, at), inner)
            case ir.Role():
                for at, child in children(statement):
                    yield from self._statement(child, (*path, at), place)
            case _:
                yield from self._accesses(statement, path, place)

    def _accesses(self, statement: Statement, path: Path, place: _Place) -> Iterator[Accessing]:
        read, written = reads(statement), writes(statement)
        guard = getattr(statement, "where", None)
        if not read and not written:
            return
        local = place.child()
        for ref in (*written, *read):
            self._name_spans(ref, local)
        guards = tuple(self._facts(conjuncts(guard.condition), local)) if guard is not None else ()
        shared = {
            "path": path,
            "launch": self.index,
            "statement": statement,
            "guards": guards,
            "around": place.around,
            "branches": place.branches,
            "fixed": place.fixed,
        }
        update = isinstance(statement, ir.Assign) and statement.op == "+="
        update = update or any(ref.buffer == target.buffer for ref in read for target in written)
        for mode, refs in (("read", read), ("write", written)):
            for ref in refs:
                if ref.buffer not in self.buffers:
                    continue
                axes = tuple(self._axis(ref, axis, local) for axis in range(len(self.buffers[ref.buffer].shape)))
                kind: Mode = "atomic" if isinstance(statement, ir.Atomic) else mode  # type: ignore[assignment]
                yield Accessing(
                    ref=ref,
                    buffer=self.buffers[ref.buffer],
                    mode=kind,
                    axes=axes,
                    scope=local.scope,
                    update=update and mode == "write",
                    **shared,  # type: ignore[arg-type]
                )

    def _name_spans(self, ref: Ref, place: _Place) -> None:
        for index in ref.indices:
            if isinstance(index, Span) and index.axis:
                try:
                    start, length = (form_of(part, place.names, place.scope) for part in (index.start, index.length))
                except Unbounded:
                    continue
                variable = self._variable(index.axis)
                place.scope.declare(variable, ZERO, length - 1)
                place.names[index.axis] = start + Affine.variable(variable)

    def _axis(self, ref: Ref, axis: int, place: _Place) -> AxisReach:
        buffer = self.buffers[ref.buffer]
        try:
            extent = form_of(buffer.shape[axis], place.names, place.scope)
        except Unbounded:
            return AxisReach(None, ONE, None, ONE)
        index = ref.indices[axis] if axis < len(ref.indices) else All()
        try:
            match index:
                case All():
                    variable = place.scope.declare(self._variable(":"), ZERO, extent - 1)
                    return AxisReach(ZERO, extent, variable, extent)
                case Span(start, length, name):
                    first, count = form_of(start, place.names, place.scope), form_of(length, place.names, place.scope)
                    if name in place.names:
                        return AxisReach(first, count, place.names[name], extent)
                    variable = place.scope.declare(self._variable("+"), ZERO, count - 1)
                    return AxisReach(first, count, first + variable, extent)
                case _:
                    form = form_of(index, place.names, place.scope)
                    return AxisReach(form, ONE, form, extent)
        except Unbounded:
            return AxisReach(None, ONE, None, extent)

    def _facts(self, parts: tuple[Expr, ...], place: _Place) -> list[Affine]:
        found: list[Affine] = []
        for part in parts:
            match part:
                case Binary("<" | "<=" | ">" | ">=" | "==" as op, left, right):
                    try:
                        difference = form_of(left, place.names, place.scope) - form_of(right, place.names, place.scope)
                    except Unbounded:
                        continue
                    if op in ("<", "<=", "=="):
                        found.append(difference + (1 if op == "<" else 0))
                    if op in (">", ">=", "=="):
                        found.append(-difference + (1 if op == ">" else 0))
        return found

    def _fixed(self, parts: tuple[Expr, ...], place: _Place) -> frozenset[str]:
        """Variables that an equality with everything else known holds at one value."""
        found = set()
        for part in parts:
            if isinstance(part, Binary) and part.op == "==":
                for fact in self._facts((part,), place)[:1]:
                    found |= {name for name in fact.names if abs(fact.coefficient(name)) == 1 and len(fact.names) == 1}
        return frozenset(found)


def _negated(condition: Expr) -> tuple[Expr, ...]:
    """The conjuncts of the opposite of a condition, as far as one comparison says it."""
    match condition:
        case Unary("not", operand):
            return conjuncts(operand)
        case Binary(op, left, right) if op in OPPOSITE:
            return (Binary(OPPOSITE[op], left, right),)
        case Binary("or", left, right):
            return _negated(left) + _negated(right)
    return ()
