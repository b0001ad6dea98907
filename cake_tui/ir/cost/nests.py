"""Loop nests of a program on known sizes: how often each statement runs, and which elements its references walk over.

Index expressions become sums of loop variables with whole coefficients; ceil, floor and min are taken where all
loops stand at their start. This is quick and close enough for a prediction; the laws have the exact analysis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.spans import numbers_of
from cake_tui.ir.expr import (
    All,
    Binary,
    Call,
    EvaluationError,
    Expr,
    Name,
    Number,
    Ref,
    Span,
    Unary,
    conjuncts,
    evaluate,
)
from cake_tui.ir.program import DTYPE_BYTES, Buffer, Launch, Program, Statement
from cake_tui.ir.walk import buffers_of, children, reads, writes

Linear = dict[str, float]  # "" holds the constant


class Loop(msgspec.Struct, frozen=True, gc=False):
    """A grid axis or loop: how many rounds it makes on average, and its options."""

    name: str
    trips: float
    grid: bool = False
    unroll: float = 1
    stages: float = 0


class Use(msgspec.Struct, frozen=True):
    """One reference: per axis how far each variable moves it, how many elements it takes, and the extent."""

    buffer: Buffer
    moves: tuple[Linear, ...]
    lengths: tuple[float, ...]
    extents: tuple[float, ...]
    pitch: float  # elements from row to row of the last axis
    writes: bool

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return DTYPE_BYTES[self.buffer.dtype]

    @property
    def elements(self) -> float:
        """Elements that one execution takes."""
        return math.prod(self.lengths)

    def lines(self, trips: Mapping[str, float], line_bytes: int) -> float:
        """Distinct cache lines touched while the loops in `trips` make their rounds."""
        found = 1.0
        last = len(self.lengths) - 1
        for axis, length in enumerate(self.lengths):
            reach = length
            steps = length
            for name, factor in self.moves[axis].items():
                if name and name in trips and factor:
                    reach += abs(factor) * (trips[name] - 1)
                    steps *= trips[name]
            touched = max(1.0, min(reach, steps, self.extents[axis]))
            if axis == last:
                packed = max(1.0, min(reach, self.extents[axis]) * self.element_bytes / line_bytes)
                touched = min(touched, packed + (0.5 if packed > 1 else 0.0))
            found *= touched
        return found


class Work(msgspec.Struct, frozen=True):
    """A statement in its nest: the loops around it, outermost first, and its references."""

    statement: Statement
    loops: tuple[Loop, ...]
    uses: tuple[Use, ...]
    guarded: bool  # a `where` that can cut

    @property
    def runs(self) -> float:
        """How often it runs in the whole launch."""
        return math.prod(loop.trips for loop in self.loops)


@dataclass
class Nest:
    """One launch: blocks, threads, and its statements with what they touch."""

    launch: Launch
    blocks: float
    threads: float
    works: list[Work] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)

    def number(self, expr: Expr) -> float:
        """Return the value of an expression over sizes and constants."""
        return float(evaluate(expr, self.numbers))


def flops_of(nest: Nest) -> float:
    """Multiplications and additions of a launch's products; maps and reductions count one an element."""
    total = 0.0
    for work in nest.works:
        target = next((use for use in work.uses if use.writes), None)
        if target is None or isinstance(work.statement, ir.Declare | ir.Copy):
            continue
        depth = 1.0
        if isinstance(work.statement, ir.Contract):
            right = next(use for use in reversed(work.uses) if not use.writes and use.buffer is not target.buffer)
            depth = 2.0 * (right.lengths[-2] if work.statement.op != "outer" and len(right.lengths) > 1 else 1.0)
        elif isinstance(work.statement, ir.Assign) and work.statement.op == "+=":
            depth = 2.0
        total += depth * target.elements * work.runs
    return total


def nests_of(program: Program, sizes: Mapping[str, int]) -> list[Nest]:
    """Return the nests of a program's launches at these sizes; raises EvaluationError where a number has no value."""
    numbers: dict[str, float] = {
        **numbers_of(program, {size.name: sizes.get(size.name, size.value or 1) for size in program.sizes})
    }
    return [_Reader(program, launch, numbers).nest() for launch in program.launches]


