"""One element or one vector of a map in CUDA C++: its test, its loads, its arithmetic and its store."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from cake_tui.ir.expr import Expr, Number, Ref, names_in, refs_in
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.types import CALCULATED, STORED, narrowed
from cake_tui.ir.lower.cuda.values import Values
from cake_tui.ir.lower.tiles import Shaped, TileAxis, rest_behind, shaped
from cake_tui.ir.program import Guard
from cake_tui.ir.refusal import refuse


class Map(msgspec.Struct, frozen=True):
    """A statement over a tile: what is written where, under which guard."""

    target: Ref
    value: Expr
    op: str
    where: Guard | None
    vector: Expr | None = None

    @property
    def otherwise(self) -> Expr | None:
        """What elements take where the guard fails; None leaves them as they are."""
        return None if self.where is None else self.where.otherwise


def moves(tile: Shaped, axes: tuple[TileAxis, ...]) -> bool:
    """Whether the address changes along the walk's last axis."""
    if tile.axes:
        return True
    return bool(axes[-1].name) and any(axes[-1].name in names_in(index) for index in tile.ref.indices)


def test_of(frame: CudaFrame, tests: list[Expr]) -> str:
    """Print conditions that must all hold."""
    return " && ".join(frame.c(condition, 3) for condition in tests)


def emit_element(values: Values, statement: Map, target: Shaped, tests: list[Expr]) -> None:
    """Emit a statement for one element."""
    frame = values.frame
    test = test_of(frame, tests)
    text = values.value(statement.value, 2 if test and statement.otherwise is not None else 0)
    if test and statement.otherwise is not None:
        line = _written(values, statement, target, f"{test} ? {text} : {values.value(statement.otherwise)}")
    else:
        line = _moved(values, statement, target) or _written(values, statement, target, text)
    if test and statement.otherwise is None:
        with frame.writer.block(f"if ({test})"):
            frame.writer.line(line)
    else:
        frame.writer.line(line)


def _moved(values: Values, statement: Map, target: Shaped) -> str:
    """Print a plain move: the same stored type on both sides needs no arithmetic. Empty where there is some."""
    source = statement.value
    if statement.op != "=" or not isinstance(source, Ref):
        return ""
    tile = shaped(source, values.frame.buffers)
    same = tile.buffer.dtype == target.buffer.dtype
    return f"{values.place(target)} = {values.place(tile)};" if same else ""


def _written(values: Values, statement: Map, target: Shaped, text: str) -> str:
    place = values.place(target)
    dtype = target.buffer.dtype
    if statement.op.startswith("atomic"):
        return f"{statement.op}(&{place}, {narrowed(dtype, text)});"
    if statement.op == "+=" and CALCULATED[dtype] != dtype:
        return f"{place} = {narrowed(dtype, f'{values.element(statement.target)} + {text}')};"
    return f"{place} {statement.op} {narrowed(dtype, text)};"


def emit_vector(values: Values, statement: Map, target: Shaped, tests: list[Expr], width: tuple[int, str]) -> None:
    """Emit a statement for one vector; `width` is its elements, as a number and as the source says it."""
    frame = values.frame
    whole, count = split_tests(values, tests, width[0])
    if target.buffer.space == "register":
        _into_registers(values, statement, target, (test_of(frame, whole), count), width)
    else:
        _into_memory(values, statement, target, (test_of(frame, whole), count), width)


def split_tests(values: Values, tests: list[Expr], vector: int) -> tuple[list[Expr], str]:
    """Return tests for the whole vector, and how many of its elements are inside where they may be a part."""
    frame, last = values.frame, values.axes[-1]
    whole: list[Expr] = []
    counts: list[str] = []
    for condition in tests:
        if not last.name or last.name not in names_in(condition):
            whole.append(condition)
            continue
        rest = rest_behind(condition, last.name)
        if rest is None:
            raise refuse("lowering", "where", frame.c(condition), f"{last.name} < bound", step="lower")
        if frame.divides(vector, rest):
            whole.append(condition)
        else:
            counts.append(frame.c(rest))
    count = counts[0] if counts else ""
    for other in counts[1:]:
        count = f"least({count}, {other})"
    return whole, count


