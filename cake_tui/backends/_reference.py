"""The float64 reference of a problem: the value and its scale S, from `reference.py` or from `value` alone.

S is what errors are measured in, u*S with u = 2^-24: |A||B| + |bias| for a contraction; the sum of the sizes of what
is added for a reduction; for an elementwise kernel the inputs' sizes through the derivative.
"""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from cake_tui.backends._values import Evaluator
from cake_tui.errors import UserError
from cake_tui.ir.expr import EvaluationError, ParseError, parse
from cake_tui.ir.families import axes, contracted_axes, dimensions, inputs_of, is_exact, operands, outputs_of
from cake_tui.model.problem import ACC, Problem, Shape

U = 2.0**-24


class Reference(msgspec.Struct, frozen=True):
    """Values and scales in float64, by output buffer."""

    values: Mapping[str, Any]
    scales: Mapping[str, Any]


class Referee:
    """Computes references of one problem in `xp`; raises UserError where the problem gives none."""

    def __init__(self, problem: Problem, xp: Any, erf: Callable[[Any], Any]) -> None:
        self.problem = problem
        self.xp = xp
        self.output = outputs_of(problem)[0]
        self._evaluator = Evaluator(xp, axes(self.output), erf)
        self._written = _written_reference(problem)
        self._mapper = Evaluator(xp, axes(inputs_of(problem)[0]), erf)  # of a reduction: over what it combines
        unsaid = problem.family is None or (problem.family == "reduction" and not problem.map)
        if self._written is None and unsaid:
            raise UserError(f"kernel {problem.kernel}: neither its expressions nor a reference.py say what is right")
        if self._written is None:
            for key, text in (("value", problem.value), ("map", problem.map)):
                try:
                    parse(text or "0", [spec.name for spec in problem.buffers])
                except ParseError as error:
                    raise UserError(f"kernel {problem.kernel}: {key}: {error}") from None

    @property
    def exact(self) -> bool:
        """Say whether whole-number inputs must give the value bit for bit."""
        mapped = self.problem.map
        return self._written is None and is_exact(self.problem.value) and (not mapped or is_exact(mapped))

    @property
    def written(self) -> bool:
        """Say whether nothing is promised of whole-number inputs.

        Somebody wrote the reference, or each step of an expression rounds: only of a contraction all but the last
        steps are exact.
        """
        return self._written is not None or (self.problem.family != "contraction" and not self.exact)

    @property
    def row_axis(self) -> str | None:
        """The output's first axis where rows can be computed alone, else None."""
        row = axes(self.output)[0] if axes(self.output) else None
        known = self._written is None and row in axes(inputs_of(self.problem)[0])
        return row if known else None

    def compute(self, inputs: Mapping[str, Any], shape: Shape) -> Reference:
        """Return value and scale for these inputs (any dtype; float64 inside) of this shape."""
        xp = self.xp
        wide = {name: xp.asarray(array, dtype=xp.float64) for name, array in inputs.items()}
        if self._written is not None:
            return self._from_text(wide, shape)
        if operands(self.problem):
            return self._contraction(wide, xp.float64)
        return self._reduction(wide) if self.problem.family == "reduction" else self._elementwise(wide)

    def rows(self, inputs: Mapping[str, Any], shape: Shape, rows: Any) -> Reference:
        """Return value and scale of some rows of the output's first axis, at the cost of those rows alone."""
        taken = dict(inputs)
        for spec in inputs_of(self.problem):
            names = axes(spec)
            if self.row_axis in names:
                taken[spec.name] = self.xp.take(inputs[spec.name], rows, axis=names.index(self.row_axis))
        return self.compute(taken, shape)

    def in_single(self, inputs: Mapping[str, Any]) -> Any:
        """Return the first output computed by the library in the inputs' own precision (peers, self-test)."""
        if self._written is not None:
            value, _ = _told_by(self.problem, self._written, self.xp, inputs)
            return value[0]
        if operands(self.problem):
            return self.value_of(self.accumulate(inputs, self.xp.float32), inputs)
        if self.problem.family == "reduction":
            return self.value_of(self._combined(self._mapped(inputs)), inputs)
        return self._evaluator.value(self.problem.value, inputs)

    def accumulate(self, inputs: Mapping[str, Any], dtype: Any) -> Any:
        """Return the sum of products over the contracted axes, in `dtype`."""
        factors = operands(self.problem)
        assert factors is not None
        a, b = (self.xp.asarray(inputs[spec.name], dtype=dtype) for spec in factors)
        names = [axes(spec) for spec in factors]
        if names[0][-1:] == names[1][:1] == contracted_axes(self.problem) and len(names[0]) == len(names[1]) == 2:
            return a @ b
        letters = {axis: chr(97 + i) for i, axis in enumerate(dict.fromkeys((*names[0], *names[1])))}
        left, right, out = ("".join(letters[axis] for axis in each) for each in (*names, axes(self.output)))
        return self.xp.einsum(f"{left},{right}->{out}", a, b, optimize=True)

    def value_of(self, acc: Any, inputs: Mapping[str, Any]) -> Any:
        """Return `value` for a given sum `acc`."""
        found = self._evaluator.value(self.problem.value, {**inputs, ACC: acc})
        return self.xp.broadcast_to(found, acc.shape)

    def _contraction(self, wide: Mapping[str, Any], dtype: Any) -> Reference:
        xp = self.xp
        factors = operands(self.problem)
        assert factors is not None
        used = {spec.name for spec in factors}
        scale = self.accumulate({name: xp.abs(wide[name]) for name in used}, dtype)
        for spec in inputs_of(self.problem):
            if spec.name not in used:
                placed = self._evaluator.value(
                    f"{spec.name}[{', '.join(axes(spec))}]", {spec.name: xp.abs(wide[spec.name])}
                )
                scale = scale + placed
        value = self.value_of(self.accumulate(wide, dtype), wide)
        return Reference({self.output.name: value}, {self.output.name: scale})

    def _mapped(self, inputs: Mapping[str, Any]) -> Any:
        """Return what a reduction combines, one number a row and column."""
        first = inputs[inputs_of(self.problem)[0].name]
        return self.xp.broadcast_to(self._mapper.value(self.problem.map, inputs), first.shape)

    def _combined(self, terms: Any) -> Any:
        match self.problem.combine:
            case "max":
                return terms.max(axis=-1)
            case "min":
                return terms.min(axis=-1)
            case _:
                return terms.sum(axis=-1)

    def _reduction(self, wide: Mapping[str, Any]) -> Reference:
        """Scale: what is combined by its sizes, through the derivative of `value` by central differences."""
        xp = self.xp
        terms = self._mapped(wide)
        acc, sizes = self._combined(terms), xp.abs(terms)
        scale = sizes.sum(axis=-1) if self.problem.combine == "add" else sizes.max(axis=-1)
        value = self.value_of(acc, wide)
        if self.problem.value.strip() != ACC:
            step = 1e-6 * xp.maximum(xp.abs(acc), 1.0)
            slope = xp.abs(self.value_of(acc + step, wide) - self.value_of(acc - step, wide)) / (2.0 * step)
            scale = xp.abs(value) + scale * slope
        return Reference({self.output.name: value}, {self.output.name: scale})

    def _elementwise(self, wide: Mapping[str, Any]) -> Reference:
        """Scale: |y| + sum over inputs of |x| |df/dx|, the derivative by central differences."""
        xp = self.xp
        placed = {spec.name: wide[spec.name] for spec in inputs_of(self.problem)}
        value = self._evaluator.value(self.problem.value, placed)
        scale = xp.abs(value)
        for name, x in placed.items():
            step = 1e-6 * xp.maximum(xp.abs(x), 1.0)
            up = self._evaluator.value(self.problem.value, {**placed, name: x + step})
            down = self._evaluator.value(self.problem.value, {**placed, name: x - step})
            scale = scale + xp.abs(x) * xp.abs(up - down) / (2.0 * step)
        return Reference({self.output.name: value}, {self.output.name: scale})

    def _from_text(self, wide: Mapping[str, Any], shape: Shape) -> Reference:
        assert self._written is not None
        found, scale = _told_by(self.problem, self._written, self.xp, wide)
        specs = outputs_of(self.problem)
        for spec, *pair in zip(specs, found, scale):
            for what, one in zip((spec.name, f"the scale of {spec.name}"), pair):
                extents = tuple(getattr(one, "shape", ()))
                if extents != dimensions(spec, shape):
                    wanted = f"[{', '.join(spec.shape)}] = {list(dimensions(spec, shape))}"
                    raise UserError(f"{_place(self.problem)}: {what} is {list(extents)}, must be {wanted}")
        names = [spec.name for spec in specs]
        return Reference(dict(zip(names, found)), dict(zip(names, scale)))


