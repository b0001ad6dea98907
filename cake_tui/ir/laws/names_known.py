"""Every name means something: sizes, constants, loop variables, barriers, roles and groups are declared, axes exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from cake_tui.errors import did_you_mean, nearest
from cake_tui.ir import program as ir
from cake_tui.ir.expr import Binary, Call, Expr, Name, Number, Ref, Span, Unary, names_in, refs_in, show
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._site import Site
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Program, Statement
from cake_tui.ir.walk import Path, children
from cake_tui.model.diagnostic import Diagnostic

NAME = "names-known"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield names that nothing declares where they are used."""
    if _is_silent(_without_numbers(subject.program)):
        return
    yield from _check(subject)


@lru_cache(maxsize=128)
def _is_silent(program: Program) -> bool:
    return not any(_check(Subject(program, None)))


def _without_numbers(program: Program) -> Program:
    """Return the program with other sizes and settings: names mean the same in it, and many candidates share it."""
    sizes = tuple(ir.Size(size.name, 1) for size in program.sizes)
    consts = tuple(
        ir.Const(const.name, Number(1) if isinstance(const.value, Number) else const.value) for const in program.consts
    )
    return msgspec.structs.replace(program, sizes=sizes, consts=consts)


def _check(subject: Subject) -> Iterator[Diagnostic]:
    known = {size.name for size in subject.program.sizes}
    for const in subject.program.consts:
        yield from _missing(const.value, known, Site(subject, const.name))
        known.add(const.name)
    for buffer in subject.program.buffers:
        for extent in buffer.shape:
            yield from _missing(extent, known, Site(subject, buffer.name))
    for index, launch in enumerate(subject.program.launches):
        heads = [launch.threads, *(axis.extent for axis in launch.axes), *launch.cluster]
        heads += [expr for expr in (launch.persistent, launch.group) if expr is not None]
        for expr in heads:
            yield from _missing(expr, known, Site(subject, f"launch {launch.name}", (index,)))
        inside = known | {axis.name for axis in launch.axes}
        yield from _twice(subject, index)
        reader = _Reader(subject, index)
        yield from reader.body(tuple(enumerate(launch.body)), (index,), inside, frozenset())


def _twice(subject: Subject, index: int) -> Iterator[Diagnostic]:
    """Yield declarations of a launch whose name is taken: what a reference means would depend on the place."""
    taken = {buffer.name for buffer in subject.program.buffers}
    for path, statement in subject.sites:
        if path[0] != index or not isinstance(statement, ir.Declare | ir.Barrier):
            continue
        name = statement.buffer.name if isinstance(statement, ir.Declare) else statement.name
        if name in taken:
            yield subject.refuse(NAME, path, f"{name} is declared a second time", "a name of its own")
        taken.add(name)


def _missing(expr: Expr | Span, known: AbstractSet[str], site: Site) -> Iterator[Diagnostic]:
    for name in sorted(names_in(expr) - known):
        yield Diagnostic(
            NAME,
            site.field,
            f"{name} is not declared{did_you_mean(name, known)}",
            "a size, a constant or a variable around it",
            line=site.line,
            nearest=nearest(name, known),
        )