class _Reader:
    def __init__(self, program: Program, launch: Launch, numbers: dict[str, float]) -> None:
        self.launch = launch
        self.numbers = numbers
        self.buffers = buffers_of(program.buffers, launch)
        self.extents: dict[str, tuple[float, ...]] = {}

    def nest(self) -> Nest:
        """Read the launch."""
        axes = [Loop(axis.name, self.value(axis.extent), True) for axis in self.launch.axes]
        first = {**self.numbers, **{loop.name: 0.0 for loop in axes}}
        last = {**self.numbers, **{loop.name: loop.trips - 1 for loop in axes}}
        names: dict[str, Linear] = {loop.name: {loop.name: 1.0} for loop in axes}
        blocks = math.prod(loop.trips for loop in axes)
        made = Nest(self.launch, blocks, self.value(self.launch.threads), buffers=self.buffers, numbers=self.numbers)
        for statement in self.launch.body:
            made.works += self._statement(statement, tuple(axes), names, first, last)
        return made

    def value(self, expr: Expr) -> float:
        """The value of an expression over sizes and constants."""
        return evaluate(expr, self.numbers)

    def _statement(
        self,
        statement: Statement,
        loops: tuple[Loop, ...],
        names: dict[str, Linear],
        first: dict[str, float],
        last: dict[str, float],
    ) -> Iterator[Work]:
        match statement:
            case ir.For():
                yield from self._loop(statement, loops, names, first, last)
            case ir.If() | ir.Role():
                for _, child in children(statement):
                    yield from self._statement(child, loops, names, first, last)
            case _:
                uses, inner = self._uses(statement, names)
                yield Work(statement, loops, uses, self._guarded(statement, inner, loops))

    def _loop(
        self,
        loop: ir.For,
        loops: tuple[Loop, ...],
        names: dict[str, Linear],
        first: dict[str, float],
        last: dict[str, float],
    ) -> Iterator[Work]:
        step = max(1.0, self.value(loop.step))
        starts = _at(loop.start, first), _at(loop.start, last)
        trips = [max(0.0, math.ceil((_at(loop.stop, at) - start) / step)) for at, start in zip((first, last), starts)]
        around = max((outer.trips for outer in loops if outer.grid), default=1.0)
        average = (trips[0] * (around - 1) + trips[1]) / around if around > 1 else trips[0]
        unroll = self.value(loop.unroll) if loop.unroll is not None else 1.0
        stages = self.value(loop.stages) if loop.stages is not None else 0.0
        made = Loop(loop.variable, max(average, 1e-9), False, unroll, stages)
        start = linear(loop.start, names, self.numbers)
        moved = {**start, loop.variable: start.get(loop.variable, 0.0) + step}
        inner = {**names, loop.variable: moved}
        for child in loop.body:
            yield from self._statement(
                child,
                (*loops, made),
                inner,
                {**first, loop.variable: starts[0]},
                {**last, loop.variable: starts[1]},
            )

    def _uses(self, statement: Statement, names: dict[str, Linear]) -> tuple[tuple[Use, ...], dict[str, Linear]]:
        inner = names
        read, written = reads(statement), writes(statement)
        for ref in (*written, *read):
            for index in ref.indices:
                if isinstance(index, Span) and index.axis and index.axis not in inner:
                    if inner is names:
                        inner = dict(names)
                    # the coordinate itself is a variable too: it runs through the tile
                    inner[index.axis] = {**linear(index.start, names, self.numbers), f"@{index.axis}": 1.0}
        spans = {
            index.axis: self.value(index.length)
            for ref in (*written, *read)
            for index in ref.indices
            if isinstance(index, Span) and index.axis
        }
        found = [self._use(ref, inner, spans, False) for ref in read]
        found += [self._use(ref, inner, spans, True) for ref in written]
        return tuple(found), inner

    def _use(self, ref: Ref, names: dict[str, Linear], spans: dict[str, float], writes_it: bool) -> Use:
        buffer = self.buffers[ref.buffer]
        if ref.buffer not in self.extents:
            self.extents[ref.buffer] = tuple(self.value(extent) for extent in buffer.shape)
        extents = self.extents[ref.buffer]
        moves: list[Linear] = []
        lengths: list[float] = []
        for axis, extent in enumerate(extents):
            index = ref.indices[axis] if axis < len(ref.indices) else All()
            if isinstance(index, All):
                moves.append({})
                lengths.append(extent)
            elif isinstance(index, Span):
                moves.append(linear(index.start, names, self.numbers))
                lengths.append(self.value(index.length))
            else:
                form = linear(index, names, self.numbers)
                run = {name: spans.get(name[1:], 1.0) for name in form if name.startswith("@")}
                reach = 1.0 + sum(abs(form[name]) * (count - 1) for name, count in run.items())
                lengths.append(max(1.0, min(reach, math.prod(run.values()))))
                moves.append({name: factor for name, factor in form.items() if name not in run})
        pitch = (extents[ir.inner_axis(buffer)] if extents else 1.0) + self.value(buffer.pad)
        return Use(buffer, tuple(moves), tuple(lengths), extents, pitch, writes_it)

    def _guarded(self, statement: Statement, names: dict[str, Linear], loops: tuple[Loop, ...]) -> bool:
        guard = getattr(statement, "where", None)
        if guard is None:
            return False
        spans = {
            index.axis: self.value(index.length)
            for ref in (*reads(statement), *writes(statement))
            for index in ref.indices
            if isinstance(index, Span) and index.axis
        }
        rounds = {loop.name: loop.trips for loop in loops}
        return any(self._cuts(part, names, spans, rounds) for part in conjuncts(guard.condition))

    def _cuts(self, part: Expr, names: dict[str, Linear], spans: dict[str, float], rounds: dict[str, float]) -> bool:
        if not isinstance(part, Binary) or part.op != "<":
            return True
        form = linear(part.left, names, self.numbers)
        greatest = form.get("", 0.0)
        for name, factor in form.items():
            count = spans.get(name[1:], 1.0) if name.startswith("@") else rounds.get(name, 1.0)
            greatest += factor * (count - 1) if name else 0.0
        return greatest >= linear(part.right, names, self.numbers).get("", 0.0)


