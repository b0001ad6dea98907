"""What the laws accept runs without a fault: programs with statements moved, doubled, guarded, looped, made persistent.

Wrong numbers are not counted: no law knows what a program is meant to compute. `--soak` draws twenty times as many.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import numpy as np

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import program as p
from cake_tui.ir import text
from cake_tui.ir.expr import Binary, Name, Number
from cake_tui.ir.laws import verify
from cake_tui.ir.program import Program, Statement
from cake_tui.ir.walk import Path, walk
from tests.emulator import Fault, emulate
from tests.emulator.compiling import NEEDED
from tests.ir.cuda_programs import CASES, parse, shape_of
from tests.ir.devices import H200
from tests.ir.surgery import replace

DRAWN = 3000
ORDERED = (
    "tma_ring", "tma_tails", "tma_store_epilogue", "persistent_short", "persistent_tiled", "kmeans_pipeline",
    "kmeans_roles", "cp_async_ring", "cp_async_two_groups", "cp_async_groups", "named_barriers", "double_buffered",
    "split_k", "tiled_shared",
)  # fmt: skip
KINDS = (p.Wait, p.WaitGroup, p.Arrive, p.Commit, p.Sync, p.Expect, p.Fence, p.Copy)
HEADS = (p.Declare, p.Barrier, p.WarpRole, p.Role)

pytestmark = NEEDED

Site = tuple[Path, Statement]


def test_what_the_laws_accept_has_no_fault(soak_share: float) -> None:
    accepted, found = 0, []
    for number in range(round(DRAWN * soak_share)):
        draw = random.Random(number)
        name = draw.choice(ORDERED)
        program = _changed(draw, parse(name, CASES[name].sizes))
        if verify(program, H200):
            continue
        accepted += 1
        fault = _fault(name, program)
        if fault is not None:
            found.append(f"{number}: {name}: {fault.kind}: {fault.where}\n{text.render(program)}")
    assert not found, "\n".join(found)
    assert accepted > DRAWN * soak_share / 20


def _fault(name: str, program: Program) -> Fault | None:
    case = CASES[name]
    shape = shape_of(program, case.sizes)
    inputs = case.inputs(np.random.default_rng(1))
    outputs = {
        key: value.astype(np.int32 if value.dtype == np.int32 else np.float32)
        for key, value in case.truth(inputs).items()
    }
    try:
        lowered = ir.lower(program, "cuda", program.arch, (shape,))
    except Ended:
        return None
    done = emulate(lowered, shape, inputs, outputs)
    return done if isinstance(done, Fault) else None


def _changed(draw: random.Random, program: Program) -> Program:
    """Change one statement that orders or moves; half of the programs walk tiles besides."""
    site = draw.choice([one for one in walk(program) if isinstance(one[1], KINDS)])
    changed = draw.choice((_gone, _swapped, _doubled, _guarded, _looped, _counted))(draw, program, site)
    if draw.random() < 0.5:
        launches = [
            one if one.cluster else msgspec.structs.replace(one, persistent=Number(draw.choice((1, 2))))
            for one in changed.launches
        ]
        changed = msgspec.structs.replace(changed, launches=tuple(launches))
    return text.parse(text.render(changed))


def _gone(draw: random.Random, program: Program, site: Site) -> Program:
    return replace(program, site[0], ())


def _doubled(draw: random.Random, program: Program, site: Site) -> Program:
    return replace(program, site[0], (site[1], site[1]))


def _swapped(draw: random.Random, program: Program, site: Site) -> Program:
    path, statement = site
    behind = (*path[:-1], path[-1] + 1)
    other = dict(walk(program)).get(behind)
    if other is None or isinstance(other, HEADS):
        return _gone(draw, program, site)
    return replace(replace(program, path, (other,)), behind, (statement,))


def _guarded(draw: random.Random, program: Program, site: Site) -> Program:
    """In a branch on a loop around it, or on a block where there is none."""
    path, statement = site
    loops = [one.variable for end in range(2, len(path)) if isinstance(one := dict(walk(program))[path[:end]], p.For)]
    names = loops or [axis.name for axis in program.launches[path[0]].axes]
    condition = Binary(draw.choice(("<", "!=", "==", ">")), Name(draw.choice(names)), Number(draw.randint(0, 5)))
    return replace(program, path, (p.If(condition, (statement,)),))


def _looped(draw: random.Random, program: Program, site: Site) -> Program:
    return replace(program, site[0], (p.For("again", Number(0), Number(draw.choice((0, 2))), (site[1],)),))


def _counted(draw: random.Random, program: Program, site: Site) -> Program:
    """Another count of what a statement waits for, arrives at, announces or names."""
    path, statement = site
    other: Callable[..., Statement] = lambda **fields: msgspec.structs.replace(statement, **fields)  # noqa: E731
    match statement:
        case p.WaitGroup():
            return replace(program, path, (other(pending=Number(draw.randint(0, 2))),))
        case p.Wait(slot=slot):
            return replace(program, path, (other(slot=Binary("+", slot, Number(1))),))
        case p.Arrive():
            return replace(program, path, (other(once=draw.choice(("thread", "warp", "role"))),))
        case p.Expect(bytes=size):
            return replace(program, path, (other(bytes=Binary(draw.choice("+-"), size, Number(16))),))
        case p.Sync():
            return replace(program, path, (other(scope="warp", number=0, threads=None),))
    return _doubled(draw, program, site)
