"""Every name means something: sizes, constants, loop variables, barriers, roles and groups are declared, axes exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_tui.errors import did_you_mean, nearest
from cake_tui.ir import program as ir
from cake_tui.ir.expr import Binary, Call, Expr, Name, Number, Ref, Span, Unary, names_in, refs_in, show
from cake_tui.ir.expr.nodes import walk as parts_of
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer, Statement
from cake_tui.ir.walk import Path, children
from cake_tui.model.diagnostic import Diagnostic

NAME = "names-known"


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield names that nothing declares where they are used."""
    known = {size.name for size in subject.program.sizes}
    for const in subject.program.consts:
        yield from _missing(const.value, known, const.name, subject.declared_line(const.name))
        known.add(const.name)
    for buffer in subject.program.buffers:
        for extent in buffer.shape:
            yield from _missing(extent, known, buffer.name, subject.declared_line(buffer.name))
    for index, launch in enumerate(subject.program.launches):
        line = subject.launch_line(index)
        heads = [launch.threads, *(axis.extent for axis in launch.axes), *launch.cluster]
        heads += [expr for expr in (launch.persistent, launch.group) if expr is not None]
        for expr in heads:
            yield from _missing(expr, known, f"launch {launch.name}", line)
        inside = known | {axis.name for axis in launch.axes}
        reader = _Reader(subject, index)
        for at, statement in enumerate(launch.body):
            yield from reader.statement(statement, (index, at), inside)


def _missing(expr: Expr | Span, known: Iterable[str], field: str, line: int) -> Iterator[Diagnostic]:
    names = set(known)
    for name in sorted(names_in(expr) - names):
        yield Diagnostic(
            NAME,
            field,
            f"{name} is not declared{did_you_mean(name, names)}",
            "a size, a constant or a variable around it",
            line=line,
            nearest=nearest(name, names),
        )


class _Reader:
    def __init__(self, subject: Subject, index: int) -> None:
        self.subject = subject
        here = [statement for path, statement in subject.sites if path[0] == index]
        self.buffers = subject.buffers(index)
        self.barriers = {item.name for item in here if isinstance(item, ir.Barrier)}
        self.roles = {item.name for item in here if isinstance(item, ir.WarpRole)}
        self.groups = {
            item.completes.name
            for item in here
            if isinstance(item, ir.Copy | ir.Contract) and item.completes and item.completes.kind == "group"
        }

    def statement(self, statement: Statement, path: Path, known: set[str]) -> Iterator[Diagnostic]:
        """Yield what one statement and those inside name without a declaration."""
        exprs = list(_expressions(statement))
        refs = [node for expr in exprs for node in parts_of(expr) if isinstance(node, Ref)]
        axes = {index.axis for ref in refs for index in ref.indices if isinstance(index, Span) and index.axis}
        line = self.subject.lines[path]
        for expr in exprs:
            yield from _missing(expr, known | axes, self.subject.words(path), line)
        for ref in refs:
            yield from self._reference(ref, path)
            for span in (index for index in ref.indices if isinstance(index, Span)):
                # where a tile begins cannot depend on a coordinate within it
                for part in (span.start, span.length):
                    yield from _missing(part, known, self.subject.words(path), line)
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
        inside = known | {statement.variable} if isinstance(statement, ir.For) else known
        for step, child in children(statement):
            yield from self.statement(child, (*path, step), inside)

    def _reference(self, ref: Ref, path: Path) -> Iterator[Diagnostic]:
        if ref.buffer not in self.buffers:
            yield self.subject.refuse(NAME, path, f"no buffer {ref.buffer}", "a declared buffer")
        elif len(ref.indices) > len(self.buffers[ref.buffer].shape):
            axes = len(self.buffers[ref.buffer].shape)
            yield self.subject.refuse(
                NAME, path, f"{len(ref.indices)} indices into {ref.buffer}", f"at most {axes}", nearest=str(axes)
            )

    def _called(self, statement: Statement) -> Iterator[tuple[str, str, set[str]]]:
        match statement:
            case ir.Wait(barrier=name) | ir.Arrive(barrier=name) | ir.Expect(barrier=name):
                yield "barrier", name, self.barriers
            case ir.Role(name=name):
                yield "warp_role", name, self.roles
            case ir.Commit(group=group) | ir.WaitGroup(group=group):
                yield "group of asynchronous statements", group, self.groups
            case ir.Copy(completes=ir.Completion(kind="barrier", name=name)):
                yield "barrier", name, self.barriers
            case ir.Contract(completes=ir.Completion(kind="barrier", name=name)):
                yield "barrier", name, self.barriers
            case ir.Declare(Buffer(owner=owner)):
                yield "warp_role", owner, self.roles
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
        if isinstance(value, tuple):
            stack += value
        elif isinstance(value, _INSIDE):
            stack += [getattr(value, field) for field in value.__struct_fields__]
        elif isinstance(value, _EXPRESSIONS):
            yield value


def _counts(statement: Statement, refs: list[Ref]) -> Iterator[Expr]:
    """What must be known before anything runs: lengths of tiles, slots, bytes and the like."""
    for ref in refs:
        yield from (index.length for index in ref.indices if isinstance(index, Span))
    for field in (
        "slot",
        "slots",
        "arrivals",
        "bytes",
        "pending",
        "threads",
        "vector",
        "step",
        "unroll",
        "stages",
        "count",
    ):
        value = getattr(statement, field, None)
        if isinstance(value, _EXPRESSIONS):
            yield value
    completes = getattr(statement, "completes", None)
    if completes is not None and completes.slot is not None:
        yield completes.slot
    if isinstance(statement, ir.Declare):
        yield from (*statement.buffer.shape, statement.buffer.pad)


_BODIES = ("body", "then", "orelse")
_INSIDE = (ir.Guard, ir.Completion, ir.Buffer, ir.Threads, ir.Lanes)
_EXPRESSIONS = (Number, Name, Unary, Binary, Call, Ref)

PLUGIN: Law = Law(NAME, check, stage=0)
