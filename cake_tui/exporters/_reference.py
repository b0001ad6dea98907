"""The problem as C and C++ for a harness: sizes, buffers and, where its expressions say it, the float64 reference.

Value, scale and bounds are those of the product's check (design 8): the scale S of a contraction is |A||B| and the
other inputs' sizes, of a reduction the size of what is combined, of an elementwise kernel its inputs' sizes; what comes
behind, and each input of an elementwise kernel, counts through the derivative.
"""

from __future__ import annotations

import math

from cake_tui.errors import UserError
from cake_tui.exporters._expression import NotInC, Writer, helpers
from cake_tui.ir.expr import EvaluationError, ParseError, evaluate, parse
from cake_tui.ir.families import (
    axes,
    contracted_axes,
    contracted_length,
    dimensions,
    inputs_of,
    is_exact,
    largest_integer,
    operands,
    outputs_of,
)
from cake_tui.model.lowered import LaunchPlan
from cake_tui.model.problem import ACC, BufferSpec, Problem, Shape

KINDS = {"f32": ("f", 4), "f64": ("d", 8), "f16": ("h", 2), "i32": ("i", 4), "u8": ("b", 1)}
FILLS = {"normal": "n", "uniform": "u", "integers": "i"}  # any other is a number
CONSTANTS = {"zeros": "0", "ones": "1"}
NONE = "#define CAKE_NO_REFERENCE 1\n"
EVALUATION = 16  # what one value costs, in products


def buffer_order(problem: Problem, plan: LaunchPlan) -> dict[str, int]:
    """Say where each buffer and workspace stands in the harness's list."""
    names = [spec.name for spec in problem.buffers] + [space.name for space in plan.workspaces]
    return {name: at for at, name in enumerate(names)}


def declarations(problem: Problem, plan: LaunchPlan) -> str:
    """Return declarations for a harness: tolerances and `cake_buffers[]`; raises UserError for what it cannot fill."""
    length = contracted_length(problem, plan.shape) if problem.family is not None else 1
    lines = [
        "",
        f"#define CAKE_TOLERANCE {problem.tolerance_abs!r}",
        f"#define CAKE_UNITS {problem.tolerance_units!r}",
        f"#define CAKE_INTEGERS {largest_integer(length)}.0",
        "",
        "// element: f float, d double, h half, i int, b byte; role: i in, o out, x both, w workspace;",
        "// fill: n normal, u uniform, i integers, c always `scale`",
        "struct cake_buffer {",
        "  const char *name;",
        "  size_t count, size;",
        "  char element, role, fill;",
        "  double scale;",
        "  void *data, *given;",
        "};",
        "static struct cake_buffer cake_buffers[] = {",
    ]
    lines += [_buffer(spec, plan.shape) for spec in problem.buffers]
    lines += [f"  {{\"{space.name}\", {space.size_bytes}, 1, 'b', 'w', 'c', 0.0, 0, 0}}," for space in plan.workspaces]
    return "\n".join([*lines, "};", ""])


def _buffer(spec: BufferSpec, shape: Shape) -> str:
    if spec.dtype not in KINDS:
        raise UserError(f"buffer {spec.name}: a harness cannot fill {spec.dtype}; it can: {', '.join(KINDS)}")
    kind, size = KINDS[spec.dtype]
    fill, scale = FILLS.get(spec.fill, "c"), _number(spec.scale, shape)
    if fill == "c":
        scale *= _number(CONSTANTS.get(spec.fill, spec.fill), shape)
    role = {"in": "i", "out": "o", "inout": "x"}[spec.role]
    count = math.prod(dimensions(spec, shape))
    return f"  {{\"{spec.name}\", {count}, {size}, '{kind}', '{role}', '{fill}', {scale!r}, 0, 0}},"


def _number(text: str, shape: Shape) -> float:
    return float(evaluate(parse(text), dict(shape.sizes)))


def reference_text(problem: Problem, plan: LaunchPlan) -> str:
    """Return the reference's functions, or CAKE_NO_REFERENCE for what expressions do not say."""
    outputs = outputs_of(problem)
    if problem.family is None or problem.reference is not None or problem.reference_is_first or len(outputs) != 1:
        return NONE
    if not outputs[0].shape or (problem.family == "reduction" and not problem.map):
        return NONE
    try:
        return _Reference(problem, plan).text()
    except (ParseError, EvaluationError, NotInC, ValueError):
        return NONE


