"""Numbers of a program: values of its names, extents of its buffers, and the boxes that references reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from cake_tui.ir.analysis.boxes import Box, Reach, Spans
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.expr import All, Binary, Expr, Name, Ref, Span, Unary, conjuncts, evaluate, names_in, walk
from cake_tui.ir.program import Buffer, Program, Size

TYPICAL_TILES = 13  # a run-time size is looked at as an odd number of its multiple


def sample_sizes(size: Size) -> tuple[int, ...]:
    """Return values to look at a size with: its own, or for a run-time one its least, a middle and an odd one."""
    if size.value is not None:
        return (size.value,)
    step = max(1, size.multiple)
    low = max(step, -(-(size.low or 1) // step) * step)
    high = None if size.high is None else max(low, size.high // step * step)

    def clip(value: int) -> int:
        return max(low, value if high is None else min(value, high))

    return tuple(dict.fromkeys((clip(TYPICAL_TILES * 64 // step * step + step), low, clip(low + step))))


def numbers_of(program: Program, sizes: Mapping[str, int]) -> dict[str, int | float]:
    """Return the value of every size and constant; raises EvaluationError where one has none."""
    names: dict[str, int | float] = dict(sizes)
    for const in program.consts:
        names[const.name] = evaluate(const.value, names)
    return names


def whole(value: int | float) -> bool:
    """Whether a value is a whole number."""
    return not isinstance(value, float) or value.is_integer()


def spans_of(numbers: Mapping[str, int | float]) -> dict[str, Reach]:
    """Turn known numbers into spans of one value; fractions have none."""
    return {name: (int(value), int(value)) for name, value in numbers.items() if whole(value)}


def extents(buffer: Buffer, spans: Spans) -> tuple[int, ...]:
    """Return a buffer's shape in numbers; raises Unbounded where a size in it is not known."""
    return tuple(span_of(extent, spans)[1] for extent in buffer.shape)


def truth(condition: Expr, spans: Spans) -> bool | None:
    """Whether a condition holds for all values in the spans (True), for none (False), or it depends (None)."""
    match condition:
        case Unary("not", operand):
            inner = truth(operand, spans)
            return None if inner is None else not inner
        case Binary("and", left, right):
            sides = truth(left, spans), truth(right, spans)
            return False if False in sides else None if None in sides else True
        case Binary("or", left, right):
            sides = truth(left, spans), truth(right, spans)
            return True if True in sides else None if None in sides else False
        case Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as op, left, right):
            try:
                return _compare(op, span_of(left, spans), span_of(right, spans))
            except Unbounded:
                return None
    return None


def _compare(op: str, left: Reach, right: Reach) -> bool | None:
    if op in (">", ">="):
        return _compare({">": "<", ">=": "<="}[op], right, left)
    if op in ("<", "<="):
        strict = op == "<"
        if left[1] < right[0] or (not strict and left[1] == right[0]):
            return True
        return False if left[0] > right[1] or (strict and left[0] == right[1]) else None
    apart = left[1] < right[0] or right[1] < left[0]
    same = left[0] == left[1] == right[0] == right[1]
    if op == "==":
        return True if same else False if apart else None
    return False if same else True if apart else None


def named_spans(refs: Iterable[Ref], spans: Spans) -> dict[str, Reach]:
    """Return the spans of the element coordinates that references name."""
    found: dict[str, Reach] = {}
    for ref in refs:
        for index in ref.indices:
            if isinstance(index, Span) and index.axis:
                try:
                    low, high = span_of(index.start, spans)
                except Unbounded:
                    continue  # it begins where a buffer says: anywhere
                found[index.axis] = (low, high + span_of(index.length, spans)[1] - 1)
    return found


def narrow(spans: dict[str, Reach], condition: Expr | None) -> dict[str, Reach]:
    """Return the spans cut to where a condition's comparisons of one name with the rest can hold."""
    result = dict(spans)
    for part in conjuncts(condition):
        match part:
            case Binary(op, Name(name), right) if name in result:
                _narrow_one(result, op, name, right)
            case Binary(op, left, Name(name)) if name in result and op in _MIRROR:
                _narrow_one(result, _MIRROR[op], name, left)
    return result


_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def _narrow_one(spans: dict[str, Reach], op: str, name: str, other: Expr) -> None:
    try:
        low, high = span_of(other, spans)
    except Unbounded:
        return
    mine = spans[name]
    if op in ("<", "<="):
        spans[name] = (mine[0], min(mine[1], high - (op == "<")))
    elif op in (">", ">="):
        spans[name] = (max(mine[0], low + (op == ">")), mine[1])
    elif op == "==":
        spans[name] = (max(mine[0], low), min(mine[1], high))


def reach_of(index: Expr | Span | All, extent: int, spans: Spans) -> Reach:
    """Return the elements of one axis that an index reaches; an index read from a buffer may reach all."""
    if isinstance(index, All):
        return 0, extent - 1
    try:
        if isinstance(index, Span):
            if index.axis and index.axis in spans:
                return spans[index.axis]
            low, high = span_of(index.start, spans)
            return low, high + span_of(index.length, spans)[1] - 1
        return span_of(index, spans)
    except Unbounded:
        return 0, extent - 1


def boxes_of(ref: Ref, buffer: Buffer, spans: Spans) -> list[Box]:
    """Return the boxes that a reference reaches; a ring's first axis wraps, so that there may be two."""
    shape = extents(buffer, spans)
    axes = [
        reach_of(ref.indices[axis], extent, spans) if axis < len(ref.indices) else (0, extent - 1)
        for axis, extent in enumerate(shape)
    ]
    if not buffer.ring or not axes:
        return [tuple(axes)]
    rest = tuple(axes[1:])
    return [(slots, *rest) for slots in wrapped(axes[0], shape[0])]


def wrapped(reach: Reach, depth: int) -> Sequence[Reach]:
    """Return the slots of a ring that a span of indices falls on."""
    low, high = reach
    if high - low + 1 >= depth:
        return ((0, depth - 1),)
    low, high = low % depth, high % depth
    return ((low, high),) if low <= high else ((0, high), (low, depth - 1))


def names_deciding(refs: Iterable[Ref], condition: Expr | None, buffers: Mapping[str, Buffer]) -> frozenset[str]:
    """Return every name that decides which elements references reach under a condition."""
    names = names_in(condition) if condition is not None else frozenset()
    for ref in refs:
        axes = {index.axis for index in ref.indices if isinstance(index, Span)}
        names = names.union(axes, names_in(ref), *map(names_in, buffers[ref.buffer].shape))
    return names


def moduli(exprs: Iterable[Expr], spans: Spans) -> set[int]:
    """Return the known right-hand sides of ``%`` and ``/`` in expressions: the periods of their names.

    What is divided must change from round to round, as what `spans` does not hold at one value does.
    """
    found: set[int] = set()
    for expr in exprs:
        for divisor, divided in _divisors(expr):
            if all(name in spans and spans[name][0] == spans[name][1] for name in divided):
                continue
            try:
                low, high = span_of(divisor, spans)
            except Unbounded:
                continue
            if 0 < low == high:
                found.add(low)
    return found


@lru_cache(maxsize=1 << 12)
def _divisors(expr: Expr) -> tuple[tuple[Expr, frozenset[str]], ...]:
    """Right-hand sides of divisions, and the names in what they divide."""
    divisions = (node for node in walk(expr) if isinstance(node, Binary) and node.op in ("%", "/"))
    return tuple((node.right, names_in(node.left)) for node in divisions)
