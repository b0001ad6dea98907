"""Loops over a tile's elements: each thread its own, where registers say whose they are, else dealt out to the team."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

from cake_tui.ir.expr import Binary, Call, Expr, Name, Number
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.holds import Hold, alone
from cake_tui.ir.lower.tiles import TileAxis
from cake_tui.ir.refusal import refuse

MOST_UNROLLED = 16  # turns of a loop over a copy that are worth unrolling: loads in flight, not code
_NAMES = {1: ("at",), 2: ("row", "col"), 3: ("plane", "row", "col")}
ZERO = Number(0)


class Step(msgspec.Struct, frozen=True):
    """Where a walk stands on one axis: offset from the tile's start, and the element of the thread's own registers."""

    offset: Expr
    element: Expr


class Walk(msgspec.Struct, frozen=True):
    """The innermost place of the loops: the frame there, one step an axis, and coordinates that have a variable."""

    frame: CudaFrame
    steps: tuple[Step, ...]
    coordinates: frozenset[str]


def plus(left: Expr, right: Expr) -> Expr:
    """Add, without zeros."""
    return right if left == ZERO else left if right == ZERO else Binary("+", left, right)


def times(left: Expr, right: Expr | int) -> Expr:
    """Multiply, without ones."""
    right = Number(right) if isinstance(right, int) else right
    return left if right == Number(1) else right if left == Number(1) else Binary("*", left, right)


@contextmanager
def walk_tile(
    frame: CudaFrame,
    axes: tuple[TileAxis, ...],
    holds: Sequence[Hold | None],
    vector: int = 1,
    vector_expr: Expr | None = None,
    *,
    once: bool = True,
    about: str = "",
) -> Iterator[Walk]:
    """Open the loops over a tile, its last axis `vector` elements at a time.

    `about` is what the team deals out: it names the variables. `once`: where several threads hold the same element,
    only the first of them goes on (what is written to memory).
    """
    with frame.writer.scope(), ExitStack() as stack:
        inner = frame.child()
        step = vector_expr if vector_expr is not None else Number(vector)
        if any(hold is not None for hold in holds) or not once:
            full = [
                hold if hold is not None else alone(frame.number(axis.length, "tile"), axis.length)
                for axis, hold in zip(axes, holds)
            ]
            walked = _held(inner, stack, axes, full, vector, step, once=once)
        elif frame.team.who == "one thread":
            full = [alone(frame.number(axis.length, "tile"), axis.length) for axis in axes]
            walked = _held(inner, stack, axes, full, vector, step, once=False)
        else:
            walked = _dealt(inner, stack, axes, (vector, step), about)
        named = []
        for axis, place in zip(axes, walked):
            if not axis.name:
                continue
            start = inner.tidy(plus(axis.start, place.offset))
            if isinstance(start, Name | Number):
                inner.replace(axis.name, start)
                continue
            named.append((axis.name, len(frame.writer.lines)))
            frame.writer.line(f"const {inner.integer} {axis.name} = {inner.c(start)};")
            inner.declare(axis.name, axis.start, Binary("+", axis.start, axis.length))
            inner.define(axis.name, start)
        yield Walk(inner, walked, frozenset(axis.name for axis in axes if axis.name))
        for name, line in reversed(named):
            frame.writer.drop_unused(name, line, line + 1)


def _variables(frame: CudaFrame, axes: tuple[TileAxis, ...]) -> list[str]:
    wanted = _NAMES.get(len(axes)) or tuple(f"at{number}" for number in range(len(axes)))
    return list(frame.fresh(*wanted))


def _let(frame: CudaFrame, stack: ExitStack, name: str, value: Expr) -> Expr:
    """Set a variable to an expression that rounds; one that nothing names goes again when its block ends."""
    value = frame.tidy(value)
    if _plain(value):
        return value
    line = len(frame.writer.lines)
    frame.writer.line(f"const int {name} = {frame.c(value)};")
    frame.define(name, value)
    stack.callback(lambda: frame.writer.drop_unused(name, line, line + 1))
    return Name(name)


def _plain(value: Expr) -> bool:
    """Whether an expression reads well in the middle of another: sums and products."""
    match value:
        case Binary("+" | "-" | "*", left, right):
            return _plain(left) and _plain(right)
        case _:
            return isinstance(value, Name | Number)


def _held(
    frame: CudaFrame,
    stack: ExitStack,
    axes: tuple[TileAxis, ...],
    holds: Sequence[Hold],
    vector: int,
    vector_expr: Expr,
    *,
    once: bool,
) -> tuple[Step, ...]:
    """Each thread walks the elements that it holds."""
    if once and (test := first_holder(frame, holds)):
        stack.enter_context(frame.writer.block(f"if ({test})"))
    steps = []
    counters = frame.fresh(*counters_of(frame, len(axes)))
    values: list[Expr] = []
    for place, (hold, counter) in enumerate(zip(holds, counters)):
        width = vector if place == len(axes) - 1 else 1
        if hold.each == width:
            values.append(ZERO)
            continue
        frame.writer.pragma("unroll")
        add = f"++{counter}" if width == 1 else f"{counter} += {frame.c(vector_expr)}"
        head = f"for (int {counter} = 0; {counter} < {frame.c(hold.each_expr)}; {add})"
        stack.enter_context(frame.writer.block(head))
        # The counter is a multiple of the width: said through a count of its own.
        frame.declare(f"{counter}#", ZERO, Number(-(-hold.each // width)))
        frame.define(counter, times(Name(f"{counter}#"), width))
        frame.unroll(counter)
        values.append(Name(counter))
    for place, (hold, element, name) in enumerate(zip(holds, values, _variables(frame, axes))):
        width = vector if place == len(axes) - 1 else 1
        offset = _let(frame, stack, name, held_offset(frame, hold, element, width))
        steps.append(Step(offset, element))
    return tuple(steps)


def counters_of(frame: CudaFrame, count: int) -> tuple[str, ...]:
    """Return names for loops over a thread's own elements: a letter, twice where the program uses it."""
    return tuple(letter * 2 if letter in frame.taken else letter for letter in "ijlpq"[:count])


