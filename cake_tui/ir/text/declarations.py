"""Text of sizes, constants, buffers, barriers and warp roles: parsed and printed side by side."""

from __future__ import annotations

from typing import cast

from cake_tui.ir.expr import Expr, Number, show
from cake_tui.ir.program import (
    DTYPES,
    ROLE_KINDS,
    Access,
    Barrier,
    Buffer,
    Const,
    DType,
    Fragment,
    Lanes,
    RoleKind,
    Size,
    Space,
    Spread,
    Threads,
    WarpRole,
)
from cake_tui.ir.text.line import Line

_ACCESS = ("in", "out", "inout")


def read_size(line: Line) -> Size:
    """Read ``size M = 1024`` or ``size M runtime multiple 8 from 1 to 4096``, the word size being read."""
    name = line.new_name("a size's name")
    value = None
    if line.expect("=", "runtime") == "=":
        value = line.integer("a whole number")
    multiple = line.integer("a multiple") if line.accept("multiple") else 1
    if multiple < 1:
        raise line.error("a multiple of at least 1")
    low = high = None
    if line.accept("from"):
        low = line.integer("the least value")
        line.expect("to")
        high = line.integer("the largest value")
    return Size(name, value, multiple, low, high)


def show_size(size: Size) -> str:
    """Print a size."""
    text = f"size {size.name} runtime" if size.value is None else f"size {size.name} = {size.value}"
    if size.multiple != 1:
        text += f" multiple {size.multiple}"
    return text if size.low is None else f"{text} from {size.low} to {size.high}"


def read_const(line: Line) -> Const:
    """Read ``const BM = 128 of 64 128`` or a derived ``const block = BM*2``, the word const being read."""
    name = line.new_name("a constant's name")
    line.expect("=")
    value = line.expression()
    values: list[int] = []
    if line.accept("of"):
        values.append(line.integer("a legal value"))
        while line.now.kind == "number":
            values.append(line.integer("a legal value"))
    return Const(name, value, tuple(values))


def show_const(const: Const) -> str:
    """Print a constant."""
    values = f" of {' '.join(str(value) for value in const.values)}" if const.values else ""
    return f"const {const.name} = {show(const.value)}{values}"


def read_buffer(line: Line, space: Space) -> Buffer:
    """Read a buffer, its space being read, and make its name known."""
    name = line.new_name("a buffer's name")
    line.expect(":")
    line.accept("global")
    dtype = cast(DType, line.one_of(DTYPES, "a dtype"))
    shape: list[Expr] = []
    if line.accept("["):
        shape.append(line.expression())
        while line.accept(","):
            shape.append(line.expression())
        line.expect("]")
    access: Access = "in"
    if space == "param" and line.sees(*_ACCESS):
        access = cast(Access, line.take().text)
    align = line.integer("an alignment in bytes") if line.accept("align") else 0
    order = _integers(line) if line.accept("order") else ()
    if order and sorted(order) != list(range(len(shape))):
        raise line.error(f"each axis from 0 to {len(shape) - 1} once behind 'order'")
    pad = line.expression() if line.accept("pad") else Number(0)
    swizzle = line.integer("a swizzle in bytes") if line.accept("swizzle") else 0
    ring = line.accept("ring") is not None
    owner = line.new_name("a role's name") if space == "register" and line.accept("in") else ""
    spread = _spread(line) if line.accept("spread") else None
    init = line.expression() if space == "register" and line.accept("=") else None
    line.buffers.add(name)
    return Buffer(
        name, space, dtype, tuple(shape), access, align, order, pad, swizzle, ring, owner, spread, init
    )  # fmt: skip


def show_buffer(buffer: Buffer) -> str:
    """Print a buffer."""
    shape = f"[{', '.join(show(extent) for extent in buffer.shape)}]" if buffer.shape else ""
    words = [f"{buffer.space} {buffer.name}: {buffer.dtype}{shape}"]
    if buffer.access != "in":
        words.append(buffer.access)
    if buffer.align:
        words.append(f"align {buffer.align}")
    if buffer.order:
        words.append(f"order {' '.join(str(axis) for axis in buffer.order)}")
    if buffer.pad != Number(0):
        words.append(f"pad {show(buffer.pad)}")
    if buffer.swizzle:
        words.append(f"swizzle {buffer.swizzle}")
    if buffer.ring:
        words.append("ring")
    if buffer.owner:
        words.append(f"in {buffer.owner}")
    if buffer.spread is not None:
        words.append(f"spread {_show_spread(buffer.spread)}")
    if buffer.init is not None:
        words.append(f"= {show(buffer.init)}")
    return " ".join(words)


def _integers(line: Line) -> tuple[int, ...]:
    found = [line.integer("an axis")]
    while line.now.kind == "number":
        found.append(line.integer("an axis"))
    return tuple(found)


def _spread(line: Line) -> Spread:
    if line.accept("lanes"):
        return Lanes(line.expression())
    if line.accept("fragment"):
        return Fragment(line.dotted("a fragment's name"))
    threads = by_x(line)
    line.expect("threads")
    line.expect(",")
    each = by_x(line)
    line.expect("each")
    if not line.accept(","):
        return Threads(threads, each)
    line.expect("runs")
    return Threads(threads, each, by_x(line))


def _show_spread(spread: Spread) -> str:
    match spread:
        case Lanes(count):
            return f"lanes {show(count)}"
        case Fragment(name):
            return f"fragment {name}"
        case Threads(threads, each, runs):
            dealt = f", runs {show_by_x(runs)}" if runs else ""
            return f"{show_by_x(threads)} threads, {show_by_x(each)} each{dealt}"


def by_x(line: Line) -> tuple[Expr, ...]:
    """Read ``16 x 16``."""
    found = [line.expression()]
    while line.accept("x"):
        found.append(line.expression())
    return tuple(found)


def show_by_x(exprs: tuple[Expr, ...]) -> str:
    """Print ``16 x 16``."""
    return " x ".join(show(expr) for expr in exprs)


def read_barrier(line: Line) -> Barrier:
    """Read ``barrier full[S] arrivals 1``, the word barrier being read."""
    name = line.new_name("a barrier's name")
    slots = line.slot()
    line.expect("arrivals")
    return Barrier(name, slots, line.expression())


def show_barrier(barrier: Barrier) -> str:
    """Print a barrier's declaration."""
    return f"barrier {barrier.name}[{show(barrier.slots)}] arrivals {show(barrier.arrivals)}"


def read_warp_role(line: Line) -> WarpRole:
    """Read ``warp_role load kind loader warps 0 to 3 registers 40``; a name of the list is its own kind."""
    name = line.new_name("a role's name")
    if line.accept("kind"):
        kind = line.one_of(ROLE_KINDS, "a role's kind")
    elif name in ROLE_KINDS:
        kind = name
    else:
        raise line.error(f"'kind' and one of {' '.join(ROLE_KINDS)}")
    line.expect("warps")
    first = line.expression()
    last = line.expression() if line.accept("to") else first
    registers = line.integer("a number of registers") if line.accept("registers") else None
    return WarpRole(name, cast(RoleKind, kind), first, last, registers)


def show_warp_role(role: WarpRole) -> str:
    """Print a warp role's declaration."""
    kind = "" if role.name == role.kind else f" kind {role.kind}"
    last = "" if role.last == role.first else f" to {show(role.last)}"
    registers = "" if role.registers is None else f" registers {role.registers}"
    return f"warp_role {role.name}{kind} warps {show(role.first)}{last}{registers}"
