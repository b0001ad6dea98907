"""Extents, bounds and counts are whole numbers, at least 1 where something is counted: tiles divide their sizes.

``N/BN`` is exact: where BN does not divide N it is a fraction, and the program must say ceil (with a `where`) or
declare that N is a multiple.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.spans import numbers_of
from cake_tui.ir.expr import (
    All,
    Binary,
    Call,
    EvaluationError,
    Expr,
    Number,
    Ref,
    Span,
    Unary,
    evaluate,
    names_in,
    show,
)
from cake_tui.ir.expr.nodes import parts as directly_inside
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._site import Site
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.walk import reads, writes
from cake_tui.model.diagnostic import Diagnostic

NAME = "whole-numbers"
LARGEST_SIZE = (1 << 31) - 1  # a size is an int of the source
LARGEST = 1 << 62  # what is counted or walked is a long
_FIXED = (ir.Declare, ir.Barrier, ir.WarpRole)  # what these say of themselves is the same in every block and round
_ROUNDED = ("min", "max", "ceil", "floor", "i32")


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield counts that are fractions or too small, at the program's sizes or a sample of run-time ones."""
    yield from _sizes(subject)
    for sizes in subject.samples:
        found = list(_at(subject, sizes))
        if found:
            yield from found
            return


def _sizes(subject: Subject) -> Iterator[Diagnostic]:
    for size in subject.program.sizes:
        line = subject.declared_line(size.name)
        if size.value is not None and size.value < 1:
            yield Diagnostic(NAME, size.name, f"{size.name} = {size.value}", "at least 1", line=line, nearest="1")
        elif size.value is not None and size.value > LARGEST_SIZE:
            yield Diagnostic(
                NAME, size.name, f"{size.name} = {size.value}", f"at most {LARGEST_SIZE}", line=line,
                nearest=str(LARGEST_SIZE), limit="size", asked=float(size.value), available=float(LARGEST_SIZE),
            )  # fmt: skip
        elif size.value is not None and size.value % max(1, size.multiple):
            nearest = max(1, round(size.value / size.multiple)) * size.multiple
            yield Diagnostic(
                NAME,
                size.name,
                f"{size.name} = {size.value}",
                f"a multiple of {size.multiple}",
                line=line,
                nearest=str(nearest),
                limit="multiple",
                asked=float(size.value),
                available=float(size.multiple),
            )
        if size.low is not None and size.high is not None and size.low > size.high:
            yield Diagnostic(NAME, size.name, f"from {size.low} to {size.high}", "a range that is not empty", line=line)


def _at(subject: Subject, sizes: dict[str, int]) -> Iterator[Diagnostic]:
    try:
        numbers = numbers_of(subject.program, sizes)
    except EvaluationError as error:
        name = next((const.name for const in subject.program.consts if _broken(subject, sizes, const.name)), "const")
        yield Diagnostic(NAME, name, str(error), "a value", line=subject.declared_line(name))
        return
    for const in subject.program.consts:
        yield from _judge(const.value, 0, numbers, Site(subject, const.name))
    for buffer in subject.program.buffers:
        for extent in buffer.shape:
            yield from _judge(extent, 1, numbers, Site(subject, buffer.name))
    for index, launch in enumerate(subject.program.launches):
        for axis in launch.axes:
            yield from _judge(axis.extent, 1, numbers, Site(subject, f"grid {axis.name}", (index,)))
        yield from _judge(launch.threads, 1, numbers, Site(subject, "threads", (index,)))
        for extent in (*launch.cluster, *(expr for expr in (launch.persistent, launch.group) if expr is not None)):
            yield from _judge(extent, 1, numbers, Site(subject, f"launch {launch.name}", (index,)))
    judged: set[tuple[Expr, int | None]] = set()
    for path, statement in subject.sites:
        for field, expr, least in _counts(statement):
            site = Site(subject, field, path)
            if isinstance(statement, _FIXED) and not names_in(expr) <= numbers.keys():
                needed = "a number of sizes and constants"
                yield Diagnostic(NAME, site.field, show(expr), needed, line=site.line, where=site.where)
            else:
                yield from _judge(expr, least, numbers, site)
        for one in _inner(statement):
            if one not in judged:  # the same tile stands at many places; it is told of at the first
                judged.add(one)
                yield from _judge(*one, numbers, Site(subject, path=path))


def _broken(subject: Subject, sizes: dict[str, int], upto: str) -> bool:
    names: dict[str, int | float] = dict(sizes)
    for const in subject.program.consts:
        try:
            names[const.name] = evaluate(const.value, names)
        except EvaluationError:
            return const.name == upto
    return False