def _into_registers(
    values: Values, statement: Map, target: Shaped, guard: tuple[str, str], width: tuple[int, str]
) -> None:
    writer = values.frame.writer
    test, count = guard
    if not test:
        _fill(values, statement, target, "", count, width)
        return
    with writer.block(f"if ({test})"):
        _fill(values, statement, target, "", count, width)
    if statement.otherwise is not None:
        writer.otherwise()
        with writer.block("} else"):
            _lanes(values, statement.otherwise, statement, target, "", width)


def _into_memory(
    values: Values, statement: Map, target: Shaped, guard: tuple[str, str], width: tuple[int, str]
) -> None:
    frame, (test, count) = values.frame, guard
    writer = frame.writer
    place = f"&{values.place(target)}"
    name = next(frame.fresh("value"))
    moved = _memory_vector(values, statement, target)
    if moved and not count and statement.target in values.vectors and _plainly(test, statement):
        arguments = f"{place}, {moved}"
        if test and statement.otherwise is not None:
            writer.line(f"copy_vector_or_zero<{width[1]}>({arguments}, {test});")
            return
        with writer.block(f"if ({test})") if test else nullcontext():
            writer.line(f"copy_vector<{width[1]}>({arguments});")
        return
    declared = f"{STORED[target.buffer.dtype]} {name}[{width[1]}]"

    def store(partial: str) -> None:
        if statement.target not in values.vectors:
            _store_apart(values, target, name, (width, partial))
            return
        text = f"store_part<{width[1]}>({place}, {name}, {partial});" if partial else ""
        writer.line(text or f"store_vector<{width[1]}>({place}, {name});")

    if not test or statement.otherwise is None:
        with writer.block(f"if ({test})") if test else nullcontext():
            own = _own_vector(values, statement, target)
            if own and not count and statement.target in values.vectors:
                writer.line(f"store_vector<{width[1]}>({place}, {own});")
            else:
                writer.line(f"{declared};")
                _fill(values, statement, target, name, count, width)
                store(count if statement.otherwise is None else "")
        return
    zero = statement.otherwise == Number(0)
    writer.line(f"{declared} = {{}};" if zero else f"{declared};")
    if not zero:
        _lanes(values, statement.otherwise, statement, target, name, width)
    with writer.block(f"if ({test})"):
        _fill(values, statement, target, name, count, width)
    store("")


def _plainly(test: str, statement: Map) -> bool:
    """Whether what is outside is left alone, or zero."""
    return not test or statement.otherwise is None or statement.otherwise == Number(0)


def _memory_vector(values: Values, statement: Map, target: Shaped) -> str:
    """Print where a vector is that is stored as it is; empty where it must be calculated."""
    source = statement.value
    if not isinstance(source, Ref) or statement.op != "=" or source not in values.vectors:
        return ""
    tile = shaped(source, values.frame.buffers)
    return f"&{values.place(tile)}" if tile.buffer.dtype == target.buffer.dtype else ""


def _store_apart(values: Values, target: Shaped, name: str, much: tuple[tuple[int, str], str]) -> None:
    """Store a vector's elements, or the first of them, one by one: they do not lie side by side."""
    frame, (width, count) = values.frame, much
    lane = next(frame.fresh("v"))
    frame.writer.pragma("unroll")
    with frame.writer.block(f"for (int {lane} = 0; {lane} < {width[1]}; ++{lane})"):
        frame.declare(lane, Number(0), Number(width[0]))
        values.lane = lane
        line = f"{values.place(target)} = {name}[{lane}];"
        if count:
            with frame.writer.block(f"if ({lane} < {count})"):
                frame.writer.line(line)
        else:
            frame.writer.line(line)
        values.lane = ""