def held_offset(frame: CudaFrame, hold: Hold, element: Expr, width: int) -> Expr:
    """Return the offset along an axis of a thread's element; `element` is a multiple of `width`."""
    thread = frame.thread(hold)
    if hold.fragment == "row":
        return plus(thread, times(element, 8))
    if hold.fragment == "column":
        tiles = times(element, 4) if width == 2 else times(_floor(element, Number(2)), 8)
        return plus(thread, tiles if width == 2 else plus(tiles, Binary("%", element, Number(2))))
    if hold.threads == 1:
        return element
    group = Number(hold.group)
    if hold.each == hold.group:
        return plus(times(thread, hold.each_expr if hold.each > 1 else 1), element)
    if width == hold.group:
        return plus(times(element, hold.threads_expr), times(thread, group))
    pitch = times(hold.threads_expr, group)
    if hold.group == 1:
        return plus(times(element, hold.threads_expr), thread)
    from_group = Binary("*", _floor(element, group), pitch)
    return plus(plus(from_group, times(thread, group)), Binary("%", element, group))


def _floor(top: Expr, bottom: Expr) -> Expr:
    return ZERO if top == ZERO else Call("floor", (Binary("/", top, bottom),))


def first_holder(frame: CudaFrame, holds: Sequence[Hold]) -> str:
    """Print the test for the first of several threads that hold the same elements; empty where each holds others."""
    if frame.team.who == "one thread":
        return ""
    if any(hold.fragment for hold in holds):
        if len(holds) != 2:
            raise refuse("lowering", "fragment", "a part of a fragment", "all of it", step="lower")
        return ""
    counter = frame.team.counter
    keys = {(hold.stride, hold.threads) for hold in holds if hold.threads > 1}
    if frame.arranged and keys and keys <= set(frame.arranged):
        left = [frame.coordinates[key] for key in frame.arranged if key not in keys]
        return " && ".join(f"{name} == 0" for name in left)
    tests = []
    reach = 1
    for hold in sorted((hold for hold in holds if hold.threads > 1), key=lambda hold: hold.stride):
        if hold.stride > reach:
            tests.append(
                f"{counter} % {hold.stride} == 0"
                if reach == 1
                else f"{counter} / {reach} % {hold.stride // reach} == 0"
            )
        reach = hold.stride * hold.threads
    if reach < frame.team.threads:
        tests.append(f"{counter} == 0" if reach == 1 else f"{counter} < {reach}")
    return " && ".join(tests)


def _dealt(
    frame: CudaFrame, stack: ExitStack, axes: tuple[TileAxis, ...], width: tuple[int, Expr], about: str
) -> tuple[Step, ...]:
    """The team deals a tile out, `vector` elements of the last axis a time, neighbours to neighbours."""
    if not axes:
        test = first_holder(frame, ())
        if test:
            stack.enter_context(frame.writer.block(f"if ({test})"))
        return ()
    vector, vector_expr = width
    stem = f"{about.removesuffix('_tile')}_" if about else ""
    lengths = [frame.number(axis.length, "tile") for axis in axes]
    lead, last, team = math.prod(lengths[:-1]), lengths[-1] // vector, frame.team.threads
    thread, last_expr = Name(frame.team.counter), axes[-1].length
    names = _variables(frame, axes)
    units = last_expr if vector == 1 else Binary("/", last_expr, vector_expr)
    if lead == 1:
        at = _line(frame, stack, names[-1], last, last_expr, vector, vector_expr)
        offsets = [*[ZERO] * (len(axes) - 1), at]
    elif team % last == 0:
        apart = team // last
        row_thread: Expr = thread if last == 1 else frame.hoist(f"{stem}row", _floor(thread, units))
        passes = times(frame.team.expr, 1) if last == 1 else Binary("/", frame.team.expr, units)
        row_name = names[-2] if len(axes) == 2 else next(frame.fresh("unit"))
        row = _rows(frame, stack, row_name, (lead, axes[:-1]), apart, (row_thread, passes))
        col = ZERO if last == 1 else frame.hoist(f"{stem}col", times(Binary("%", thread, units), vector_expr))
        offsets = [*_leading(frame, stack, names[:-1], axes[:-1], row), col]
    elif last % team == 0:
        rows: list[Expr] = []
        for axis, length, name in zip(axes[:-1], lengths[:-1], names[:-1]):
            if length == 1:
                rows.append(ZERO)
                continue
            stack.enter_context(frame.writer.block(f"for (int {name} = 0; {name} < {frame.c(axis.length)}; ++{name})"))
            frame.declare(name, ZERO, axis.length)
            rows.append(Name(name))
        offsets = [*rows, _line(frame, stack, names[-1], last, last_expr, vector, vector_expr)]
    else:
        (unit,) = frame.fresh("unit")
        total = " * ".join(frame.c(axis.length, 6) for axis in axes[:-1])
        head = f"for (int {unit} = {thread.name}; {unit} < {total} * {frame.c(units, 6)}; {unit} += {_team(frame)})"
        stack.enter_context(frame.writer.block(head))
        frame.declare(unit, ZERO, Number(lead * last))
        row = _floor(Name(unit), units)
        col = _let(frame, stack, names[-1], times(Binary("%", Name(unit), units), vector_expr))
        offsets = [*_leading(frame, stack, names[:-1], axes[:-1], row), col]
    return tuple(Step(offset, ZERO) for offset in offsets)


