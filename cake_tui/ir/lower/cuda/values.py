"""Values of one element in CUDA C++: typed expressions over memory, registers and coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cake_tui.ir.expr import (
    PRECEDENCE,
    Binary,
    Call,
    Expr,
    Name,
    Number,
    Ref,
    Unary,
    names_in,
    refs_in,
    show,
    show_ref,
    substitute,
)
from cake_tui.ir.lower.cuda.frame import CudaFrame
from cake_tui.ir.lower.cuda.types import CALCULATED, widened
from cake_tui.ir.lower.cuda.walks import ZERO, Step, Walk, plus, times
from cake_tui.ir.lower.tiles import Shaped, TileAxis, address, shaped
from cake_tui.ir.program import DTYPE_BYTES
from cake_tui.ir.refusal import refuse

_ATOM = 99
SWIZZLE_ROWS = 8  # of its own bytes each, until its pattern begins anew
_LOGIC = {"and": "&&", "or": "||"}
_OWN = ("relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid", "square")  # the prelude's, for float and double
_LIBRARY = {
    "exp": "exp", "log": "log", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos", "floor": "floor",
    "ceil": "ceil", "sqrt": "sqrt", "rsqrt": "rsqrt", "pow": "pow",
}  # fmt: skip
_NAMES = {"min": "min_nan", "max": "max_nan", "abs": "fabs"}
_C_TYPES = {"f32": "float", "f64": "double", "i32": "int", "u8": "unsigned char"}


class Values:
    """Prints values at one place of a walk; `lane` counts elements of a vector from there, `loaded` are its vectors."""

    def __init__(self, walk: Walk, axes: tuple[TileAxis, ...], dtype: str) -> None:
        self.walk = walk
        self.frame: CudaFrame = walk.frame
        self.axes = axes
        self.dtype = CALCULATED[dtype]
        self.lane = ""
        self.loaded: Mapping[Ref, str] = {}
        self.vectors: frozenset[Ref] = frozenset()  # what moves in whole vectors

    def value(self, expr: Expr, least: int = 0) -> str:
        """Print a value."""
        text, level = self._print(expr)
        return f"({text})" if level < least else text

    def _print(self, expr: Expr) -> tuple[str, int]:
        match expr:
            case Number(value):
                return self._number(value), _ATOM
            case Name(name):
                text = self.frame.c(self._at_lane(Name(name)), 9)
                return (text if self.dtype == "i32" else f"static_cast<{_C_TYPES[self.dtype]}>({text})"), _ATOM
            case Ref():
                return self.element(expr), _ATOM
            case Unary("-", operand):
                text, level = self._print(operand)
                return (f"-{text}" if level == _ATOM and not text.startswith("-") else f"-({text})"), 9
            case Unary(_, operand):
                return f"!({self._print(operand)[0]})", 9
            case Binary(op, left, right):
                level = PRECEDENCE[op]
                if op == "%" and self.dtype != "i32":
                    raise refuse("lowering", show(expr), f"% of {self.dtype}", "whole numbers", step="lower")
                texts = self.value(left, level), self.value(right, level + 1)
                return f"{texts[0]} {_LOGIC.get(op, op)} {texts[1]}", level
            case Call(function, arguments):
                return self._call(function, arguments), _ATOM

    def _number(self, value: int | float) -> str:
        if self.dtype == "i32":
            return str(int(value))
        if value == float("inf"):
            return "infinity()"
        text = repr(float(value))
        return f"{text}f" if self.dtype == "f32" else text

    def _call(self, function: str, arguments: tuple[Expr, ...]) -> str:
        if function in ("min", "max") and len(arguments) > 2:
            return self._call(function, (Call(function, arguments[:-1]), arguments[-1]))
        if function in _C_TYPES:
            return self._cast(function, arguments[0])
        texts = [self.value(argument) for argument in arguments]
        if function == "select":
            condition, yes, no = (self.value(argument, 3) for argument in arguments)
            return f"({condition} ? {yes} : {no})"
        if function in ("f16", "bf16"):
            return f"to_float(to_{function}({texts[0]}))"
        if function == "tf32":
            return f"to_tf32({texts[0]})"
        if self.dtype == "i32":
            if function == "relu":
                return f"most({texts[0]}, 0)"
            name = {"min": "least", "max": "most", "square": "square"}.get(function)
            if name is None:
                raise refuse("lowering", function, f"{function} of i32", "a function of whole numbers", step="lower")
            return f"{name}({', '.join(texts)})"
        if function in _LIBRARY:
            return f"{_LIBRARY[function]}{'f' if self.dtype == 'f32' else ''}({', '.join(texts)})"
        if function == "abs":
            return f"fabs{'f' if self.dtype == 'f32' else ''}({texts[0]})"
        name = _NAMES.get(function, function)
        if function not in (*_OWN, *_NAMES):
            raise refuse("lowering", function, function, "a function that cuda has", step="lower")
        return f"{name}({', '.join(texts)})"

    def _cast(self, function: str, argument: Expr) -> str:
        """Print a value of one type as another: the argument is calculated in the type of its own elements."""
        outer = self.dtype
        refs = refs_in(argument)
        self.dtype = CALCULATED[self.frame.buffers[refs[0].buffer].dtype] if refs else outer
        inner, text = self.dtype, self.value(argument)
        self.dtype = outer
        return text if function == inner == outer else f"static_cast<{_C_TYPES[function]}>({text})"

    def element(self, ref: Ref) -> str:
        """Print an element as what it is calculated in."""
        tile = shaped(ref, self.frame.buffers)
        if CALCULATED[tile.buffer.dtype] != self.dtype:
            given = CALCULATED[tile.buffer.dtype]
            raise refuse("lowering", show_ref(ref), given, f"{self.dtype}({show_ref(ref)})", step="lower")
        found = f"{self.loaded[ref]}[{self.lane}]" if ref in self.loaded else self.place(tile)
        return widened(tile.buffer.dtype, found)

    def place(self, tile: Shaped) -> str:
        """Print where an element is: an array element in memory, or the thread's own."""
        if tile.buffer.space == "register":
            return self._own(tile)
        return f"{tile.ref.buffer}[{memory_index(self.frame, tile, self._offset(tile))}]"

    def pointer(self, tile: Shaped) -> str:
        """Print the address of an element in memory, what becomes a number in it last.

        An instruction holds such a number itself where it is added to an address. NVRTC's addresses of shared memory
        have 64 bits, and from within an index of 32 it does not take the numbers out (nvcc's have 32, and it does).
        """
        offset, added = self._offset(tile), ""
        if tile.buffer.space == "shared":
            rest, number = _apart(self.frame, self.frame.tidy(offset), _pattern(tile), Number(1))
            if ZERO not in (rest, number):
                # As one: two additions to a pointer are not put together.
                offset, added = rest, f" + {self.frame.c(number, 5)}"
        return f"&{tile.ref.buffer}[{memory_index(self.frame, tile, offset)}]{added}"

    def _offset(self, tile: Shaped) -> Expr:
        """Return the offset in elements of an element in memory."""
        steps = [self._at_lane(step.offset, last=place == len(self.axes) - 1) for place, step in self._aligned(tile)]
        return self._at_lane(address(tile, tuple(steps), self._coordinates(tile)))

    def _coordinates(self, tile: Shaped) -> frozenset[str]:
        """Coordinates that may stand for start plus offset: those whose axis begins where the walk's does."""
        own = {axis.name: axis for axis in self.axes if axis.name in self.walk.coordinates}
        return frozenset(
            axis.name for axis in tile.axes if axis.name in own and own[axis.name].start == axis.start and not self.lane
        )

    def _aligned(self, tile: Shaped) -> list[tuple[int, Step]]:
        """Return the walk's steps of a tile's axes, which stand at its last ones; axes of one element may lack."""
        wanted = len(tile.axes)
        if wanted <= len(self.axes):
            return list(enumerate(self.walk.steps))[len(self.axes) - wanted :]
        raise refuse(
            "lowering",
            show_ref(tile.ref),
            f"{wanted} axes",
            f"at most {len(self.axes)} in this statement",
            step="lower",
        )

    def _own(self, tile: Shaped) -> str:
        """Print one of the thread's own elements of a register buffer."""
        holds = self.frame.holds(tile.buffer)
        steps = {axis.axis: pair for axis, pair in zip(tile.axes, self._aligned(tile))}
        text = tile.buffer.name
        for axis, hold in enumerate(holds):
            if axis in steps:
                element = self._at_lane(steps[axis][1].element, last=steps[axis][0] == len(self.axes) - 1)
                element = plus(tile.axes[[one.axis for one in tile.axes].index(axis)].start, element)
            else:
                element = self._owned_index(tile, axis, hold.threads == 1)
            if hold.each > 1:
                text += f"[{self.frame.c(element)}]"
        return text

    def _owned_index(self, tile: Shaped, axis: int, whole: bool) -> Expr:
        """Return the thread's element that an index means: one with a coordinate of the walk, or any of its own."""
        index = tile.ref.indices[axis]
        assert isinstance(index, Expr)  # spans are tile axes
        frame = self.frame
        for place, (own, step) in enumerate(zip(self.axes, self.walk.steps)):
            if not own.name or own.name not in names_in(index):
                continue
            apart = Binary("-", substitute(index, {own.name: plus(own.start, step.offset)}), step.offset)
            if frame.proofs.number(frame.tidy(apart)) == 0:
                return self._at_lane(step.element if not whole else index, last=place == len(self.axes) - 1)
        if whole:
            return self._at_lane(index)
        raise refuse(
            "lowering", show_ref(tile.ref), "an element of another thread", "the statement's own coordinates",
            step="lower",
        )  # fmt: skip

    def _at_lane(self, expr: Expr, *, last: bool = False) -> Expr:
        """Move an expression on by the lane: a step of the last axis, or what its coordinate is in."""
        if not self.lane:
            return expr
        if last:
            return plus(expr, Name(self.lane))
        name = self.axes[-1].name
        if name and name in names_in(expr):
            return substitute(expr, {name: plus(Name(name), Name(self.lane))})
        return expr


