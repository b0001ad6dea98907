"""Prints a value's expression as C in double, for the reference of a harness."""

from __future__ import annotations

from collections.abc import Mapping

from cake_tui.ir.expr import Binary, Call, Expr, Name, Number, Ref, Unary, names_in
from cake_tui.ir.families import axes, dimensions
from cake_tui.model.problem import ACC, BufferSpec, Shape

_FUNCTIONS = {
    "relu": "ref_relu", "gelu_erf": "ref_gelu_erf", "gelu_tanh": "ref_gelu_tanh", "silu": "ref_silu",
    "sigmoid": "ref_sigmoid", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "1.0 / sqrt", "tanh": "tanh",
    "erf": "erf", "sin": "sin", "cos": "cos", "abs": "fabs", "floor": "floor", "ceil": "ceil", "square": "ref_square",
    "pow": "pow", "min": "ref_min", "max": "ref_max", "i32": "trunc", "u8": "trunc",
}  # fmt: skip
_CASTS = ("f64", "f32", "f16", "bf16", "tf32")  # a reference rounds nothing
_OPERATORS = {"and": "&&", "or": "||"} | {one: one for one in ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")}
# Forms that keep their digits where the function is far below its argument.
_HELPERS = """\
static inline double ref_relu(double x) { return x < 0.0 ? 0.0 * x : x; }
static inline double ref_square(double x) { return x * x; }
static inline double ref_min(double x, double y) { return x != x || x < y ? x : y; }
static inline double ref_max(double x, double y) { return x != x || x > y ? x : y; }
static inline double ref_remainder(double x, double y) { return x - y * floor(x / y); }
static inline double ref_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double ref_silu(double x) { return x / (1.0 + exp(-x)); }
static inline double ref_gelu_erf(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752); }
static inline double ref_gelu_tanh(double x) { return x / (1 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))); }
"""


def helpers(text: str) -> list[str]:
    """Return the functions that a printed reference calls."""
    return [line for line in _HELPERS.splitlines() if f"{line.split('(')[0].split()[-1]}(" in text]


class NotInC(Exception):
    """The expression, or a buffer in it, cannot be said in C."""


class Writer:
    """Prints expressions over the buffers at `order` in the harness's list; coordinates are called ``at_m``."""

    def __init__(self, specs: tuple[BufferSpec, ...], order: Mapping[str, int], shape: Shape) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.order = order
        self.shape = shape

    def element(self, name: str, read: str = "cake_get", indices: tuple[str, ...] = ()) -> str:
        """Print one element of a buffer, at the coordinates of its own axes or at other ones."""
        return f"{read}({self.place(name, indices)})"

    def place(self, name: str, indices: tuple[str, ...] = ()) -> str:
        """Print the buffer's number and the element's."""
        spec = self.specs[name]
        offset = ""
        for extent, axis in zip(dimensions(spec, self.shape), indices or axes(spec), strict=True):
            if not axis.isidentifier():
                raise NotInC(axis)
            offset = f"({offset}) * {extent} + at_{axis}" if offset else f"at_{axis}"
        return f"{self.order[name]}, {offset or '0'}"

    def value(self, expr: Expr) -> str:
        """Print an expression over ``acc`` and elements of buffers."""
        match expr:
            case Number(value=value):
                return repr(float(value))
            case Name(name=name) if name == ACC:
                return ACC
            case Name(name=name) | Ref(buffer=name, indices=()) if name in self.specs:
                return self.element(name, "cake_x")
            case Ref(buffer=name, indices=indices) if name in self.specs:
                found = [sorted(names_in(index)) for index in indices]
                if any(len(names) != 1 for names in found) or len(found) != len(self.specs[name].shape):
                    raise NotInC(name)
                return self.element(name, "cake_x", tuple(names[0] for names in found))
            case Unary(op="-", operand=operand):
                return f"(-{self.value(operand)})"
            case Unary(operand=operand):
                return f"(double)(!{self.value(operand)})"
            case Binary(op="%", left=left, right=right):
                return f"ref_remainder({self.value(left)}, {self.value(right)})"
            case Binary(op=op, left=left, right=right) if op in _OPERATORS:
                return f"({self.value(left)} {_OPERATORS[op]} {self.value(right)})"
            case Call(function=function, arguments=arguments):
                return self._call(function, [self.value(argument) for argument in arguments])
        raise NotInC(str(expr))

    def _call(self, function: str, arguments: list[str]) -> str:
        if function in _CASTS:
            return arguments[0]
        if function == "select":
            return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
        if function in ("min", "max"):
            text = arguments[0]
            for argument in arguments[1:]:
                text = f"{_FUNCTIONS[function]}({text}, {argument})"
            return text
        if function not in _FUNCTIONS:
            raise NotInC(function)
        return f"({_FUNCTIONS[function]}({', '.join(arguments)}))"
