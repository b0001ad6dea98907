"""Vector accesses are aligned: pointer, row pitch with padding, first element, length and each thread's share.

A vector of V elements needs V times the element's bytes everywhere it can begin. Padding of one float therefore
forbids 16-byte shared accesses: the second row starts 4 bytes off. On ``c`` vector loads need no alignment.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.accesses import Accessing
from cake_tui.ir.expr import show
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import DTYPE_BYTES, Buffer, inner_axis
from cake_tui.model.diagnostic import Diagnostic

NAME = "alignment"
WIDEST = 16  # bytes of one load or store instruction
CP_ASYNC = (4, 8, 16)
SHARED_ALIGN = 16  # what lowering gives every shared buffer
WORKSPACE_ALIGN = 64


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield vector accesses that can begin off their alignment, or that no instruction moves."""
    if subject.program.target != "cuda":
        return
    for path, statement in subject.sites:
        if isinstance(statement, ir.Copy) and statement.kind == "async_copy":
            size = _vector(subject, statement) * DTYPE_BYTES[subject.buffers(path[0])[statement.source.buffer].dtype]
            if size not in CP_ASYNC:
                fits = min(CP_ASYNC, key=lambda legal: abs(legal - size))
                yield subject.refuse(
                    NAME,
                    path,
                    f"cp.async of {size} bytes",
                    "4, 8 or 16 bytes",
                    nearest=str(fits),
                    limit="cp_async_bytes",
                    asked=float(size),
                    available=16.0,
                    unit="bytes",
                )
    for access in subject.accesses:
        vector = _vector(subject, access.statement)
        if vector > 1:
            yield from _judge(subject, access, vector)


def _vector(subject: Subject, statement: ir.Statement) -> int:
    vector = getattr(statement, "vector", None)
    return 1 if vector is None else subject.number(vector)


def _judge(subject: Subject, access: Accessing, vector: int) -> Iterator[Diagnostic]:
    buffer = access.buffer
    if buffer.space == "register":
        yield from _share(subject, access, vector)
        return
    if not access.axes or not _moves(access):
        return
    width = vector * DTYPE_BYTES[buffer.dtype]
    inner = inner_axis(buffer)
    what = f"{show(access.ref)} with vector {vector}"
    if width > WIDEST:
        yield _off(subject, access, f"{what} is {width} bytes", f"at most {WIDEST}", width, WIDEST)
        return
    align = alignment_of(buffer)
    if align % width:
        yield _off(subject, access, f"{buffer.name} is aligned to {align} bytes", f"align {width}", width, align)
    pitch = (subject.shape(buffer)[inner] + subject.number(buffer.pad)) * DTYPE_BYTES[buffer.dtype]
    rows = access.axes[inner].extent + subject.number(buffer.pad)
    if len(buffer.shape) > 1 and rows.divisor() % vector:
        pad = subject.number(buffer.pad)
        fits = -(-pad // vector) * vector
        yield _off(
            subject,
            access,
            f"a row of {buffer.name} takes {pitch} bytes (pad {pad})",
            f"a multiple of {width}",
            width,
            pitch & -pitch,
            nearest=f"pad {fits}" if pad else None,
        )
    reach = access.axes[inner]
    if reach.start is not None and reach.start.divisor() % vector:
        yield _off(
            subject, access, f"{what} begins at {reach.start}", f"a first element that {vector} divides", vector, 1
        )
    if reach.length.divisor() % vector and not (reach.length.value == 1 and _named(access)):
        yield _off(
            subject, access, f"{what} is {reach.length} elements long", f"a length that {vector} divides", vector, 1
        )


def _moves(access: Accessing) -> bool:
    """Whether the vector is about this reference: a copy's two sides, a map's target and its reads of many elements."""
    statement = access.statement
    if isinstance(statement, ir.Copy):
        return True
    if access.mode == "write":
        return True
    inner = access.axes[-1]
    return inner.length.value != 1


def _named(access: Accessing) -> bool:
    """Whether an index runs with a named coordinate: the target's span says how long it is."""
    return isinstance(access.statement, ir.Assign) and access.mode == "read"


def alignment_of(buffer: Buffer) -> int:
    """Return the bytes that a buffer's first element is aligned to."""
    least = DTYPE_BYTES[buffer.dtype]
    if buffer.align:
        return buffer.align
    return {"shared": SHARED_ALIGN, "workspace": WORKSPACE_ALIGN}.get(buffer.space, least)


def _share(subject: Subject, access: Accessing, vector: int) -> Iterator[Diagnostic]:
    spread = access.buffer.spread
    if isinstance(access.statement, ir.Copy) and isinstance(spread, ir.Threads):
        each = subject.number((spread.runs or spread.each)[inner_axis(access.buffer)])
        if each % vector:
            yield _off(
                subject,
                access,
                f"a thread holds {each} elements of {access.buffer.name} in a row",
                f"a multiple of {vector}",
                vector,
                each,
            )


def _off(
    subject: Subject, access: Accessing, found: str, needed: str, asked: int, available: int, nearest: str | None = None
) -> Diagnostic:
    return subject.refuse(
        NAME,
        access.path,
        found,
        needed,
        limit="alignment",
        asked=float(asked),
        available=float(available),
        unit="bytes",
        nearest=nearest,
    )


PLUGIN: Law = Law(NAME, check)
