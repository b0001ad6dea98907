"""What analyses share between schedules: only what none of them can tell apart, and nothing else changes."""

from __future__ import annotations

import random

import msgspec
import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import laws
from cake_tui.ir.analysis import accesses, coverage, runs
from cake_tui.ir.analysis.seen import seen
from cake_tui.ir.expr import Number
from cake_tui.ir.program import Program
from cake_tui.ir.text import parse
from cake_tui.model.device import Device
from cake_tui.model.schedule import Schedule
from tests.ir.contractions import matmul
from tests.ir.devices import CPU, H200

PROBLEM = matmul(128, 96, 64)
SCHEDULES = 12


def forget() -> None:
    for remembered in (accesses._accesses_of, coverage.reached, runs._clashes):
        remembered.cache_clear()


def drawn(structure: str, device: Device) -> list[Program]:
    """Programs of neighbouring schedules: each differs from the one before in one knob."""
    rng = random.Random(structure)
    knobs = ir.knobs(PROBLEM, structure, device.target, device)
    values = {knob.name: knob.default for knob in knobs}
    programs = []
    for _ in range(SCHEDULES):
        for runtime in (False, True):
            try:
                made = ir.build(PROBLEM, Schedule.of(structure, values), device.target, device, runtime_sizes=runtime)
            except Ended:
                continue
            assert isinstance(made, Program)
            programs.append(made)
        if knobs:
            knob = rng.choice(knobs)
            values[knob.name] = rng.choice(knob.values)
    return programs


def judged(program: Program, device: Device) -> object:
    """Everything that the analyses say of a program."""
    reach = [
        (access.axes, access.guards, coverage.reached(access), access.scope.bounds)
        for access in accesses.accesses_of(program)
    ]
    return laws.verify(program, device), reach, laws.Subject(program, device).clashes


@pytest.mark.parametrize("device", [CPU, H200], ids=lambda device: device.target)
def test_a_program_is_judged_alike_whatever_was_judged_before_it(device: Device) -> None:
    for structure in ir.structures(PROBLEM, device.target):
        programs = drawn(structure, device)
        forget()
        after_others = [judged(program, device) for program in programs]
        for program, found in zip(programs, after_others, strict=True):
            forget()
            assert judged(program, device) == found, structure


TILES = """program p ir 1 target c x86-64-v4
  size N = 64
  const tile = {tile} of 8 16
  const unroll = {unroll} of 1 2
  const pad = {pad} of 0 4
  param x: f32[N] align 4
  param y: f32[N] out align 4
launch main grid b = N/16
  shared part: f32[2, tile] align 64 pad pad
  for i in 0..16/tile unroll unroll:
    copy x[b*16 + i*tile +: tile] -> part[0, 0 +: tile]
    y[b*16 + i*tile +: tile] = part[0, 0 +: tile]
"""


def tiles(tile: int = 8, unroll: int = 1, pad: int = 0) -> Program:
    return parse(TILES.format(tile=tile, unroll=unroll, pad=pad))


def test_only_unroll_and_padding_are_left_out() -> None:
    program = tiles()
    launch = program.launches[0]
    assert seen(program, launch) == seen(tiles(unroll=2, pad=4), launch)
    assert seen(program, launch) != seen(tiles(tile=16), launch)
    wider = msgspec.structs.replace(program, buffers=tuple(
        msgspec.structs.replace(buffer, shape=(Number(32),)) for buffer in program.buffers
    ))  # fmt: skip
    assert seen(program, launch) != seen(wider, launch)


def test_schedules_that_differ_in_unroll_alone_share_their_accesses_and_others_do_not() -> None:
    first, same, other = (
        accesses.accesses_of(program) for program in (tiles(), tiles(unroll=2, pad=4), tiles(tile=16))
    )
    assert all(one is two for one, two in zip(first, same, strict=True))
    assert not any(one is two for one, two in zip(first, other, strict=True))
    assert laws.verify(tiles()) == laws.verify(tiles(unroll=2)) == ()
    out = TILES.format(tile=8, unroll=1, pad=0).replace("-> part[0,", "-> part[2,")
    assert [one.law for one in laws.verify(parse(out))][:1] == ["bounds"]