class _Reference:
    """The output is taken in rows: all of its axes but the last, or all of a reduction's."""

    def __init__(self, problem: Problem, plan: LaunchPlan) -> None:
        self.problem = problem
        self.shape = plan.shape
        self.output = outputs_of(problem)[0]
        self.writer = Writer(problem.buffers, buffer_order(problem, plan), plan.shape)
        self.names = axes(self.output)
        extents = dimensions(self.output, plan.shape)
        if not all(name.isidentifier() for name in self.names):
            raise NotInC(str(self.names))
        rows = len(extents) if problem.family == "reduction" or len(extents) == 1 else len(extents) - 1
        self.row_names, self.row_extents = self.names[:rows], extents[:rows]
        self.column_name = self.names[rows] if rows < len(self.names) else ""
        self.columns = extents[rows] if self.column_name else 1

    def text(self) -> str:
        inner = contracted_length(self.problem, self.shape)
        family = self.problem.family
        mapped = not self.problem.map or is_exact(self.problem.map)
        lines = [
            f"#define CAKE_ROWS {math.prod(self.row_extents)}u",
            f"#define CAKE_COLUMNS {self.columns}u",
            f"#define CAKE_COST ({inner}.0 + {EVALUATION * (1 + 2 * len(inputs_of(self.problem)))}.0)",
            f"#define CAKE_EXACT {int(is_exact(self.problem.value) and mapped)}",
            f"#define CAKE_CONTRACTION {int(family == 'contraction')}",
            f"#define CAKE_OUT {self.writer.order[self.output.name]}",
        ]
        functions = [
            *self._accumulate(),
            *self._function("cake_value", "double acc", self.writer.value(parse(self.problem.value, self._buffers()))),
            *self._scale(),
            "",
        ]
        return "\n".join([*lines, *helpers("\n".join(functions)), *functions])

    def _buffers(self) -> list[str]:
        return [spec.name for spec in self.problem.buffers]

    def _coordinates(self) -> list[str]:
        """The row's and the column's coordinates, whichever are used."""
        lines = []
        behind = 1
        for name, extent in reversed(list(zip(self.row_names, self.row_extents))):
            lines.append(f"  const size_t at_{name} = row / {behind}u % {extent}u;")
            behind *= extent
        lines += [f"  const size_t at_{self.column_name} = column;"] if self.column_name else ["  (void)column;"]
        return [*lines, "  " + ", ".join(f"(void)at_{name}" for name in self.names) + ";"]

    def _function(self, name: str, first: str, result: str) -> list[str]:
        head = f"static double {name}({first}, size_t row, size_t column) {{"
        return [head, *self._coordinates(), "  (void)acc;", f"  return {result};", "}"]

    def _accumulate(self) -> list[str]:
        """`cake_row`: for each column of a row what is combined, and its size."""
        lines = ["static void cake_row(size_t row, double *sum, double *size) {"]
        if self.problem.family == "elementwise":
            return [*lines, "  (void)row, (void)sum, (void)size;", "}"]
        factors = operands(self.problem)
        combined, first = contracted_axes(self.problem), inputs_of(self.problem)[0]
        extents = dict(zip(axes(first), dimensions(first, self.shape)))
        column = f"at_{self.column_name}" if self.column_name else ""
        term = (
            " * ".join(self.writer.element(spec.name) for spec in factors)
            if factors is not None
            else self.writer.value(parse(self.problem.map, self._buffers()))
        )
        begin = {"max": "-INFINITY", "min": "INFINITY"}.get(self.problem.combine, "0.0")
        where = f"[{column}]" if column else "[0]"
        # The columns innermost: they lie side by side in memory.
        coordinates = [line for line in self._coordinates() if "column" not in line and "(void)" not in line]
        lines += [
            *coordinates,
            f"  for (size_t n = 0; n < {self.columns}u; ++n) sum[n] = {begin}, size[n] = 0.0;",
            *[f"  for (size_t at_{name} = 0; at_{name} < {extents[name]}u; ++at_{name})" for name in combined],
            *([f"    for (size_t {column} = 0; {column} < {self.columns}u; ++{column}) {{"] if column else ["    {"]),
            f"      const double term = {term};",
        ]
        match self.problem.combine if factors is None else "add":
            case "max" | "min" as which:
                lines.append(
                    f"      sum{where} = ref_{which}(sum{where}, term), size{where} = fmax(size{where}, fabs(term));"
                )
            case _:
                lines.append(f"      sum{where} += term, size{where} += fabs(term);")
        return [*lines, "    }", "}"]

    def _scale(self) -> list[str]:
        """`cake_scale`: what the error of an element is measured in, over u."""
        match self.problem.family:
            case "contraction":
                factors = operands(self.problem) or ()
                others = [spec.name for spec in inputs_of(self.problem) if spec not in factors]
                sizes = "".join(f" + fabs({self.writer.element(name)})" for name in others)
                return self._function("cake_scale", "double acc, double size", f"size{sizes}")
            case "reduction":
                if self.problem.value.strip() == ACC:
                    return self._function("cake_scale", "double acc, double size", "size")
                step = "double step = 1e-6 * fmax(fabs(acc), 1.0);"
                slope = "fabs(cake_value(acc + step, row, column) - cake_value(acc - step, row, column)) / (2.0 * step)"
                result = f"fabs(cake_value(acc, row, column)) + size * {slope}"
                lines = self._function("cake_scale", "double acc, double size", result)
                return [lines[0], f"  {step}", *lines[1:]]
            case _:
                names = [spec.name for spec in inputs_of(self.problem)]
                parts = [f"cake_share({self.writer.place(name)}, row, column)" for name in names]
                lines = self._function(
                    "cake_scale", "double acc, double size",
                    " + ".join(["fabs(cake_value(0.0, row, column))", *parts]),
                )  # fmt: skip
                return [*_SHARE, lines[0], "  (void)size;", *lines[1:]]


# |x| |df/dx| of one input, by central differences.
_SHARE = (
    "static double cake_share(int buffer, size_t at, size_t row, size_t column) {",
    "  const double x = cake_get(buffer, at), step = 1e-6 * fmax(fabs(x), 1.0);",
    "  cake_moved = buffer, cake_step = 1e-6;",
    "  const double up = cake_value(0.0, row, column);",
    "  cake_step = -1e-6;",
    "  const double down = cake_value(0.0, row, column);",
    "  cake_moved = -1;",
    "  return fabs(x) * fabs(up - down) / (2.0 * step);",
    "}",
)
