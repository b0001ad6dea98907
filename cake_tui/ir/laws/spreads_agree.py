"""A register tile's spread covers it exactly, by threads that are there, and statements agree on spreads.

Tiles held differently meet only through `convert`, shared memory or a reduction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from cake_tui.ir import program as ir
from cake_tui.ir.expr import Ref, refs_in
from cake_tui.ir.laws._law import Law
from cake_tui.ir.laws._subject import Subject
from cake_tui.ir.laws.tile_shapes import by, tile_of
from cake_tui.ir.program import Buffer
from cake_tui.ir.walk import Path
from cake_tui.model.diagnostic import Diagnostic

NAME = "spreads-agree"
LONGEST_RUN = 4  # elements, where a spread does not say: 16 bytes of f32


def check(subject: Subject) -> Iterator[Diagnostic]:
    """Yield spreads that do not fit their tile or their threads, and statements over different ones."""
    for index in range(len(subject.program.launches)):
        for path, buffer in subject.declares(index, "register"):
            yield from _covers(subject, path, buffer, subject.executors(path, buffer.owner))
    for path, statement in subject.sites:
        buffers = subject.buffers(path[0])
        match statement:
            case ir.Assign(target=target, value=value):
                yield from _same(subject, path, [target, *refs_in(value)], buffers)
            case ir.Copy(source=source, target=target, kind="copy"):
                yield from _same(subject, path, [target, source], buffers)
            case ir.Split(source=source, parts=parts):
                yield from _same(subject, path, [source, *parts], buffers)
            case ir.Contract():
                yield from _product(subject, path, statement, buffers)


def _covers(subject: Subject, path: Path, buffer: Buffer, threads: int) -> Iterator[Diagnostic]:
    shape = subject.shape(buffer)
    match buffer.spread:
        case ir.Threads(across, each, runs):
            counts = [subject.number(count) for count in across], [subject.number(count) for count in each]
            yield from _runs(subject, path, counts[1], [subject.number(count) for count in runs])
            covered = tuple(one * other for one, other in zip(*counts))
            if len(covered) != len(shape) or covered != shape:
                yield subject.refuse(
                    NAME,
                    path,
                    f"the spread holds {by(covered)} elements of {by(shape)}",
                    "threads times each = the tile",
                )
            asked = math.prod(counts[0])
            if asked > threads:
                yield subject.refuse(
                    NAME,
                    path,
                    f"a spread over {asked} threads, of which {threads} run this",
                    f"at most {threads}",
                    limit="threads",
                    asked=float(asked),
                    available=float(threads),
                    unit="threads",
                )
        case ir.Lanes(count):
            lanes = subject.number(count)
            if shape and shape[-1] % lanes:
                yield subject.refuse(
                    NAME,
                    path,
                    f"{shape[-1]} elements in lanes of {lanes}",
                    f"a last axis that {lanes} divides",
                    limit="lanes",
                    asked=float(lanes),
                    available=float(shape[-1]),
                    unit="elements",
                )


def _runs(subject: Subject, path: Path, each: list[int], runs: list[int]) -> Iterator[Diagnostic]:
    """Runs share out what a thread holds, on every axis."""
    if runs and (len(runs) != len(each) or any(run < 1 or count % run for run, count in zip(runs, each))):
        yield subject.refuse(
            NAME, path, f"runs of {by(tuple(runs))} in {by(tuple(each))} each", "runs that divide what each holds"
        )


def _dealt(subject: Subject, spread: ir.Threads) -> list[tuple[int, int, int]]:
    """Threads, elements of each and the length of a run, axis by axis."""
    counts = [[subject.number(count) for count in part] for part in (spread.threads, spread.each, spread.runs)]
    return list(zip(counts[0], counts[1], counts[2] or [math.gcd(each, LONGEST_RUN) for each in counts[1]]))


def _key(subject: Subject, buffer: Buffer) -> object:
    match buffer.spread:
        case ir.Threads() as spread:
            return "threads", buffer.order, *_dealt(subject, spread)
        case ir.Fragment(name):
            return "fragment", name
    return None


def _same(subject: Subject, path: Path, refs: list[Ref], buffers: dict[str, Buffer]) -> Iterator[Diagnostic]:
    """Whole register tiles of one statement are held alike."""
    tiles = [
        (ref, _key(subject, buffers[ref.buffer]))
        for ref in refs
        if buffers[ref.buffer].space == "register" and not ref.indices
    ]
    held = [(ref, key) for ref, key in tiles if key is not None and len(tile_of(subject, ref, buffers) or ()) > 0]
    for ref, key in held[1:]:
        first = held[0][0]
        same_shape = tile_of(subject, ref, buffers) == tile_of(subject, first, buffers)
        if same_shape and key != held[0][1]:
            yield subject.refuse(
                NAME,
                path,
                f"{first.buffer} and {ref.buffer} are spread differently",
                f"convert {ref.buffer} -> … first",
            )


def _product(subject: Subject, path: Path, contract: ir.Contract, buffers: dict[str, Buffer]) -> Iterator[Diagnostic]:
    acc = buffers[contract.target.buffer].spread
    sides = (buffers[contract.left.buffer].spread, buffers[contract.right.buffer].spread)
    fragments = contract.op in ("mma", "wgmma")
    if isinstance(acc, ir.Fragment) != fragments:
        needed = "a fragment of an mma" if fragments else "threads or lanes, not a fragment"
        yield subject.refuse(NAME, path, f"{contract.op} into {contract.target.buffer}", needed)
        return
    if isinstance(acc, ir.Fragment):
        shape = acc.name.split(".")[0]
        for ref, side, part in zip((contract.left, contract.right), sides, ("a", "b")):
            if buffers[ref.buffer].space != "register":
                continue
            if not isinstance(side, ir.Fragment) or side.name != f"{shape}.{part}":
                yield subject.refuse(
                    NAME, path, f"{ref.buffer} is no fragment {shape}.{part}", f"spread fragment {shape}.{part}"
                )
        return
    if not isinstance(acc, ir.Threads) or len(acc.threads) != 2:
        return
    for ref, side, axis in zip((contract.left, contract.right), sides, (0, 1)):
        if isinstance(side, ir.Threads) and len(side.threads) == 1 and not ref.indices:
            mine, theirs = _dealt(subject, side)[0], _dealt(subject, acc)[axis]
            if mine != theirs:
                yield subject.refuse(
                    NAME,
                    path,
                    f"{ref.buffer} is spread {mine[0]} threads, {mine[1]} each in runs of {mine[2]}",
                    f"as axis {axis} of {contract.target.buffer}: {theirs[0]} threads, {theirs[1]} each, "
                    f"runs {theirs[2]}",
                )


PLUGIN: Law = Law(NAME, check)
