"""Each law on its own: a legal program with one thing made wrong is refused by name, line and figures."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from cake_tui import registry
from cake_tui.ir.expr import parse as parse_expr
from cake_tui.ir.laws import LearnedLaw, table, verify
from cake_tui.ir.opaque import Opaque
from cake_tui.ir.text import parse, render
from tests.ir.devices import CPU, H200

PROGRAMS = Path(__file__).parents[1] / "programs"


class Case(msgspec.Struct, frozen=True):
    """One change of a program, the law that refuses it and what the diagnostic says; see law_cases.toml."""

    program: str
    law: str
    old: str
    new: str
    says: str = ""
    at: str = ""
    limit: tuple[str, float, float] | None = None
    nearest: str | None = None
    accumulation: str = "any"


CASES = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("law_cases.toml").read_text(encoding="utf-8"))["case"], tuple[Case, ...]
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.law}-{case.program}-{case.new.strip()[:24]}")
def test_one_thing_made_wrong_is_refused_by_its_law(case: Case) -> None:
    text = (PROGRAMS / f"{case.program}.cake").read_text(encoding="utf-8")
    assert case.old in text
    changed = parse(text.replace(case.old, case.new, 1))
    device = CPU if changed.target == "c" else H200
    found = verify(changed, device, accumulation=case.accumulation)
    mine = [diagnostic for diagnostic in found if diagnostic.law == case.law and case.says in diagnostic.text]
    assert mine, [diagnostic.text for diagnostic in found]
    lines = ["", *render(changed).splitlines()]
    assert all(diagnostic.needed and diagnostic.field and diagnostic.line for diagnostic in mine)
    if case.at:
        assert any(case.at in lines[diagnostic.line] for diagnostic in mine), [one.text for one in mine]
    if case.limit is not None:
        limits = [(one.limit, one.asked, one.available) for one in mine]
        assert case.limit in limits, limits
    if case.nearest is not None:
        assert case.nearest in [one.nearest for one in mine]


def test_every_law_of_the_table_has_a_case_that_it_refuses() -> None:
    assert {law.name for law in table()} == {case.law for case in CASES}


def test_a_law_is_a_file_named_as_the_law() -> None:
    assert {law.name for law in table()} == {name.replace("_", "-") for name in registry.names("ir/laws")}
    assert all(law.version >= 1 and law.origin == "built-in" for law in table())


def test_one_thread_that_arrives_for_its_warp_says_nothing_of_the_others() -> None:
    text = (PROGRAMS / "kmeans_pipeline.cake").read_text(encoding="utf-8")
    text = text.replace("free[S] arrivals 32", "free[S] arrivals 1")
    alone = verify(parse(text.replace("arrive free[t]", "arrive free[t] once a role")), H200)
    assert {one.law for one in alone} == {"slot-in-use", "stuck-wait"}
    for legal in ("arrive free[t] once a warp", "barrier warp\n      arrive free[t] once a role"):
        assert verify(parse(text.replace("arrive free[t]", legal)), H200) == ()


def test_persistent_blocks_of_run_time_sizes_are_taken_to_have_several_tiles() -> None:
    text = (PROGRAMS / "persistent_short.cake").read_text(encoding="utf-8").replace("persistent 4", "persistent 4000")
    late = text.replace("size M = 512 multiple 64", "size M runtime multiple 64 from 64 to 1048576")
    assert verify(parse(text), H200) == verify(parse(text.replace("      wait free[k]\n", "")), H200) == ()
    assert verify(parse(late), H200) == ()
    assert verify(parse(late.replace("      wait free[k]\n", "")), H200) != ()


def test_limits_that_a_device_does_not_state_are_not_checked() -> None:
    text = (PROGRAMS / "tma_tails.cake").read_text(encoding="utf-8").replace("const S = 4", "const S = 15")
    program = parse(text)
    silent = msgspec.structs.replace(H200, smem_per_block_bytes=0)
    assert verify(program, silent) == () == verify(program)
    assert verify(program, H200) != ()


def test_diagnostics_come_in_the_order_of_lines_and_are_the_same_each_time() -> None:
    text = (PROGRAMS / "tma_ring.cake").read_text(encoding="utf-8")
    for line in ("      wait free[k]\n", "      wait full_a[k]\n", "      arrive free[k] once a warp\n"):
        text = text.replace(line, "", 1)
    program = parse(text)
    found = verify(program, H200)
    assert len(found) > 1
    assert [one.line for one in found] == sorted(one.line for one in found)
    assert found == verify(program, H200)


def test_a_learned_law_is_data_and_says_so_where_its_condition_holds() -> None:
    law = LearnedLaw(
        "deep-rings-spill", "stages >= 3 and threads > 300", "pipeline_stage", "at most 2 stages", nearest="2"
    )
    program = parse((PROGRAMS / "tma_ring.cake").read_text(encoding="utf-8"))
    (found,) = verify(program, H200, learned=[law])
    assert (found.law, found.field, found.nearest) == ("deep-rings-spill", "pipeline_stage", "2")
    naive = parse((PROGRAMS / "naive.cake").read_text(encoding="utf-8"))
    assert verify(naive, H200, learned=[law, LearnedLaw("broken", "threads >", "x", "y")]) == ()


def test_an_opaque_program_is_held_to_the_launch_limits() -> None:
    program = Opaque(
        name="k", target="cuda", arch="sm_90a", source="", entry="k", sizes=(), knobs=(("BM", 64),), buffers=(),
        grid=(parse_expr("70000"), parse_expr("70000")), block=(parse_expr("BM*32"),), smem_bytes=parse_expr("300000"),
    )  # fmt: skip
    found = {one.limit: (one.asked, one.available) for one in verify(program, H200)}
    assert found == {
        "threads_per_block": (2048, 1024), "grid_y": (70000, 65535), "max_smem_limit": (300000, 232448),
    }  # fmt: skip
    assert (
        verify(msgspec.structs.replace(program, grid=(), block=(parse_expr("32"),), smem_bytes=parse_expr("0"))) == ()
    )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"grid": "0"}, "launch.grid.x"),
        ({"block": "BM - 64"}, "launch.block.x"),
        ({"block": "-1"}, "launch.block.x"),
        ({"smem_bytes": "0 - BM"}, "launch.smem_bytes"),
        ({"grid": "inf"}, "inf is not a whole number"),
        ({"block": "BM/0"}, "BM/0"),
        ({"grid": "1/3"}, "not a whole number"),
    ],
    ids=str,
)
def test_an_opaque_launch_of_nothing_or_of_no_number_is_refused(changed: dict[str, str], says: str) -> None:
    texts = {"grid": "1", "block": "32", "smem_bytes": "0", **changed}
    program = Opaque(
        name="k", target="cuda", arch="sm_90a", source="", entry="k", sizes=(), knobs=(("BM", 64),), buffers=(),
        grid=(parse_expr(texts["grid"]),), block=(parse_expr(texts["block"]),),
        smem_bytes=parse_expr(texts["smem_bytes"]),
    )  # fmt: skip
    assert any(says in one.text for one in verify(program, H200))
