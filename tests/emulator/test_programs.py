"""What orders the programs of tests/programs is needed: without it there are races, deadlocks, wrong numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cake_tui import ir
from cake_tui.errors import Ended
from cake_tui.ir import text
from cake_tui.ir.laws import verify
from cake_tui.ir.program import Program
from tests.emulator import Fault, emulate
from tests.emulator.compiling import NEEDED
from tests.ir.cuda_programs import CASES, parse, shape_of
from tests.ir.mutants import mutants

# Barriers that the laws ask for, because no program says which thread has which element, and that the rendered kernel
# could do without, because the thread that writes an element is the one that reads it.
SAME_THREAD = {("cp_async_groups", "(0, 4, 1) barrier"), ("tree_reduction", "(0, 22) barrier")}

pytestmark = NEEDED


def _judge(name: str, program: Program) -> Fault | None:
    case = CASES[name]
    shape = shape_of(program, case.sizes)
    inputs = case.inputs(np.random.default_rng(1))
    truth = case.truth(inputs)
    outputs = {key: value.astype(np.int32 if value.dtype == np.int32 else np.float32) for key, value in truth.items()}
    found = emulate(ir.lower(program, "cuda", program.arch, (shape,)), shape, inputs, outputs)
    if isinstance(found, Fault):
        return found
    wrong = [key for key, value in truth.items() if not np.allclose(found[key], value, rtol=1e-4, atol=1e-3)]
    return Fault("wrong answer", ", ".join(wrong)) if wrong else None


@pytest.mark.parametrize("name", CASES)
def test_each_wait_arrive_commit_expect_and_barrier_is_needed(name: str) -> None:
    program = parse(name, CASES[name].sizes)
    assert _judge(name, program) is None
    missed = set()
    for mutant in mutants(program):
        # At these sizes some pipelines are no longer than their rings, and need less than the laws ask of all sizes.
        if mutant.kind in ("index", "where") or not verify(mutant.program):
            continue
        try:
            if _judge(name, mutant.program) is None:
                missed.add((name, mutant.what))
        except Ended:  # lowering sees it too
            continue
    assert missed == {known for known in SAME_THREAD if known[0] == name}


@pytest.mark.parametrize("name", ["tma_ring", "tma_tails", "tma_store_epilogue", "persistent_gemm"])
def test_other_bytes_than_are_copied_are_found(name: str) -> None:
    program = parse(name, CASES[name].sizes)
    written = text.render(program)
    expected = re.findall(r"expect .* bytes .*", written)
    assert expected
    for line in expected:
        more = _judge(name, text.parse(written.replace(line, f"{line} + 16")))
        assert more is not None
        assert more.kind == "deadlock"
        assert "lacks 16 bytes" in more.where
        fewer = _judge(name, text.parse(written.replace(line, f"{line} - 16")))
        assert fewer is not None
        assert fewer.kind in ("deadlock", "bytes", "race")
