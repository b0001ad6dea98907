"""Evaluates expressions of the IR over arrays, for references and peers; numbers go through `ir.expr` itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from cake_tui.ir.expr import (
    Binary,
    Call,
    Expr,
    Index,
    Name,
    Number,
    Ref,
    Unary,
    evaluate,
    names_in,
    parse,
)
from cake_tui.model.problem import Shape

TAIL = 3.0  # from here on erfc is a continued fraction of so many levels, exact to float64
LEVELS = 60

_CASTS = frozenset(["f64", "f32", "f16", "bf16", "tf32"])

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: (a != 0) & (b != 0),
    "or": lambda a, b: (a != 0) | (b != 0),
}


def number(text: str, shape: Shape) -> float:
    """Return the value of an expression over the sizes (``1/sqrt(K)``)."""
    return float(evaluate(parse(text), dict(shape.sizes)))


def _erfc_of_tail(xp: Any, z: Any) -> Any:
    """Return 1 - erf(z) for z of 3 and more, where the difference itself would leave few digits.

    Continued fraction 7.9.4 of the NIST Digital Library of Mathematical Functions, from the inside out.
    """
    below = z
    for half in range(LEVELS, 0, -1):
        below = z + 0.5 * half / below
    return xp.exp(-z * z) / (math.sqrt(math.pi) * below)


class Evaluator:
    """Evaluates one value over arrays whose axes are those of the output, in `xp` (numpy or alike).

    `erf` computes the error function of a float64 array; numpy has none.
    """

    def __init__(self, xp: Any, output_axes: tuple[str, ...], erf: Callable[[Any], Any]) -> None:
        self.xp = xp
        self.output_axes = output_axes
        self.erf = erf

    def value(self, text: str, arrays: Mapping[str, Any]) -> Any:
        """Return the value; `arrays` maps names (``acc`` too) to arrays with one axis an index."""
        return self._value(parse(text, arrays), arrays)

    def _value(self, expr: Expr | Index, arrays: Mapping[str, Any]) -> Any:
        xp = self.xp
        match expr:
            case Number(value=value):
                return value
            case Name(name=name):
                return arrays[name]
            case Ref(buffer=buffer, indices=indices):
                return self._aligned(arrays[buffer], indices)
            case Unary(op="-", operand=operand):
                return -self._value(operand, arrays)
            case Unary(operand=operand):
                return xp.logical_not(self._value(operand, arrays))
            case Binary(op=op, left=left, right=right):
                return _OPERATORS[op](self._value(left, arrays), self._value(right, arrays))
            case Call(function=function, arguments=arguments):
                return self._call(function, [self._value(argument, arrays) for argument in arguments])
            case _:
                raise ValueError(f"a value cannot hold {expr}")

    def _aligned(self, array: Any, indices: tuple[Index, ...]) -> Any:
        """Put the axes that the indices name where the output has them, all others 1 long."""
        if not indices:
            return array
        found = [next(iter(names_in(index)), "") for index in indices]
        order = sorted(range(len(found)), key=lambda position: self.output_axes.index(found[position]))
        shape = [1] * len(self.output_axes)
        for position in order:
            shape[self.output_axes.index(found[position])] = array.shape[position]
        return array.transpose(order).reshape(shape)

    def _gelu(self, x: Any) -> Any:
        """Return x times the normal distribution function; in float64, as references are, its tail has all digits."""
        z = -x / math.sqrt(2.0)
        inner = 1.0 - self.erf(z)
        if x.dtype != self.xp.float64:
            return 0.5 * x * inner
        return 0.5 * x * self.xp.where(z > TAIL, _erfc_of_tail(self.xp, self.xp.maximum(z, TAIL)), inner)

    def _call(self, function: str, values: list[Any]) -> Any:
        xp, x = self.xp, values[0]
        match function:
            case "relu":
                return xp.where(x < 0, 0 * x, x)
            case "erf":
                return self.erf(x)
            case "gelu_erf":
                return self._gelu(xp.asarray(x))
            case "gelu_tanh":
                # As 0.5*x*(1 + tanh(z)), which would leave no digits where z is far below zero.
                z = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
                return x / (1.0 + xp.exp(xp.minimum(-2.0 * z, 0.69 * xp.finfo(xp.asarray(z).dtype).maxexp)))
            case "sigmoid" | "silu":
                return (1.0 if function == "sigmoid" else x) / (1.0 + xp.exp(-x))
            case "rsqrt":
                return 1.0 / xp.sqrt(x)
            case "square":
                return x * x
            case "min" | "max":
                combine = xp.minimum if function == "min" else xp.maximum
                for other in values[1:]:
                    x = combine(x, other)
                return x
            case "pow":
                return xp.power(x, values[1])
            case "select":
                return xp.where(x, values[1], values[2])
            case "i32" | "u8":
                return xp.trunc(x)
            case _ if function in _CASTS:
                return x  # the reference rounds nothing
            case _:
                return getattr(xp, function)(x)
