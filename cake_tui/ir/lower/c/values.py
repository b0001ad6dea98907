"""Floating-point expressions in C, for one element or one vector of elements at a time."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.expr import (
    COMPARISONS,
    PRECEDENCE,
    All,
    Binary,
    Call,
    Expr,
    Name,
    Number,
    Ref,
    Span,
    Unary,
    names_in,
    show_ref,
)
from cake_tui.ir.lower.c import prelude
from cake_tui.ir.lower.c.frame import CFrame
from cake_tui.ir.lower.indices import c_int
from cake_tui.ir.lower.tiles import Shaped, address, moves_by_one, shaped
from cake_tui.ir.program import Buffer
from cake_tui.ir.refusal import refuse

_ATOM = 99
_FLOATS = ("f32", "f64")
_LOGIC = {"and": ("&&", "&"), "or": ("||", "|")}


class Values:
    """Prints values at one place of the loops over a tile: `offsets` count from the tile's start, a tile axis each."""

    def __init__(
        self,
        frame: CFrame,
        dtype: str,
        lanes: int,
        offsets: tuple[Expr, ...],
        vector_axis: str,
        coordinates: frozenset[str] = frozenset(),
    ) -> None:
        self.frame = frame
        self.dtype = dtype
        self.lanes = lanes
        self.offsets = offsets
        self.vector_axis = vector_axis
        self.coordinates = coordinates
        self.count: Expr | None = None  # elements of this vector that may be touched, where that is not proven

    def splat(self, text: str, vector: bool) -> str:
        """Return a text as a vector where the statement works on vectors."""
        if vector or self.lanes == 1:
            return text
        return f"{self.frame.needs.call('splat', self.dtype, self.lanes)}({text})"

    def value(self, expr: Expr) -> str:
        """Print a value of the statement's width."""
        text, _, vector = self._print(expr)
        return self.splat(text, vector)

    def scalar(self, expr: Expr) -> str:
        """Print a value that must be one element."""
        text, _, vector = self._print(expr)
        if vector:
            raise refuse("lowering", text, "a vector", "one element", step="lower")
        return text

    def _print(self, expr: Expr) -> tuple[str, int, bool]:
        match expr:
            case Number(value):
                return self._number(value), _ATOM, False
            case Name(name):
                return f"({prelude.type_of(self.dtype, 1)}){c_int(self.frame.tidy(Name(name)), _ATOM)}", _ATOM, False
            case Ref():
                return self._ref(expr)
            case Unary("-", operand):
                text, level, vector = self._print(operand)
                return f"-{text}" if level == _ATOM and not text.startswith("-") else f"-({text})", 9, vector
            case Unary(_, operand):
                text, _, vector = self._print(operand)
                return f"{'~' if vector else '!'}({text})", 9, vector
            case Binary(op, left, right):
                return self._binary(op, left, right)
            case Call(function, arguments):
                return self._call(function, arguments)

    def _number(self, value: int | float) -> str:
        if value == float("inf"):
            return "INFINITY"
        text = repr(float(value))
        return f"{text}f" if self.dtype == "f32" else text

    def _binary(self, op: str, left: Expr, right: Expr) -> tuple[str, int, bool]:
        level = PRECEDENCE[op]
        first, first_level, first_vector = self._print(left)
        second, second_level, second_vector = self._print(right)
        vector = first_vector or second_vector
        if vector and (op in COMPARISONS or op in _LOGIC):
            first, second = self.splat(first, first_vector), self.splat(second, second_vector)
        first = f"({first})" if first_level < level else first
        second = f"({second})" if second_level <= level else second
        if op in _LOGIC:
            op = _LOGIC[op][vector]
        return f"{first} {op} {second}", level, vector

    def _call(self, function: str, arguments: tuple[Expr, ...]) -> tuple[str, int, bool]:
        if function == self.dtype:
            return self._print(arguments[0])
        if function in ("min", "max") and len(arguments) > 2:
            return self._call(function, (Call(function, arguments[:-1]), arguments[-1]))
        printed = [self._print(argument) for argument in arguments]
        vector = any(is_vector for _, _, is_vector in printed)
        lanes = self.lanes if vector else 1
        if not prelude.has(function, lanes):
            raise refuse("lowering", function, f"{function} of {self.dtype}", "a function that c has", step="lower")
        texts = [text for text, _, _ in printed]
        if vector:
            mask = function == "select"
            texts = [self.splat(text, is_vector) for text, _, is_vector in printed]
            if mask and not printed[0][2]:
                return f"({printed[0][0]} ? {texts[1]} : {texts[2]})", _ATOM, True
        return f"{self.frame.needs.call(function, self.dtype, lanes)}({', '.join(texts)})", _ATOM, vector

    def _ref(self, ref: Ref) -> tuple[str, int, bool]:
        tile = shaped(ref, self.frame.buffers)
        if tile.buffer.dtype not in _FLOATS or (tile.buffer.dtype != self.dtype and self.lanes > 1):
            raise refuse("lowering", ref.buffer, tile.buffer.dtype, f"{self.dtype} in this statement", step="lower")
        if tile.buffer.space == "register":
            return self.register(tile), _ATOM, tile.lanes is not None and self.lanes > 1
        if len(tile.axes) > len(self.offsets):
            raise refuse(
                "lowering", show_ref(ref), f"{len(tile.axes)} axes", f"{len(self.offsets)} at most", step="lower"
            )
        offsets = self.offsets[len(self.offsets) - len(tile.axes) :]
        place = self.frame.c(address(tile, offsets, self.coordinates))
        if self.lanes == 1 or not self._moves(tile):
            return f"{ref.buffer}[{place}]", _ATOM, False
        if not self._dense(tile):
            raise refuse(
                "lowering", show_ref(ref), "elements apart in memory", "a dense last axis, or vector 1", step="lower"
            )
        return self.load(f"&{ref.buffer}[{place}]"), _ATOM, True

    def load(self, pointer: str) -> str:
        """Print the load of a vector, of its first elements where the rest is not proven to be there."""
        if self.count is None:
            return f"{self.frame.needs.call('load', self.dtype, self.lanes)}({pointer})"
        part = self.frame.needs.call("load_part", self.dtype, self.lanes)
        return f"{part}({pointer}, {self.frame.c(self.count)})"

    def _moves(self, tile: Shaped) -> bool:
        """Whether the address changes from lane to lane."""
        if tile.axes:
            return True
        return bool(self.vector_axis) and any(self.vector_axis in names_in(index) for index in tile.ref.indices)

    def _dense(self, tile: Shaped) -> bool:
        if tile.buffer.order and tile.buffer.order != tuple(sorted(tile.buffer.order)):
            return False
        if tile.axes:
            return tile.contiguous
        *others, last = tile.ref.indices
        if isinstance(last, Span | All) or not moves_by_one(last, self.vector_axis):
            return False
        return not any(self.vector_axis in names_in(index) for index in others)

    def register(self, tile: Shaped) -> str:
        """Print an element, or a vector of elements, of a register buffer."""
        return register_place(self.frame, tile, self.offsets, self.lanes)