def _own_vector(values: Values, statement: Map, target: Shaped) -> str:
    """Print the registers that are stored as they are; empty where they must be calculated."""
    source = statement.value
    if not isinstance(source, Ref) or statement.op != "=":
        return ""
    tile = shaped(source, values.frame.buffers)
    same = tile.buffer.space == "register" and tile.buffer.dtype == target.buffer.dtype and bool(tile.axes)
    return f"&{values.place(tile)}" if same else ""


def _fill(values: Values, statement: Map, target: Shaped, name: str, count: str, width: tuple[int, str]) -> None:
    """Put the vector's values into the array `name`, or into the target's own registers."""
    frame = values.frame
    source = statement.value
    into = name or f"&{values.place(target)}"
    loads = [ref for ref in dict.fromkeys(refs_in(source)) if ref in values.vectors]
    if statement.op == "+=" and name and statement.target in values.vectors:
        loads = list(dict.fromkeys([*loads, statement.target]))
    dtype = target.buffer.dtype
    alone = isinstance(source, Ref) and source in loads and statement.op == "="
    if alone and isinstance(source, Ref) and frame.buffers[source.buffer].dtype == dtype:
        fill = statement.otherwise if statement.otherwise is not None else Number(0)
        _load(values, source, into, count, width, narrowed(dtype, values.value(fill)))
        return
    loaded: dict[Ref, str] = {}
    for ref in loads:
        (array,) = frame.fresh(f"{ref.buffer}_vector")
        while array in loaded.values():
            array += "_"
        frame.writer.line(f"{STORED[frame.buffers[ref.buffer].dtype]} {array}[{width[1]}];")
        _load(values, ref, array, count, width, "0")
        loaded[ref] = array
    values.loaded = loaded
    _lanes(values, source, statement, target, name, width, count)
    values.loaded = {}


def _moving(values: Values, ref: Ref) -> bool:
    tile = shaped(ref, values.frame.buffers)
    return tile.buffer.space != "register" and moves(tile, values.axes)


def _load(values: Values, ref: Ref, into: str, count: str, width: tuple[int, str], fill: str) -> None:
    """Emit the load of one vector, of its first elements where the rest may lie outside."""
    place = f"&{values.place(shaped(ref, values.frame.buffers))}"
    if count:
        zero = STORED[values.frame.buffers[ref.buffer].dtype]
        fill = f"{zero}()" if fill == "0" else fill
        values.frame.writer.line(f"load_part<{width[1]}>({into}, {place}, {count}, {fill});")
    else:
        values.frame.writer.line(f"load_vector<{width[1]}>({into}, {place});")


def _lanes(
    values: Values,
    value: Expr,
    statement: Map,
    target: Shaped,
    name: str,
    width: tuple[int, str],
    count: str = "",
) -> None:
    """Calculate each element of a vector."""
    frame, writer = values.frame, values.frame.writer
    lane = next(frame.fresh("v"))
    writer.pragma("unroll")
    with writer.block(f"for (int {lane} = 0; {lane} < {width[1]}; ++{lane})"):
        frame.declare(lane, Number(0), Number(width[0]))
        values.lane = lane
        text = values.value(value, 2 if count else 0)
        dtype = target.buffer.dtype
        place = f"{name}[{lane}]" if name else values.place(target)
        if statement.op == "+=":
            old = values.element(statement.target) if name or CALCULATED[dtype] != dtype else place
            text = f"{old} + {text}"
        if count and statement.otherwise is not None:
            text = f"{lane} < {count} ? {text} : {values.value(statement.otherwise)}"
        line = f"{place} = {narrowed(dtype, text)};"
        # What lies behind the last element may be read in whole vectors' parts only.
        apart = any(ref not in values.loaded and _moving(values, ref) for ref in refs_in(value))
        if count and statement.otherwise is None and (apart or not name):
            with writer.block(f"if ({lane} < {count})"):
                writer.line(line)
        else:
            writer.line(line)
        values.lane = ""