def memory_index(frame: CudaFrame, tile: Shaped, where: Expr) -> str:
    """Print an index into memory; shared tiles with a swizzle are permuted, as the hardware does it.

    Whole patterns of a swizzle are added behind it: elements that lie patterns apart share what is permuted.
    """
    if tile.buffer.space != "shared" or not tile.buffer.swizzle:
        return frame.c(where)
    size, pattern = DTYPE_BYTES[tile.buffer.dtype], _pattern(tile)
    summands = _summands(frame.tidy(where))
    whole = [one for one in summands if frame.divides(pattern, one)]
    inside = [one for one in summands if one not in whole]
    text = f"swizzled<{tile.buffer.swizzle}, {size}>({frame.c(_sum(inside))})"
    return f"{frame.c(_sum(whole))} + {text}" if whole else text


def _pattern(tile: Shaped) -> int:
    """Return after how many elements a tile's swizzle begins anew; 1 without one."""
    return max(1, SWIZZLE_ROWS * tile.buffer.swizzle // DTYPE_BYTES[tile.buffer.dtype])


def _apart(frame: CudaFrame, expr: Expr, pattern: int, scale: Expr) -> tuple[Expr, Expr]:
    """Take what becomes a number out of an index: the rest, and that; `expr` counts `scale` elements.

    Only whole patterns of a swizzle are taken out: it permutes the rest as before.
    """
    match expr:
        case Binary("+", left, right):
            parts = [_apart(frame, side, pattern, scale) for side in (left, right)]
            return plus(parts[0][0], parts[1][0]), plus(parts[0][1], parts[1][1])
        case Binary("*", left, right) if frame.proofs.number(frame.tidy(right)) is not None:
            rest, number = _apart(frame, left, pattern, times(scale, right))
            return ZERO if rest == ZERO else times(rest, right), ZERO if number == ZERO else times(number, right)
        case _:
            moved = frame.becomes_number(expr) and frame.divides(pattern, times(expr, scale))
            return (ZERO, expr) if moved else (expr, ZERO)


def _summands(expr: Expr) -> list[Expr]:
    """Return what a sum adds, products of sums multiplied out."""
    match expr:
        case Binary("+", left, right):
            return [*_summands(left), *_summands(right)]
        case Binary("*", left, right):
            return [Binary("*", one, two) for one in _summands(left) for two in _summands(right)]
        case _:
            return [expr]


def _sum(summands: Sequence[Expr]) -> Expr:
    total: Expr = Number(0)
    for one in summands:
        total = plus(total, one)
    return total
