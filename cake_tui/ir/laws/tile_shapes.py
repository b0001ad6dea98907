"""Both sides of a statement have the same tile: copies, maps, products and reductions agree on their extents."""

from __future__ import annotations

from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.analysis.forms import Unbounded
from cake_tui.ir.expr import All, Ref, Span, refs_in, show
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.program import Buffer
from cake_tui.model.diagnostic import Diagnostic

NAME = "tile-shapes"
Tile = tuple[int, ...]


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield statements whose tiles cannot be matched element by element."""
    buffers = {index: subject.buffers(index) for index in range(len(subject.program.launches))}
    for path, statement in subject.sites:
        for found, needed in _judge(subject, statement, buffers[path[0]]):
            yield subject.refuse(NAME, path, found, needed)


def tile_of(subject: Subject, ref: Ref, buffers: dict[str, Buffer]) -> Tile | None:
    """Return the extents of the axes that a reference leaves open; None where one depends on more than constants."""
    shape = buffers[ref.buffer].shape
    found: list[int] = []
    try:
        for axis, extent in enumerate(shape):
            index = ref.indices[axis] if axis < len(ref.indices) else All()
            if isinstance(index, All):
                found.append(subject.number(extent))
            elif isinstance(index, Span):
                found.append(subject.number(index.length))
    except Unbounded:
        return None
    return tuple(found)


def _judge(subject: Subject, statement: ir.Statement, buffers: dict[str, Buffer]) -> Iterator[tuple[str, str]]:
    def tile(ref: Ref) -> Tile | None:
        return tile_of(subject, ref, buffers)

    match statement:
        case ir.Copy(source, target) | ir.Convert(source, target):
            one, other = tile(source), tile(target)
            if one is not None and other is not None and _plain(one) != _plain(other):
                yield f"{show(source)} is {by(one)}, {show(target)} is {by(other)}", "tiles of the same extents"
        case ir.Split(source=source, parts=parts):
            for part in parts:
                if (
                    (one := tile(source)) is not None
                    and (other := tile(part)) is not None
                    and _plain(one) != _plain(other)
                ):
                    yield f"{show(source)} is {by(one)}, {show(part)} is {by(other)}", "parts as large as the source"
        case ir.Contract(target=target, left=left, right=right, op=op):
            yield from _product(op, tile(target), tile(left), tile(right))
        case ir.Assign(target=target, value=value) | ir.Atomic(target=target, value=value):
            whole = tile(target)
            for ref in refs_in(value):
                one = tile(ref)
                if whole is not None and one and not _fits(one, whole):
                    yield (
                        f"{show(ref)} is {by(one)}, {show(target)} is {by(whole)}",
                        "tiles that agree at their last axes",
                    )
        case ir.Reduce(source=source, axis=axis, target=target) | ir.Pick(source=source, axis=axis, values=target):
            yield from _folded(statement, axis, tile(source), tile(target), subject)


def _plain(tile: Tile) -> Tile:
    """The extents without axes of one element."""
    return tuple(extent for extent in tile if extent != 1)


def by(tile: Tile) -> str:
    """``64 x 16``, as a message shows a tile."""
    return " x ".join(str(extent) for extent in tile) or "one element"


def _fits(part: Tile, whole: Tile) -> bool:
    """Whether a part can be taken element by element at the last axes of the whole, ones repeated."""
    if _plain(part) == _plain(whole):
        return True
    tail = whole[len(whole) - len(part) :] if len(part) <= len(whole) else ()
    return len(tail) == len(part) and all(mine in (1, theirs) for mine, theirs in zip(part, tail))


def _product(op: str, target: Tile | None, left: Tile | None, right: Tile | None) -> Iterator[tuple[str, str]]:
    if target is None or left is None or right is None:
        return
    if op == "outer":
        made = _plain(left + right)
        if len(left) > 1 or len(right) > 1:
            made = _plain(left) + _plain(right)
        if made != _plain(target):
            yield f"{by(left)} times {by(right)} into {by(target)}", "m and n into m x n"
        return
    ends = (left[0], right[-1]) if len(left) == 2 == len(right) else None
    if ends is None or left[1] != right[0] or ends != target:
        yield f"{by(left)} times {by(right)} into {by(target)}", "m x k and k x n into m x n"


def _folded(
    statement: ir.Reduce | ir.Pick, axis: int, source: Tile | None, target: Tile | None, subject: Subject
) -> Iterator[tuple[str, str]]:
    if source is None or target is None:
        return
    if axis >= len(source):
        yield f"axis {axis} of {by(source)}", f"an axis below {len(source)}"
        return
    left = source[:axis] + source[axis + 1 :]
    if isinstance(statement, ir.Pick) and statement.op == "topk":
        left = (*left, subject.number(statement.count))
    if _plain(left) != _plain(target):
        yield f"{by(source)} without axis {axis} into {by(target)}", f"a target of {by(left)}"


PLUGIN: Law = Law(NAME, check)
