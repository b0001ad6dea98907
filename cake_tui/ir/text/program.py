"""Text of whole programs: header, declarations, launches and blocks of statements by indentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cake_tui.ir.expr import Expr, Number, ParseError, show
from cake_tui.ir.program import (
    GRAMMAR,
    Axis,
    Barrier,
    Buffer,
    Const,
    Declare,
    For,
    If,
    Launch,
    Program,
    Role,
    Size,
    Statement,
    WarpRole,
)
from cake_tui.ir.text import compute, declarations, movement
from cake_tui.ir.text.line import WORDS, Line, lines_of, show_clause
from cake_tui.ir.walk import Path, children

_READERS: dict[str, Callable[[Line], Statement]] = {
    "shared": lambda line: Declare(declarations.read_buffer(line, "shared")),
    "register": lambda line: Declare(declarations.read_buffer(line, "register")),
    "barrier": movement.read_barrier_or_sync,
    "warp_role": declarations.read_warp_role,
    "copy": lambda line: movement.read_copy(line, "copy"),
    "async_copy": lambda line: movement.read_copy(line, "async_copy"),
    "tma_copy": lambda line: movement.read_copy(line, "tma_copy"),
    "commit": movement.read_commit,
    "wait": movement.read_wait,
    "arrive": movement.read_arrive,
    "expect": movement.read_expect,
    "fence": movement.read_fence,
    "split": compute.read_split,
    "reduce": compute.read_reduce,
    "argmin": lambda line: compute.read_pick(line, "argmin"),
    "argmax": lambda line: compute.read_pick(line, "argmax"),
    "topk": lambda line: compute.read_pick(line, "topk"),
    "atomic": compute.read_atomic,
    "convert": compute.read_convert,
}
_DECLARES = ("shared", "register", "barrier", "warp_role")  # several may share a line


def parse(text: str) -> Program:
    """Read a program; raises ParseError with line and column for anything outside the grammar."""
    return _Parser(text).program()


def render(program: Program) -> str:
    """Print the program in its one canonical form, which parses back to an equal value."""
    return "".join(f"{row}\n" for row, _ in _rows(program))


def line_numbers(program: Program) -> dict[Path, int]:
    """Return the line of every statement in the canonical text, counted from 1."""
    return {path: number for number, (_, path) in enumerate(_rows(program), start=1) if len(path) > 1}


class _Parser:
    def __init__(self, text: str) -> None:
        self.globals: set[str] = set()
        self.buffers: set[str] = set()
        self.names: set[str] = set()
        self.lines = list(lines_of(text, self.buffers))
        self.at = 0

    @property
    def line(self) -> Line | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def program(self) -> Program:
        line = self.line
        if line is None:
            raise ParseError(1, 1, "an empty text", "'program'")
        line.expect("program")
        name = line.new_name("the program's name")
        line.expect("ir")
        if line.now.text != str(GRAMMAR):
            raise line.error(f"grammar version {GRAMMAR}")
        line.take()
        line.expect("target")
        target = line.one_of(("c", "cuda"), "a target")
        arch = _words(line, "an architecture")
        line.end()
        self.at += 1
        structure, sizes, consts, buffers = self._header()
        launches = []
        while self.line is not None:
            launches.append(self._launch())
        if not launches:
            last = self.lines[-1].line
            raise ParseError(last + 1, 1, "the end of the text", "'launch'")
        return Program(name, target, arch, sizes, consts, buffers, tuple(launches), structure)  # type: ignore[arg-type]

    def _header(self) -> tuple[str, tuple[Size, ...], tuple[Const, ...], tuple[Buffer, ...]]:
        structure = ""
        sizes: list[Size] = []
        consts: list[Const] = []
        buffers: list[Buffer] = []
        while (line := self.line) is not None and line.depth == 1:
            while not line.ended:
                word = line.expect("structure", "size", "const", "param", "workspace")
                column = line.now.column
                if word == "structure":
                    structure = _words(line, "a structure's name")
                    continue
                made: Size | Const | Buffer
                if word == "size":
                    made = declarations.read_size(line)
                    sizes.append(made)
                elif word == "const":
                    made = declarations.read_const(line)
                    consts.append(made)
                else:
                    made = declarations.read_buffer(line, word)  # type: ignore[arg-type]
                    buffers.append(made)
                self._fresh(made.name, line, column)
            self.at += 1
        self.globals = set(self.buffers)
        return structure, tuple(sizes), tuple(consts), tuple(buffers)

    def _fresh(self, name: str, line: Line, column: int) -> None:
        if name in self.names:
            raise ParseError(line.line, column, f"{name} a second time", "a name not used before")
        self.names.add(name)

    def _launch(self) -> Launch:
        line = self.line
        assert line is not None  # the caller looked
        if line.depth != 0:
            raise ParseError(line.line, 1, "an indented line", "'launch' at the margin")
        line.expect("launch")
        column = line.now.column
        name = line.new_name("the launch's name")
        self._fresh(name, line, column)
        persistent = line.expression() if line.accept("persistent") else None
        axes = self._axes(line) if line.accept("grid") else ()
        order, group = "row", None
        if line.accept("order"):
            order = line.one_of(("row", "column", "grouped"), "a tile order")
            group = line.expression() if order == "grouped" else None
        cluster = declarations.by_x(line) if line.accept("cluster") else ()
        threads = line.expression() if line.accept("threads") else Number(1)
        line.end()
        self.at += 1
        self.buffers.clear()  # shared and register names end with their launch
        self.buffers.update(self.globals)
        body = self._block(1)
        return Launch(name, axes, body, threads, persistent, order, group, cluster)  # type: ignore[arg-type]

    def _axes(self, line: Line) -> tuple[Axis, ...]:
        axes = []
        while True:
            name = line.new_name("a grid axis")
            line.expect("=")
            axes.append(Axis(name, line.expression()))
            if not line.accept(","):
                return tuple(axes)

    def _block(self, depth: int) -> tuple[Statement, ...]:
        body: list[Statement] = []
        while (line := self.line) is not None and line.depth >= depth:
            if line.depth > depth:
                raise ParseError(line.line, 1, f"{2 * line.depth} spaces", f"{2 * depth}: no block begins above")
            if line.sees("else"):
                break
            body += self._statements(line, depth)
        return tuple(body)

    def _statements(self, line: Line, depth: int) -> list[Statement]:
        self.at += 1
        word = line.now.text
        if word in ("for", "if", "role"):
            line.take()
            return [self._opened(word, line, depth)]
        if word in WORDS and word not in _READERS:
            raise line.error("a statement")
        if word not in _READERS or line.ahead(1) in ("[", "=", "+="):
            found: list[Statement] = [compute.read_assign(line)]
        else:
            line.take()
            found = [_READERS[word](line)]
            while word in _DECLARES and line.sees(*_DECLARES):
                found.append(_READERS[line.take().text](line))
        line.end()
        return found

    def _opened(self, word: str, line: Line, depth: int) -> Statement:
        if word == "for":
            return self._for(line, depth)
        return self._if(line, depth) if word == "if" else self._role(line, depth)

    def _for(self, line: Line, depth: int) -> For:
        variable = line.new_name("a loop variable")
        line.expect("in")
        start = line.expression()
        line.expect("..")
        stop = line.expression()
        step = line.expression() if line.accept("step") else Number(1)
        unroll = line.expression() if line.accept("unroll") else None
        stages = line.expression() if line.accept("pipeline_stage") else None
        carry: list[str] = []
        if line.accept("carry"):
            carry.append(line.new_name("a carried register buffer"))
            while line.accept(","):
                carry.append(line.new_name("a carried register buffer"))
        _colon(line)
        return For(variable, start, stop, self._block(depth + 1), step, unroll, stages, tuple(carry))

    def _if(self, line: Line, depth: int) -> If:
        condition = line.expression()
        _colon(line)
        then = self._block(depth + 1)
        other = self.line
        if other is None or other.depth != depth or not other.sees("else"):
            return If(condition, then)
        other.take()
        _colon(other)
        self.at += 1
        return If(condition, then, self._block(depth + 1))

    def _role(self, line: Line, depth: int) -> Role:
        name = line.new_name("a role's name")
        who = "all"
        if line.accept(","):
            line.expect("one")
            who = f"one {line.one_of(('warp', 'thread'), 'who runs it')}"
        _colon(line)
        return Role(name, self._block(depth + 1), who)  # type: ignore[arg-type]


def _colon(line: Line) -> None:
    line.expect(":")
    line.end()


def _words(line: Line, what: str) -> str:
    """Read ``sm_90a`` or ``x86-64-v4``: names and numbers joined by hyphens, glued as they stand."""
    if line.ended:
        raise line.error(what)
    start = line.take()
    text, end = start.text, start.column + len(start.text)
    while not line.ended and line.now.column == end:
        token = line.take()
        text, end = text + token.text, token.column + len(token.text)
    return text


def _rows(program: Program) -> Iterator[tuple[str, Path]]:
    yield f"program {program.name} ir {GRAMMAR} target {program.target} {program.arch}", ()
    if program.structure:
        yield f"  structure {program.structure}", ()
    for size in program.sizes:
        yield f"  {declarations.show_size(size)}", ()
    for const in program.consts:
        yield f"  {declarations.show_const(const)}", ()
    for buffer in program.buffers:
        yield f"  {declarations.show_buffer(buffer)}", ()
    for at, launch in enumerate(program.launches):
        yield _show_launch(launch), (at,)
        for inner, statement in enumerate(launch.body):
            yield from _show(statement, (at, inner), "  ")


def _show_launch(launch: Launch) -> str:
    text = f"launch {launch.name}{show_clause('persistent', launch.persistent)}"
    if launch.axes:
        text += " grid " + ", ".join(f"{axis.name} = {show(axis.extent)}" for axis in launch.axes)
    if launch.order != "row":
        text += f" order {launch.order}" + ("" if launch.group is None else f" {show(launch.group)}")
    if launch.cluster:
        text += f" cluster {declarations.show_by_x(launch.cluster)}"
    return text if launch.threads == Number(1) else f"{text} threads {show(launch.threads)}"


def _show(statement: Statement, path: Path, margin: str) -> Iterator[tuple[str, Path]]:
    yield f"{margin}{show_statement(statement)}", path
    inner = f"{margin}  "
    split = False
    for step, child in children(statement):
        if step < 0 and not split:
            split = True
            yield f"{margin}else:", ()
        yield from _show(child, (*path, step), inner)


def show_statement(statement: Statement) -> str:
    """Print the line of one statement, without what is inside it and without its margin."""
    match statement:
        case Declare(buffer):
            return declarations.show_buffer(buffer)
        case Barrier():
            return declarations.show_barrier(statement)
        case WarpRole():
            return declarations.show_warp_role(statement)
        case For():
            return _for_head(statement)
        case If(condition):
            return f"if {show(condition)}:"
        case Role(name, _, who):
            return f"role {name}:" if who == "all" else f"role {name}, {who}:"
    text = movement.show_movement(statement) or compute.show_compute(statement)
    assert text is not None  # every statement class has a printer
    return text


def _for_head(loop: For) -> str:
    text = f"for {loop.variable} in {show(loop.start)}..{show(loop.stop)}"
    step: Expr | None = None if loop.step == Number(1) else loop.step
    text += show_clause("step", step) + show_clause("unroll", loop.unroll) + show_clause("pipeline_stage", loop.stages)
    return f"{text} carry {', '.join(loop.carry)}:" if loop.carry else f"{text}:"