def _team(frame: CudaFrame) -> str:
    return frame.c(frame.team.expr)


def _line(
    frame: CudaFrame, stack: ExitStack, name: str, units: int, length: Expr, vector: int, vector_expr: Expr
) -> Expr:
    """One axis: each thread a vector, as often as it takes; returns the offset."""
    team = frame.team.threads
    own = times(Name(frame.team.counter), vector_expr)
    if units <= team:
        if units < team:
            test = f"{frame.team.counter} == 0" if units == 1 else f"{frame.team.counter} < {units}"
            stack.enter_context(frame.writer.block(f"if ({test})"))
        return ZERO if units == 1 else _let(frame, stack, name, own)
    stride = times(frame.team.expr, vector_expr)
    if units % team == 0:
        (step,) = frame.fresh("step")
        if units // team <= MOST_UNROLLED:
            frame.writer.pragma("unroll")
        head = f"for (int {step} = 0; {step} < {frame.c(length)}; {step} += {frame.c(stride)})"
        stack.enter_context(frame.writer.block(head))
        frame.declare(f"{step}#", ZERO, Number(units // team))
        frame.define(step, times(Name(f"{step}#"), team * vector))
        return _let(frame, stack, name, plus(Name(step), own))
    head = f"for (int {name} = {frame.c(own)}; {name} < {frame.c(length)}; {name} += {frame.c(stride)})"
    stack.enter_context(frame.writer.block(head))
    frame.declare(f"{name}#", ZERO, Number(units))
    frame.define(name, times(Name(f"{name}#"), vector))
    return Name(name)


def _rows(
    frame: CudaFrame,
    stack: ExitStack,
    name: str,
    lead: tuple[int, tuple[TileAxis, ...]],
    apart: int,
    own: tuple[Expr, Expr],
) -> Expr:
    """The leading axes as one: every `apart`-th row a thread; returns the row."""
    count, axes = lead
    row_thread, passes = own
    length: Expr = axes[0].length
    for axis in axes[1:]:
        length = times(length, axis.length)
    if count <= apart:
        row = _let(frame, stack, name, row_thread)
        if count < apart:
            stack.enter_context(frame.writer.block(f"if ({frame.c(row, 4)} < {frame.c(length)})"))
        return row
    (step,) = frame.fresh("step")
    even = count % apart == 0
    if even and count // apart <= MOST_UNROLLED:
        frame.writer.pragma("unroll")
    head = f"for (int {step} = 0; {step} < {frame.c(length)}; {step} += {frame.c(passes)})"
    stack.enter_context(frame.writer.block(head))
    frame.declare(f"{step}#", ZERO, Number(-(-count // apart)))
    frame.define(step, times(Name(f"{step}#"), apart))
    row = _let(frame, stack, name, plus(Name(step), row_thread))
    if not even:
        stack.enter_context(frame.writer.block(f"if ({frame.c(row, 4)} < {frame.c(length)})"))
    return row


def _leading(frame: CudaFrame, stack: ExitStack, names: list[str], axes: tuple[TileAxis, ...], row: Expr) -> list[Expr]:
    """Take the leading axes' offsets out of one row number."""
    if len(axes) == 1:
        return [_let(frame, stack, names[0], row)]
    offsets: list[Expr] = []
    behind: Expr = Number(1)
    for axis, name in zip(reversed(axes), reversed(names)):
        value = row if behind == Number(1) else _floor(row, behind)
        outermost = len(offsets) == len(axes) - 1
        offsets.insert(0, _let(frame, stack, name, value if outermost else Binary("%", value, axis.length)))
        behind = times(behind, axis.length)
    return offsets
