"""What a CUDA build tells without running: ptxas' words of several versions, instruction counts, code size."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_tui.backends.cuda import static

TWO_KERNELS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'main_' for 'sm_90a'
ptxas info    : Function properties for main_
    560 bytes stack frame, 1212 bytes spill stores, 1316 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 560 bytes cumulative stack size, 16640 bytes smem
ptxas info    : Compiling entry function 'combine' for 'sm_90a'
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers
"""
LISTING = """\
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0020*/                   LDS.64 R2, [R0] ;
        /*0030*/               @P0 FFMA R4, R5, R6, R7 ;
        /*0040*/                   FFMA R4, R5, R6, R7 ;
        /*0050*/                   STL [R1], R3 ;
        /*0060*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_0:
        /*0070*/              @UP0 UFSETP.GT P0, R1 ;
        /* 0x000fe20000000f00 */
"""


def test_several_kernels_give_the_most_registers_and_all_spills() -> None:
    facts = static.from_ptxas(TWO_KERNELS)
    assert (facts.registers, facts.stack_bytes, facts.barriers, facts.smem_static_bytes) == (40, 560, 1, 16640)
    assert (facts.spill_stores, facts.spill_loads) == (303, 329)


@pytest.mark.parametrize("log", ["", "nvcc warning : something", "\0\xff"])
def test_a_silent_log_leaves_everything_unknown(log: str) -> None:
    facts = static.from_ptxas(log)
    assert (facts.registers, facts.spill_stores, facts.smem_static_bytes, facts.barriers) == (None, None, None, None)


def test_instructions_are_counted_by_class_and_width() -> None:
    mix = dict(static.sass_mix(LISTING))
    assert mix == {"FFMA": 2, "LDG.128": 1, "LDS.64": 1, "STL": 1, "BAR": 1}
    assert static.sass_mix("") == ()


def test_multiply_adds_are_unknown_without_a_listing(tmp_path: Path) -> None:
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(b"\x7fELF\x02\x01" + b"\0" * 10)
    facts = static.with_code(static.from_ptxas(TWO_KERNELS), cubin, "")
    assert (facts.fma_instructions, facts.code_bytes, facts.sass) == (None, None, ())
    assert static.with_code(facts, cubin, LISTING).fma_instructions == 2
