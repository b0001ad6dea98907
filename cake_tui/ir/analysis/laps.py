"""Which iterations of a loop are walked: whole periods in the middle are left out where every one is as the last.

A period is a common multiple of all ring depths and moduli, so that slots and phases stay as they are. Iterations at
which a branch turns, an inner loop gets its first turn or announced bytes change are kept, with those around them.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.boxes import Spans
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.analysis.intervals import span_of
from cake_tui.ir.analysis.spans import truth
from cake_tui.ir.expr import COMPARISONS, Binary, Expr, names_in, walk
from cake_tui.ir.program import For
from cake_tui.ir.walk import walk_body

LONGEST_PERIOD = 24
MOST_ASKED = 4096  # iterations that are looked at for a change


def walked(loop: For, values: range, period: int, spans: Spans) -> Iterator[int]:
    """Yield the loop variable's values to walk, in order; `period` in steps of 1, a multiple of the loop's own.

    Loops over one ring that start and step differently leave out the same slots.
    """
    step = values.step
    slots = values.stop - values.start // step * step
    if period > LONGEST_PERIOD or slots <= 3 * period + 2:
        yield from values[: 4 * LONGEST_PERIOD // step] if period > LONGEST_PERIOD else values
        return
    head, turns = -(-(2 * period + 1) // step), period // step
    last = head + (slots - 3 * period - 2) // period * turns
    yield from values[:head]
    done = head
    for first, end in (*_kept(loop, values, head, last, turns, spans), (last, len(values))):
        first -= max(0, first - done) % turns  # what is left out is whole periods
        yield from values[max(first, done) : end]
        done = max(done, end)


def _kept(loop: For, values: range, first: int, last: int, period: int, spans: Spans) -> Iterator[tuple[int, int]]:
    """Ranges around the iterations from `first` to `last` at which something changes."""
    asked = [one for one in _asked(loop) if loop.variable in names_in(one)]
    if not asked:
        return
    inside = range(first, min(last, first + MOST_ASKED) + 1)
    if all(_monotonous(one) for one in asked):
        # What only grows is at its ends as it is between them.
        inside = range(first, last + 1, max(1, last - first))
    before = None
    for at in inside:
        here = {**spans, loop.variable: (values[at], values[at])}
        now = [_answer(one, here) for one in asked]
        if before is not None and now != before and inside.step > 1:
            yield from _kept_between(loop, values, asked, (first, last, period), spans)
            return
        if before is not None and now != before:
            yield max(first, at - period), min(last, at + 2 * period)
        before = now


def _kept_between(
    loop: For, values: range, asked: list[Expr], places: tuple[int, int, int], spans: Spans
) -> Iterator[tuple[int, int]]:
    """Ranges around the places where one of several monotonous answers changes, each found by halving."""
    first, last, period = places
    found = set()
    for one in asked:
        low, high = first, last

        def answer(at: int, one: Expr = one) -> object:
            return _answer(one, {**spans, loop.variable: (values[at], values[at])})

        if answer(low) == answer(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if answer(middle) == answer(low) else (low, middle)
        found.add(high)
    for at in sorted(found):
        yield max(first, at - period), min(last, at + 2 * period)


def _answer(one: Expr, spans: Spans) -> object:
    if isinstance(one, Binary) and one.op in COMPARISONS:
        return truth(one, spans)
    try:
        return span_of(one, spans)
    except Unbounded:
        return None


def _asked(loop: For) -> tuple[Expr, ...]:
    """The comparisons and numbers of a loop's body that decide what it does."""
    found: list[Expr] = []
    for statement in walk_body(loop.body):
        match statement:
            case ir.If(condition=condition):
                found += [one for one in walk(condition) if isinstance(one, Binary) and one.op in COMPARISONS]
            case ir.Expect(bytes=size):
                found.append(size)
            case ir.For(start=start, stop=stop):
                found.append(Binary("<", start, stop))
    return tuple(dict.fromkeys(found))


def _monotonous(one: Expr) -> bool:
    """Whether an answer changes once at most on the way: an order of sums and products, nothing that goes round."""
    if not (isinstance(one, Binary) and one.op in ("<", "<=", ">", ">=")):
        return False
    return not any(
        isinstance(part, Binary) and (part.op == "%" or (part.op == "*" and names_in(part.left) & names_in(part.right)))
        for part in walk(one)
    )
