"""Mutants of programs, each with the lines that it leaves unprotected: known from the text alone, no law asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from cake_tui.ir import program as ir
from cake_tui.ir.expr import All, Binary, Expr, Number, Ref, Span, refs_in
from cake_tui.ir.program import Program, Statement
from cake_tui.ir.text import line_numbers
from cake_tui.ir.walk import Path, reads, walk, writes
from tests.ir.surgery import get, remove, replace

KINDS = ("wait", "arrive", "commit", "barrier", "where", "expect", "index")


@dataclass(frozen=True)
class Mutant:
    """A changed program; `unprotected` are paths in it, of which a law must name one."""

    kind: str
    what: str
    program: Program
    unprotected: frozenset[Path]

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the unprotected statements in the mutant's text."""
        numbers = line_numbers(self.program)
        return frozenset(numbers[path] for path in self.unprotected)


def mutants(program: Program) -> Iterator[Mutant]:
    """Yield every mutant of a program."""
    for path, statement in walk(program):
        kind = _removal(statement)
        if kind:
            yield _removed(program, path, statement, kind)
        if getattr(statement, "where", None) is not None:
            bare = msgspec.structs.replace(statement, where=None)
            yield Mutant("where", f"{path} where", replace(program, path, (bare,)), frozenset({path}))
        for what, wider in _widened(statement):
            changed = replace(program, path, (wider,))
            yield Mutant("index", f"{path} {what}", changed, _touching(changed, path, wider, what))


def _removal(statement: Statement) -> str:
    match statement:
        case ir.Wait() | ir.WaitGroup():
            return "wait"
        case ir.Arrive():
            return "arrive"
        case ir.Commit():
            return "commit"
        case ir.Sync():
            return "barrier"
        case ir.Expect():
            return "expect"
    return ""


def _removed(program: Program, path: Path, statement: Statement, kind: str) -> Mutant:
    unprotected = set(_left_open(program, path, statement))
    mutant = remove(program, path)
    moved = frozenset(_shifted(other, path) for other in unprotected if other != path)
    return Mutant(kind, f"{path} {kind}", mutant, moved)


def _shifted(path: Path, removed: Path) -> Path:
    """Where a statement stands once `removed` is gone."""
    depth = len(removed) - 1
    if len(path) > depth and path[:depth] == removed[:depth] and path[depth] > removed[depth] >= 0:
        return (*path[:depth], path[depth] - 1, *path[depth + 1 :])
    return path


def _buffers(statement: Statement) -> set[str]:
    return {ref.buffer for ref in (*reads(statement), *writes(statement))}


def _shared(program: Program, launch: int) -> set[str]:
    return {
        statement.buffer.name
        for path, statement in walk(program)
        if path[0] == launch and isinstance(statement, ir.Declare) and statement.buffer.space == "shared"
    }


def _left_open(program: Program, path: Path, statement: Statement) -> Iterator[Path]:
    launch = path[0]
    inside = [(other, found) for other, found in walk(program) if other[0] == launch]
    match statement:
        case ir.Wait(barrier=name):
            guarded = _guarded(program, launch, name)
            yield from (other for other, found in _after(program, inside, path) if _buffers(found) & guarded)
        case ir.WaitGroup(group=group) | ir.Commit(group=group):
            yield from _of_group(program, inside, group)
        case ir.Arrive(barrier=name):
            yield from (other for other, found in inside if isinstance(found, ir.Wait) and found.barrier == name)
        case ir.Expect(barrier=name):
            for other, found in inside:
                waits = isinstance(found, ir.Wait) and found.barrier == name
                if waits or _completes_on(found) == ("barrier", name):
                    yield other
        case ir.Sync(scope="named"):
            # roles meet here: what one of them does is open to what the others do
            shared = _shared(program, launch)
            yield from (other for other, found in inside if _buffers(found) & shared)
        case ir.Sync():
            before = {
                name for other, found in inside if other < path or _same_loop(other, path) for name in _buffers(found)
            }
            shared = before & _shared(program, launch)
            yield from (other for other, found in _after(program, inside, path) if _buffers(found) & shared)


def _completes_on(statement: Statement) -> tuple[str, str] | None:
    completes = getattr(statement, "completes", None)
    return None if completes is None else (completes.kind, completes.name)


def _of_group(program: Program, inside: list[tuple[Path, Statement]], group: str) -> Iterator[Path]:
    """The asynchronous statements of a group, and whatever uses the memory that they move."""
    issued = [(other, found) for other, found in inside if _completes_on(found) == ("group", group)]
    moved = {name for _, found in issued for name in _buffers(found)}
    yield from (other for other, _ in issued)
    local = moved & (_shared(program, inside[0][0][0]) | _registers(program, inside[0][0][0]))
    yield from (other for other, found in inside if _buffers(found) & local)


def _registers(program: Program, launch: int) -> set[str]:
    return {
        statement.buffer.name
        for path, statement in walk(program)
        if path[0] == launch and isinstance(statement, ir.Declare) and statement.buffer.space == "register"
    }


def _same_loop(one: Path, other: Path) -> bool:
    return len(other) > 2 and one[: len(other) - 1] == other[:-1]


