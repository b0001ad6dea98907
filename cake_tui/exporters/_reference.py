"""The problem as C and C++ for a harness: sizes, buffers and, where `value` says it, the float64 reference."""

from __future__ import annotations

import math

from cake_tui.ir.expr import (
    Binary,
    Call,
    EvaluationError,
    Expr,
    Name,
    Number,
    ParseError,
    Ref,
    Unary,
    evaluate,
    evaluate_int,
    parse,
)
from cake_tui.model.lowered import LaunchPlan
from cake_tui.model.problem import BufferSpec, Problem

C_TYPES = {"f32": "float", "f64": "double", "i32": "int", "u8": "unsigned char"}
_FUNCTIONS = {
    "relu": "ref_relu", "gelu_erf": "ref_gelu_erf", "gelu_tanh": "ref_gelu_tanh", "silu": "ref_silu",
    "sigmoid": "ref_sigmoid", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "1.0 / sqrt", "tanh": "tanh",
    "erf": "erf", "sin": "sin", "cos": "cos", "abs": "fabs", "floor": "floor", "ceil": "ceil", "square": "ref_square",
    "pow": "pow", "min": "fmin", "max": "fmax",
}  # fmt: skip
_ROUNDING = ("f64", "f32")


class _NoReference(Exception):
    """The value cannot be said in C."""


def buffer_order(problem: Problem, plan: LaunchPlan) -> dict[str, int]:
    """Say where each buffer and workspace stands in the harness's list."""
    names = [spec.name for spec in problem.buffers] + [space.name for space in plan.workspaces]
    return {name: at for at, name in enumerate(names)}


def declarations(problem: Problem, plan: LaunchPlan) -> str:
    """Return declarations for a harness: sizes, tolerance and `cake_buffers[]`."""
    sizes = dict(plan.shape.sizes)
    lines = ["", f"#define CAKE_TOLERANCE {problem.tolerance_abs!r}"]
    lines += [f"#define CAKE_{name} {value}" for name, value in sizes.items()]
    lines += [
        "",
        "struct cake_buffer { const char *name; void *data; size_t count, element; int out; double scale; };",
        "static struct cake_buffer cake_buffers[] = {",
    ]
    for spec in problem.buffers:
        count = math.prod(evaluate_int(parse(extent), sizes) for extent in spec.shape)
        scale = float(evaluate(parse(spec.scale), sizes))
        out = int(spec.role != "in")
        lines.append(f'  {{"{spec.name}", 0, {count}, sizeof({C_TYPES[spec.dtype]}), {out}, {scale!r}}},')
    lines += [f'  {{"{space.name}", 0, {space.size_bytes}, 1, 1, 0.0}},' for space in plan.workspaces]
    return "\n".join([*lines, "};", ""])


def reference_text(problem: Problem, plan: LaunchPlan) -> str:
    """Return `cake_value()` and what it is applied to, or CAKE_NO_REFERENCE."""
    return "\n".join(_reference(problem, buffer_order(problem, plan))) + "\n"


def _reference(problem: Problem, index: dict[str, int]) -> list[str]:
    """The contraction in double, element by element; a kernel that `value` does not say has none here."""
    none = ["#define CAKE_NO_REFERENCE 1", ""]
    specs = {spec.name: spec for spec in problem.buffers}
    outs = [spec for spec in problem.buffers if spec.role == "out"]
    if problem.family != "contraction" or len(outs) != 1 or len(problem.buffers) < 2:
        return none
    left, right = problem.buffers[:2]
    try:
        value = _c(parse(problem.value), specs, index)
    except (ParseError, EvaluationError, _NoReference, KeyError):
        return none
    rows, depth = left.shape
    _, columns = right.shape
    return [
        f"#define CAKE_ROWS CAKE_{rows}",
        f"#define CAKE_COLUMNS CAKE_{columns}",
        f"#define CAKE_DEPTH CAKE_{depth}",
        f"#define CAKE_LEFT ((const float *)cake_buffers[{index[left.name]}].data)",
        f"#define CAKE_RIGHT ((const float *)cake_buffers[{index[right.name]}].data)",
        f"#define CAKE_OUT ((const float *)cake_buffers[{index[outs[0].name]}].data)",
        "#include <math.h>",
        "static double ref_relu(double x) { return x < 0.0 ? 0.0 : x; }",
        "static double ref_square(double x) { return x * x; }",
        "static double ref_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }",
        "static double ref_silu(double x) { return x * ref_sigmoid(x); }",
        "static double ref_gelu_erf(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }",
        "static double ref_gelu_tanh(double x) {",
        "  return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));",
        "}",
        "static double cake_value(double acc, size_t m, size_t n) {",
        "  (void)m, (void)n, (void)ref_relu, (void)ref_square, (void)ref_silu;",
        "  (void)ref_gelu_erf, (void)ref_gelu_tanh;  // whichever the value does not use",
        f"  return {value};",
        "}",
        "",
    ]


def _c(expr: Expr, specs: dict[str, BufferSpec], index: dict[str, int]) -> str:
    """Print an expression over acc and buffers as C in double."""
    match expr:
        case Number(value):
            return repr(float(value))
        case Name(name):
            return f"((double){name})" if name in ("m", "n", "acc") else f"((double)CAKE_{name})"
        case Unary("-", operand):
            return f"(-{_c(operand, specs, index)})"
        case Binary(op, left, right) if op in ("+", "-", "*", "/"):
            return f"({_c(left, specs, index)} {op} {_c(right, specs, index)})"
        case Call(function, arguments) if function in _ROUNDING:
            return f"((double)({'float' if function == 'f32' else 'double'}){_c(arguments[0], specs, index)})"
        case Call("min" | "max" as function, arguments):
            text = _c(arguments[0], specs, index)
            for argument in arguments[1:]:
                text = f"{_FUNCTIONS[function]}({text}, {_c(argument, specs, index)})"
            return text
        case Call(function, arguments) if function in _FUNCTIONS:
            return f"({_FUNCTIONS[function]}({', '.join(_c(argument, specs, index) for argument in arguments)}))"
        case Ref(buffer, indices) if all(isinstance(one, Name) for one in indices):
            spec = specs[buffer]
            offset = "0"
            for extent, one in zip(spec.shape, indices, strict=True):
                assert isinstance(one, Name)
                offset = f"({offset} * {_extent(extent)} + {one.name})"
            return f"((double)((const {C_TYPES[spec.dtype]} *)cake_buffers[{index[buffer]}].data)[{offset}])"
        case _:
            raise _NoReference


def _extent(text: str) -> str:
    """An extent of a buffer that is one size."""
    expr = parse(text)
    if isinstance(expr, Name):
        return f"(size_t)CAKE_{expr.name}"
    if isinstance(expr, Number):
        return f"(size_t){int(expr.value)}"
    raise _NoReference