class _Reader:
    def __init__(self, subject: Subject, index: int) -> None:
        self.subject = subject
        here = [statement for path, statement in subject.sites if path[0] == index]
        self.buffers = subject.buffers(index)
        self.barriers = {item.name for item in here if type(item) is ir.Barrier}
        self.roles = {item.name for item in here if type(item) is ir.WarpRole}
        self.groups = {
            item.completes.name
            for item in here
            if (type(item) is ir.Copy or type(item) is ir.Contract)
            and item.completes
            and item.completes.kind == "group"
        }

    def body(
        self, body: Iterable[tuple[int, Statement]], path: Path, known: set[str], declared: frozenset[str]
    ) -> Iterator[Diagnostic]:
        """Yield what the statements of a body, and those inside, name without a declaration."""
        for step, statement in body:
            yield from self.statement(statement, (*path, step), known, declared)
            if type(statement) is ir.Declare:
                declared |= {statement.buffer.name}

    def statement(
        self, statement: Statement, path: Path, known: set[str], declared: frozenset[str]
    ) -> Iterator[Diagnostic]:
        """Yield what one statement and those inside name without a declaration."""
        exprs = list(_expressions(statement))
        refs = [ref for expr in exprs for ref in refs_in(expr)]
        axes = {index.axis for ref in refs for index in ref.indices if isinstance(index, Span) and index.axis}
        site, inside = Site(self.subject, path=path), known | axes
        for expr in exprs:
            yield from _missing(expr, inside, site)
        for ref in refs:
            yield from self._reference(ref, path, declared)
            for span in (index for index in ref.indices if isinstance(index, Span)):
                # where a tile begins cannot depend on a coordinate within it
                for part in (span.start, span.length):
                    yield from _missing(part, known, site)
        for expr in _counts(statement, refs):
            if refs_in(expr):
                yield self.subject.refuse(
                    NAME, path, f"{show(expr)} is read from a buffer", "a number of sizes, constants and loop variables"
                )
        for what, name, names in self._called(statement):
            if name and name not in names:
                yield self.subject.refuse(
                    NAME,
                    path,
                    f"no {what} {name}{did_you_mean(name, names)}",
                    f"a {what} of this launch",
                    nearest=nearest(name, names),
                )
        inside = known | {statement.variable} if type(statement) is ir.For else known
        below = children(statement)
        for side in ([one for one in below if one[0] >= 0], [one for one in below if one[0] < 0]):
            yield from self.body(side, path, inside, declared)

    def _reference(self, ref: Ref, path: Path, declared: frozenset[str]) -> Iterator[Diagnostic]:
        if ref.buffer not in self.buffers:
            yield self.subject.refuse(NAME, path, f"no buffer {ref.buffer}", "a declared buffer")
        elif self.buffers[ref.buffer].space not in ("param", "workspace") and ref.buffer not in declared:
            what = f"{ref.buffer} is not declared before, in this block of statements or one around it"
            yield self.subject.refuse(NAME, path, what, "its declaration there")
        elif len(ref.indices) > len(self.buffers[ref.buffer].shape):
            axes = len(self.buffers[ref.buffer].shape)
            yield self.subject.refuse(
                NAME, path, f"{len(ref.indices)} indices into {ref.buffer}", f"at most {axes}", nearest=str(axes)
            )

    def _called(self, statement: Statement) -> Iterator[tuple[str, str, set[str]]]:
        if type(statement) is ir.Copy or type(statement) is ir.Contract:
            if statement.completes is not None and statement.completes.kind == "barrier":
                yield "barrier", statement.completes.name, self.barriers
            return
        if type(statement) is ir.Declare:
            yield "warp_role", statement.buffer.owner, self.roles
            return
        match statement:
            case ir.Wait(barrier=name) | ir.Arrive(barrier=name) | ir.Expect(barrier=name):
                yield "barrier", name, self.barriers
            case ir.Role(name=name):
                yield "warp_role", name, self.roles
            case ir.Commit(group=group) | ir.WaitGroup(group=group):
                yield "group of asynchronous statements", group, self.groups
            case ir.Reduce(scratch=scratch) | ir.Pick(scratch=scratch):
                yield "shared buffer", scratch, {name for name, item in self.buffers.items() if item.space == "shared"}
            case ir.For(carry=carry):
                for name in carry:
                    yield (
                        "register buffer",
                        name,
                        {key for key, item in self.buffers.items() if item.space == "register"},
                    )


def _expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression and reference of a statement itself."""
    stack: list[object] = [getattr(statement, field) for field in statement.__struct_fields__ if field not in _BODIES]
    while stack:
        value = stack.pop()
        if type(value) is tuple:
            stack += value
        elif type(value) in _INSIDE:
            stack += msgspec.structs.astuple(value)  # type: ignore[arg-type]
        elif type(value) in _EXPRESSIONS:
            yield value  # type: ignore[misc]


def _counts(statement: Statement, refs: list[Ref]) -> Iterator[Expr]:
    """What must be known before anything runs: lengths of tiles, slots, bytes and the like."""
    for ref in refs:
        yield from (index.length for index in ref.indices if isinstance(index, Span))
    for field in statement.__struct_fields__:
        if field in _COUNTS and type(value := getattr(statement, field)) in _EXPRESSIONS:
            yield value
    completes = getattr(statement, "completes", None)
    if completes is not None and completes.slot is not None:
        yield completes.slot
    if isinstance(statement, ir.Declare):
        yield from (*statement.buffer.shape, statement.buffer.pad)


_BODIES = ("body", "then", "orelse")
_COUNTS = frozenset(
    ("slot", "slots", "arrivals", "bytes", "pending", "threads", "vector", "step", "unroll", "stages", "count")
)
_INSIDE = frozenset((ir.Guard, ir.Completion, ir.Buffer, ir.Threads, ir.Lanes))
_EXPRESSIONS = frozenset((Number, Name, Unary, Binary, Call, Ref))

PLUGIN: Law = Law(NAME, check, stage=0)
