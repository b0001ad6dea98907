"""Bulk copies move dense boxes between global and shared memory, as the tensor map can describe them.

Boxes have at most 5 axes of at most 256 elements; the innermost is contiguous, a multiple of 16 bytes, and no longer
than the swizzle; global rows are 16 bytes apart or a multiple; shared tiles are dense, they and their slots aligned to
the swizzle's atom. Loads complete on a barrier, stores with a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import All, Span
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.laws.alignment import alignment_of
from cake_tui.ir.laws.tile_shapes import tile_of
from cake_tui.ir.program import DTYPE_BYTES, Buffer
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "tma-boxes"
ROW = 16
LONGEST = 256
MOST_AXES = 5
ATOM = {0: 128, 32: 256, 64: 512, 128: 1024}  # bytes: alignment of a shared tile by its swizzle
GLOBAL = ("param", "workspace")


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield bulk copies that no tensor map describes."""
    for path, statement in subject.sites:
        if isinstance(statement, ir.Copy) and statement.kind == "tma_copy":
            yield from _judge(subject, path, statement)


def _judge(subject: Subject, path: Path, copy: ir.Copy) -> Iterator[Diagnostic]:
    buffers = subject.buffers(path[0])
    source, target = buffers[copy.source.buffer], buffers[copy.target.buffer]
    loads = source.space in GLOBAL and target.space == "shared"
    stores = source.space == "shared" and target.space in GLOBAL
    if not loads and not stores:
        yield subject.refuse(NAME, path, f"from {source.space} to {target.space}", "between global and shared memory")
        return
    completes = copy.completes.kind if copy.completes is not None else "nothing"
    if completes != ("barrier" if loads else "group"):
        needed = "a load completes on a barrier" if loads else "a store completes with a group"
        yield subject.refuse(NAME, path, f"it completes on a {completes}", needed)
    far, near = (source, target) if loads else (target, source)
    box = tile_of(subject, copy.source if loads else copy.target, buffers) or ()
    for found, needed, asked, available in (*_global(subject, far, box), *_shared(subject, near, copy, loads, box)):
        yield subject.refuse(
            NAME, path, found, needed, limit="tma", asked=float(asked), available=float(available), unit="bytes"
        )


def _global(subject: Subject, buffer: Buffer, box: tuple[int, ...]) -> Iterator[tuple[str, str, int, int]]:
    size = DTYPE_BYTES[buffer.dtype]
    shape = subject.shape(buffer)
    if len(shape) > MOST_AXES:
        yield f"{buffer.name} has {len(shape)} axes", f"at most {MOST_AXES}", len(shape), MOST_AXES
    if alignment_of(buffer) % ROW:
        yield f"{buffer.name} is aligned to {alignment_of(buffer)} bytes", f"align {ROW}", ROW, alignment_of(buffer)
    pitch = subject.row_elements(buffer) * size
    if len(shape) > 1 and pitch % ROW:
        yield f"rows of {buffer.name} are {pitch} bytes apart", f"a multiple of {ROW} bytes", ROW, pitch & -pitch
    for extent in box:
        if extent > LONGEST:
            yield f"a box of {extent} elements on one axis", f"at most {LONGEST}", extent, LONGEST
    if box and box[-1] * size % ROW:
        yield f"the box's rows are {box[-1] * size} bytes", f"a multiple of {ROW} bytes", ROW, box[-1] * size


def _shared(
    subject: Subject, buffer: Buffer, copy: ir.Copy, loads: bool, box: tuple[int, ...]
) -> Iterator[tuple[str, str, int, int]]:
    size = DTYPE_BYTES[buffer.dtype]
    ref = copy.target if loads else copy.source
    pad = subject.number(buffer.pad)
    if pad:
        yield f"{buffer.name} has pad {pad}", "a dense tile: pad 0", pad * size, 0
    atom = ATOM.get(buffer.swizzle)
    if atom is None:
        yield f"{buffer.name} has swizzle {buffer.swizzle}", "swizzle 32, 64 or 128", buffer.swizzle, 128
        return
    if max(buffer.align, 16) % atom:
        yield f"{buffer.name} is aligned to {max(buffer.align, 16)} bytes", f"align {atom}", atom, buffer.align
    if buffer.swizzle and box and box[-1] * size > buffer.swizzle:
        yield (
            f"the box's rows are {box[-1] * size} bytes",
            f"at most the swizzle, {buffer.swizzle}",
            box[-1] * size,
            buffer.swizzle,
        )
    shape = subject.shape(buffer)
    for axis, index in enumerate(ref.indices):
        apart = math.prod(shape[axis + 1 :]) * size
        if not isinstance(index, Span | All) and shape[axis] > 1 and apart % atom:
            yield f"slots of {buffer.name} are {apart} bytes apart", f"a multiple of {atom}", atom, apart & -apart
    spans = [(axis, subject.number(index.length)) for axis, index in enumerate(ref.indices) if isinstance(index, Span)]
    for axis, length in spans:
        if axis > 0 and length != shape[axis]:
            yield (
                f"{length} of {shape[axis]} elements on axis {axis} of {buffer.name}",
                "the whole tile of a slot",
                length,
                shape[axis],
            )


PLUGIN: Law = Law(NAME, check)