def register_place(frame: CFrame, tile: Shaped, offsets: tuple[Expr, ...], lanes: int) -> str:
    """Print the place of a register buffer's element; the last offset counts elements, vectors hold `lanes`."""
    buffer: Buffer = tile.buffer
    if not buffer.shape:
        return buffer.name
    steps = dict(zip((axis.axis for axis in tile.axes), offsets[len(offsets) - len(tile.axes) :]))
    text = buffer.name
    for axis in range(len(buffer.shape)):
        place = address_of_axis(tile, axis, steps)
        if axis == len(buffer.shape) - 1 and tile.lanes is not None and lanes > 1:
            place = vector_number(frame, place, tile)
        text += f"[{frame.c(place)}]"
    return text


def address_of_axis(tile: Shaped, axis: int, steps: Mapping[int, Expr]) -> Expr:
    """Return the index of one axis."""
    for tile_axis in tile.axes:
        if tile_axis.axis == axis:
            return Binary("+", tile_axis.start, steps[axis])
    return tile.ref.indices[axis]  # type: ignore[return-value]  # spans are tile axes


def vector_number(frame: CFrame, place: Expr, tile: Shaped) -> Expr:
    """Return which vector of the last axis an element offset ``j*lanes`` means."""
    simple = frame.tidy(place)
    lanes = tile.lanes
    match simple:
        case Binary("*", variable, count) if count == lanes:
            return variable
        case Number(0):
            return simple
        case _:
            raise refuse(
                "lowering", tile.ref.buffer, show_ref(tile.ref), "whole vectors of a register buffer", step="lower"
            )