def _at(expr: Expr, numbers: Mapping[str, float]) -> float:
    try:
        return evaluate(expr, numbers)
    except EvaluationError:
        return 0.0


def linear(expr: Expr, names: Mapping[str, Linear], numbers: Mapping[str, float]) -> Linear:
    """Return an expression as a sum of variables; what is not one is held at its value at the variables' start."""
    if type(expr) is Name:
        return names[expr.name] if expr.name in names else {"": float(numbers.get(expr.name, 0.0))}
    if type(expr) is Number:
        return {"": float(expr.value)}
    match expr:
        case Unary("-", operand):
            return _scaled(linear(operand, names, numbers), -1.0)
        case Binary("+" | "-" as op, left, right):
            one, other = linear(left, names, numbers), linear(right, names, numbers)
            total = dict(one)
            for name, factor in other.items():
                total[name] = total.get(name, 0.0) + (factor if op == "+" else -factor)
            return total
        case Binary("*" | "/" as op, left, right):
            one, other = linear(left, names, numbers), linear(right, names, numbers)
            if op == "*" and len(one) == 1 and "" in one:
                one, other = other, one
            factor = other.get("", 0.0)
            return _scaled(one, factor if op == "*" else 1.0 / factor if factor else 0.0)
        case Call("ceil" | "floor" as function, (operand,)):
            value = linear(operand, names, numbers).get("", 0.0)
            return {"": float(math.ceil(value) if function == "ceil" else math.floor(value))}
        case Call("min" | "max" as function, arguments):
            sides = [linear(argument, names, numbers) for argument in arguments]
            return (min if function == "min" else max)(sides, key=lambda side: side.get("", 0.0))
    return {}


def _scaled(form: Linear, factor: float) -> Linear:
    return {name: value * factor for name, value in form.items()}