def _counts(statement: ir.Statement) -> Iterator[tuple[str, Expr, int]]:
    """The numbers of a statement that count something, with the least that makes sense."""
    match statement:
        case ir.Declare(buffer):
            for extent in buffer.shape:
                yield buffer.name, extent, 1
            yield f"{buffer.name} pad", buffer.pad, 0
            match buffer.spread:
                case ir.Threads(threads, each, runs):
                    for count in (*threads, *each, *runs):
                        yield f"{buffer.name} spread", count, 1
                case ir.Lanes(count):
                    yield f"{buffer.name} spread", count, 1
        case ir.Barrier(name, slots, arrivals):
            yield f"{name} slots", slots, 1
            yield f"{name} arrivals", arrivals, 1
        case ir.WarpRole(name=name, first=first, last=last):
            yield f"{name} warps", first, 0
            yield f"{name} warps", last, 0
        case ir.For(variable=variable, step=step, unroll=unroll, stages=stages):
            yield f"step of {variable}", step, 1
            if unroll is not None:
                yield f"unroll of {variable}", unroll, 1
            if stages is not None:
                yield f"pipeline_stage of {variable}", stages, 1
        case ir.WaitGroup(pending=pending):
            yield "pending", pending, 0
        case ir.Expect(bytes=size):
            yield "bytes", size, 0
        case ir.Copy(vector=vector) | ir.Assign(vector=vector) if vector is not None:
            yield "vector", vector, 1


@lru_cache(maxsize=1 << 12)
def _inner(statement: ir.Statement) -> tuple[tuple[Expr, int | None], ...]:
    """Loop bounds, indices and slots, and the lengths of tiles with the least that makes sense."""
    completes = getattr(statement, "completes", None)
    slots = (getattr(statement, "slot", None), None if completes is None else completes.slot)
    found: list[tuple[Expr, int | None]] = [(slot, None) for slot in slots if slot is not None]
    if isinstance(statement, ir.For):
        found += [(statement.start, None), (statement.stop, None)]
    for ref in (*reads(statement), *writes(statement)):
        for index in ref.indices:
            if isinstance(index, Span):
                found += [(index.start, None), (index.length, 1)]
            elif not isinstance(index, All):
                found.append((index, None))
    return tuple(dict.fromkeys(found))


def _judge(expr: Expr, least: int | None, numbers: dict[str, int | float], site: Site) -> Iterator[Diagnostic]:
    part = _not_whole(expr)
    if part is not None:
        found = show(part) if part == expr else f"{show(part)} in {show(expr)}"
        needed = "whole numbers with + - * / % min max ceil floor"
        yield Diagnostic(NAME, site.field, found, needed, line=site.line, where=site.where)
        return
    if not names_in(expr) <= numbers.keys():
        # it depends on a loop or block: the divisions in it must still be whole
        for part in _quotients(expr):
            if names_in(part) <= numbers.keys():
                yield from _judge(part, None, numbers, site)
        return
    try:
        value = evaluate(expr, numbers)
    except EvaluationError as error:
        yield Diagnostic(NAME, site.field, str(error), "a value", line=site.line, where=site.where)
        return
    if abs(value) > LARGEST:
        needed = f"at most {LARGEST}"
        yield Diagnostic(NAME, site.field, f"{show(expr)} is {value}", needed, line=site.line, where=site.where)
        return
    fraction = isinstance(value, bool) or value != int(value)
    if not fraction and (least is None or value >= least):
        return
    used = ", ".join(f"{name} = {value}" for name, value in numbers.items() if name in names_in(expr))
    if fraction:
        nearest, size = _divides(expr, numbers)
        yield Diagnostic(
            NAME,
            site.field,
            f"{show(expr)} is {value:g} ({used})",
            "a whole number: a tile that divides the size, or ceil and where",
            line=site.line,
            where=site.where,
            nearest=nearest,
            limit=size,
            asked=float(value),
            available=float(int(value)),
        )
    elif least is not None:
        yield Diagnostic(
            NAME,
            site.field,
            f"{show(expr)} is {value} ({used})" if used else f"{value}",
            f"at least {least}",
            line=site.line,
            where=site.where,
            nearest=str(least),
            limit=site.field,
            asked=float(value),
            available=float(least),
        )


@lru_cache(maxsize=1 << 12)
def _not_whole(expr: Expr) -> Expr | None:
    """Return what in an expression makes no whole number: a comparison, a fraction, a function of real numbers."""
    match expr:
        case Number(value=float() as value) if not value.is_integer():
            return expr
        case Binary(op=op) if op not in ("+", "-", "*", "/", "%"):
            return expr
        case Unary(op=op) if op != "-":
            return expr
        case Call(function=function) if function not in _ROUNDED:
            return expr
        case Ref():
            return None
    return next((found for inner in directly_inside(expr) if (found := _not_whole(inner)) is not None), None)


def _quotients(expr: Expr) -> Iterator[Expr]:
    """Divisions inside an expression that nothing rounds."""
    if isinstance(expr, Call) and expr.function in ("ceil", "floor"):
        return
    if isinstance(expr, Binary) and expr.op == "/":
        yield expr
    for inner in directly_inside(expr):
        yield from _quotients(inner)


def _divides(expr: Expr, numbers: dict[str, int | float]) -> tuple[str | None, str | None]:
    """For a quotient of known numbers: the divisor nearest to the one asked for, and its name."""
    if not isinstance(expr, Binary) or expr.op != "/":
        return None, None
    size, tile = evaluate(expr.left, numbers), evaluate(expr.right, numbers)
    if not isinstance(size, int) or not isinstance(tile, int) or not 0 < size < 1 << 20 or tile < 1:
        return None, show(expr.right)
    divisors = [value for value in range(1, min(size, 4 * tile) + 1) if size % value == 0]
    return str(min(divisors, key=lambda value: (abs(value - tile), -value))), show(expr.right)


PLUGIN: Law = Law(NAME, check, stage=0)