def _place(problem: Problem) -> str:
    return f"reference.py of {problem.kernel}"


def _told_by(
    problem: Problem, written: Callable[..., Any], xp: Any, inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the values and the scales that a person's reference gives; raises UserError where it fails."""
    with _in_peoples_words(problem):
        given = written(xp, **inputs)
    if not isinstance(given, tuple) or len(given) != 2:
        raise UserError(f"{_place(problem)}: reference returns {type(given).__name__}, must return (out, S)")
    found, scale = (one if isinstance(one, tuple) else (one,) for one in given)
    count = len(outputs_of(problem))
    if len(found) != count or len(scale) != count:
        raise UserError(f"{_place(problem)}: {len(found)} values and {len(scale)} scales for {count} outputs")
    return found, scale


@contextlib.contextmanager
def _in_peoples_words(problem: Problem) -> Iterator[None]:
    """Tell what goes wrong in a person's own text as their mistake, with its line."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 what they wrote may fail in any way
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == _place(problem)]
        line = f", line {lines[-1]}" if lines else ""
        text = " ".join(str(error).split())[:200]
        raise UserError(f"{_place(problem)}{line}: {type(error).__name__}: {text}") from None


def _written_reference(problem: Problem) -> Callable[..., Any] | None:
    """Compile the text of `reference.py`; raises UserError naming what is wrong with it."""
    if problem.reference is None:
        return None
    place = _place(problem)
    space: dict[str, Any] = {"__name__": "reference"}
    try:
        code = compile(problem.reference, place, "exec")
        with _in_peoples_words(problem):
            exec(code, space)
        found = space["reference"]
        inspect.signature(found).bind(None, **{spec.name: None for spec in inputs_of(problem)})
    except SyntaxError as error:
        raise UserError(f"{place}, line {error.lineno}: {error.msg}") from None
    except KeyError:
        raise UserError(f"{place}: no function reference(xp, **buffers); write one that returns (out, S)") from None
    except TypeError as error:
        raise UserError(f"{place}: reference does not take the kernel's inputs: {error}") from None
    assert callable(found)
    return found  # type: ignore[no-any-return]


def readable(problem: Problem) -> None:
    """Raise UserError where an expression of the problem has no value (sizes, scales)."""
    from cake_tui.backends._values import number

    for shape in problem.shapes:
        for spec in problem.buffers:
            try:
                dimensions(spec, shape)
                number(spec.scale, shape)
            except (ParseError, EvaluationError) as error:
                raise UserError(f"kernel {problem.kernel}: buffer {spec.name}: {error}") from None
