"""Input sets of the check: the problem's own fills, all positive, whole numbers, one-hot; by seed alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from cake_tui.backends._values import number
from cake_tui.errors import UserError
from cake_tui.ir.families import (
    axes,
    contracted_axes,
    contracted_length,
    dimensions,
    inputs_of,
    largest_integer,
    operands,
)
from cake_tui.model.problem import BufferSpec, Problem, Shape

Array = npt.NDArray[Any]

SETS = ("integers", "one-hot", "default", "positive")
EXACT_SETS = ("integers", "one-hot")
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "u8": np.uint8}


def sets_of(problem: Problem) -> tuple[str, ...]:
    """Return the input sets of a problem: one-hot inputs make sense for contractions alone."""
    return SETS if operands(problem) else tuple(name for name in SETS if name != "one-hot")


def make_inputs(problem: Problem, shape: Shape, input_set: str, seed: int) -> dict[str, Array]:
    """Return one array a buffer that the kernel reads, of the buffer's dtype; the same for equal arguments."""
    return {
        spec.name: make_input(problem, shape, input_set, seed, position)
        for position, spec in enumerate(inputs_of(problem))
    }


def make_input(problem: Problem, shape: Shape, input_set: str, seed: int, position: int) -> Array:
    """Return the array of one of those buffers, by its position among them."""
    spec = inputs_of(problem)[position]
    if spec.dtype not in DTYPES:
        raise UserError(f"buffer {spec.name}: dtype {spec.dtype} has no reference here; known: {', '.join(DTYPES)}")
    random = np.random.Generator(np.random.SFC64([seed % 2**32, SETS.index(input_set), position]))
    return _fill(problem, spec, position, shape, input_set, random)


def _fill(
    problem: Problem, spec: BufferSpec, position: int, shape: Shape, input_set: str, random: np.random.Generator
) -> Array:
    size, dtype = dimensions(spec, shape), DTYPES[spec.dtype]
    if input_set == "default":
        return _default(spec, size, shape, random)
    if input_set == "positive":
        # Outputs near 1: the mean of a product is a quarter, that of one number a half.
        scaled = {"contraction": (1, 4.0), "reduction": (0, 2.0)}.get(problem.family or "")
        scale = scaled[1] / contracted_length(problem, shape) if scaled and position == scaled[0] else 1.0
        return _cast(random.random(size, dtype=np.float32) * np.float32(scale), dtype)
    length = contracted_length(problem, shape)
    if input_set == "one-hot" and operands(problem) and position == 0:
        return _one_hot(problem, spec, size, random).astype(dtype)
    # Every partial sum of integer products stays below 2^24, so each order of summation is exact; the values
    # are exact in bf16 too.
    most = 120 if input_set == "one-hot" else largest_integer(length)
    numbers = random.integers(1, most, size, dtype=np.int32, endpoint=True)  # no zeros: each product counts
    signs = 1 if spec.dtype == "u8" else random.integers(0, 1, size, dtype=np.int32, endpoint=True) * 2 - 1
    return (numbers * signs).astype(dtype)


def _default(spec: BufferSpec, size: tuple[int, ...], shape: Shape, random: np.random.Generator) -> Array:
    """Fill as the problem says; a fill that is a number is a constant."""
    scale = np.float32(number(spec.scale, shape))
    dtype = DTYPES[spec.dtype]
    match spec.fill:
        case "normal":
            values: Array = random.standard_normal(size, dtype=np.float32)
        case "uniform":
            values = random.random(size, dtype=np.float32)
        case "zeros":
            values = np.zeros(size, np.float32)
        case "ones":
            values = np.ones(size, np.float32)
        case "integers":
            values = random.integers(0 if spec.dtype == "u8" else -8, 8, size, endpoint=True).astype(np.float32)
        case _:
            values = np.full(size, number(spec.fill, shape), np.float32)
    return _cast(values * scale, dtype)


def _cast(values: Array, dtype: Any) -> Array:
    """Give the values their type; whole-number types take the nearest, spread over their small values."""
    if np.issubdtype(dtype, np.integer):
        values = np.rint(np.abs(values) * 16 if dtype is np.uint8 else values * 16).clip(-127, 127)
    cast: Array = values.astype(dtype, copy=False)
    return cast


def _one_hot(problem: Problem, spec: BufferSpec, size: tuple[int, ...], random: np.random.Generator) -> Array:
    """One 1 along the contracted axes for each element of the others, so that the output copies the other factor."""
    names = axes(spec)
    inner = [names.index(axis) for axis in contracted_axes(problem)]
    outer = [position for position in range(len(size)) if position not in inner]
    rows = math.prod(size[position] for position in outer)
    length = math.prod(size[position] for position in inner)
    flat = np.zeros((rows, length), np.float32)
    if rows and length:
        picks = np.concatenate([random.permutation(length) for _ in range(-(-rows // length))])[:rows]
        flat[np.arange(rows), picks] = 1.0
    ordered = flat.reshape([size[position] for position in (*outer, *inner)])
    return np.ascontiguousarray(ordered.transpose(np.argsort([*outer, *inner])))