def _after(program: Program, inside: list[tuple[Path, Statement]], path: Path) -> Iterator[tuple[Path, Statement]]:
    """Statements behind `path` in its role or launch; where it stands in a loop, all of the loop (the next round)."""
    loops = [path[:end] for end in range(2, len(path)) if isinstance(dict(inside)[path[:end]], ir.For)]
    role = _role(program, path)
    for other, found in inside:
        if other[: len(role)] != role or other == path:
            continue
        if other > path or any(other[: len(loop)] == loop for loop in loops):
            yield other, found


def _role(program: Program, path: Path) -> Path:
    """The path of the role in whose body a statement stands, else of its launch."""
    inside = dict(walk(program))
    return next((path[:end] for end in range(2, len(path)) if isinstance(inside[path[:end]], ir.Role)), path[:1])


def _guarded(program: Program, launch: int, name: str) -> set[str]:
    """Buffers that a barrier speaks of: those whose copies complete on it, else the shared ones its arrivers use."""
    copied: set[str] = set()
    used: set[str] = set()
    for path, statement in walk(program):
        if path[0] != launch:
            continue
        completes = getattr(statement, "completes", None)
        if completes is not None and completes.kind == "barrier" and completes.name == name:
            copied |= {ref.buffer for ref in writes(statement)}
        if isinstance(statement, ir.Arrive) and statement.barrier == name:
            role = _role(program, path)
            for other, found in walk(program):
                if other[: len(role)] == role:
                    used |= _buffers(found) & _shared(program, launch)
    return copied or used


def _widened(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """Every statement made of this one by making one index one larger or one span one longer."""
    for field in statement.__struct_fields__:
        value = getattr(statement, field)
        if isinstance(value, Ref) or (field in ("value", "condition") and refs_in(value)):
            for what, wider in _wider_expr(value):
                yield what, msgspec.structs.replace(statement, **{field: wider})
        elif field == "parts":
            for at, part in enumerate(value):
                for what, wider in _wider_expr(part):
                    yield what, msgspec.structs.replace(statement, parts=(*value[:at], wider, *value[at + 1 :]))
        elif field == "slot":
            yield f"slot {statement.barrier}", msgspec.structs.replace(statement, slot=_plus_one(value))
        elif field == "completes" and value is not None and value.slot is not None:
            later = msgspec.structs.replace(value, slot=_plus_one(value.slot))
            yield f"slot {value.name}", msgspec.structs.replace(statement, completes=later)


def _plus_one(expr: Expr) -> Expr:
    return Binary("+", expr, Number(1))


def _wider_expr(expr: Expr) -> Iterator[tuple[str, Expr]]:
    """Every expression made by widening one index of one reference in it."""
    for at, ref in enumerate(refs_in(expr)):
        for axis, index in enumerate(ref.indices):
            match index:
                case All():
                    continue
                case Span(start, length, name):
                    changes = {
                        "longer": Span(start, _plus_one(length), name),
                        "later": Span(_plus_one(start), length, name),
                    }
                case _:
                    changes = {"later": _plus_one(index)}
            for how, change in changes.items():
                wider = Ref(ref.buffer, (*ref.indices[:axis], change, *ref.indices[axis + 1 :]))
                yield f"{how} index {axis} of {ref.buffer}", _put(expr, at, wider)


def _put(expr: Expr, at: int, new: Ref) -> Expr:
    """Put `new` in the place of the reference number `at`, outermost first."""
    count = -1

    def change(node: Expr) -> Expr:
        nonlocal count
        match node:
            case Ref(buffer, indices):
                count += 1
                if count == at:
                    return new
                inner = (index if isinstance(index, Span | All) else change(index) for index in indices)
                return Ref(buffer, tuple(inner))
            case Binary(op, left, right):
                return Binary(op, change(left), change(right))
            case ir_unary if hasattr(ir_unary, "operand"):
                return msgspec.structs.replace(node, operand=change(node.operand))  # type: ignore[attr-defined]
            case ir_call if hasattr(ir_call, "arguments"):
                return msgspec.structs.replace(node, arguments=tuple(change(part) for part in node.arguments))  # type: ignore[attr-defined]
        return node

    return change(expr)


def _touching(program: Program, path: Path, statement: Statement, what: str) -> frozenset[Path]:
    """The statement itself; for a slot of a ring or barrier also the others that use the same slots."""
    found = {path}
    name = what.split()[-1]
    ring = what.startswith("slot") or ("index 0 of" in what and _is_ring(program, path[0], name))
    if ring:
        names = {name} | _guarded(program, path[0], name)
        completes = getattr(statement, "completes", None)
        if completes is not None:
            names.add(completes.name)
        for other, inside in walk(program):
            if other[0] != path[0]:
                continue
            other_completes = getattr(inside, "completes", None)
            uses = (
                _buffers(inside) | {getattr(inside, "barrier", "")} | {other_completes.name if other_completes else ""}
            )
            if uses & names:
                found.add(other)
    for other, inside in walk(program):
        # what a launch leaves out, later launches find unwritten
        if other[0] > path[0] and name in {ref.buffer for ref in writes(statement)} & _buffers(inside):
            found.add(other)
    return frozenset(found)


def _is_ring(program: Program, launch: int, name: str) -> bool:
    return any(
        path[0] == launch
        and isinstance(statement, ir.Declare)
        and statement.buffer.name == name
        and statement.buffer.ring
        for path, statement in walk(program)
    )


__all__ = ["KINDS", "Mutant", "get", "mutants"]
