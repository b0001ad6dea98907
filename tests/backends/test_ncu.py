"""Nsight Compute's CSV, whatever stands around it: units, separators, missing metrics, several launches, both pages."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_tui.backends.cuda import ncu, ncu_target
from cake_tui.backends.cuda.ncu import DRAM, LATENCY, STALL, TIME, Ncu, number, parse, profile_of, stalls
from cake_tui.errors import UserError
from cake_tui.model.jobs import Inspect, Subject
from cake_tui.model.lowered import Argument, Launch, LaunchPlan, Lowered
from cake_tui.model.problem import Shape
from tests.matmul import MATMUL
from tests.menu.sample import GPU

SMALL, LARGE = Shape((("M", 8), ("N", 8), ("K", 8))), MATMUL.shapes[-1]
ABOUT = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size")


def table(rows: list[list[str]]) -> str:
    """Quote every cell, as ncu does."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue()


def raw(metrics: dict[str, tuple[str, list[str]]], kernels: list[str]) -> str:
    """A raw page: a column a metric, a row of units, a row a launch."""
    rows = [[*ABOUT, *metrics], [*("" for _ in ABOUT), *(unit for unit, _ in metrics.values())]]
    for at, kernel in enumerate(kernels):
        about = [str(at), "77", "python3", "127.0.0.1", kernel, "1", "13", "(256, 1, 1)", "(1056, 1, 1)"]
        rows.append([*about, *(cells[at] for _, cells in metrics.values())])
    return table(rows)


# -- cells and units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "unit", "value"),
    [
        ("152.4", "us", 152.4e-6), ("152,400", "ns", 152.4e-6), ("1,234,567.5", "byte", 1234567.5),
        ("3.5", "Gbyte", 3.5e9),
        ("1.2", "Mbyte/s", 1.2e6), ("91.25", "%", 91.25), ("0", "", 0.0), ("1.755", "cycle/nsecond", 1.755),
        ("42", "register/thread", 42.0), ("7", "inst", 7.0), ("1.98", "Ghz", 1.98e9), ("12", "msecond", 0.012),
        (" 5 ", "second", 5.0), ("1e3", "", 1000.0), ("-0.5", "%", -0.5),
        ("n/a", "%", None), ("", "us", None), ("nan", "%", None), ("inf", "", None), ("(!) n/a", "", None),
        ("1_000", "", None), ("1,23", "", None), ("text", "byte", None),
    ],
)  # fmt: skip
def test_cells_are_read_in_base_units(cell: str, unit: str, value: float | None) -> None:
    assert number(cell, unit) == (None if value is None else pytest.approx(value))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_grouped_thousands_are_the_same_number(value: float) -> None:
    assert number(f"{value:,.6f}", "") == pytest.approx(value, abs=1e-6)


# -- tables --------------------------------------------------------------------------------------------------


def test_raw_page_gives_a_row_a_launch_whatever_stands_around_it() -> None:
    page = raw(
        {TIME: ("ns", ["1,000", "2,500"]), DRAM: ("%", ["12.5", "n/a"])}, ["first", "second(const float *, int)"]
    )
    noise = "==PROF== Connected to process 77\nhello from the program, 1\n"
    for text in (page, noise + page, "\ufeff" + page, noise + page + "==PROF== Disconnected from process 77\n"):
        rows = parse(text)
        assert [row.kernel for row in rows] == ["first", "second(const float *, int)"]
        assert [row.values.get(TIME) for row in rows] == [pytest.approx(1e-6), pytest.approx(2.5e-6)]
        assert [row.values.get(DRAM) for row in rows] == [12.5, None]


def test_long_page_gives_the_same() -> None:
    head = ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    rows = [head, ["0", "first", "", TIME, "usecond", "1.5"], ["0", "first", "", DRAM, "%", "44.1"],
            ["1", "second", "", TIME, "usecond", "1,500.25"]]  # fmt: skip
    found = parse(table(rows))
    assert [(row.kernel, row.values) for row in found] == [
        ("first", {TIME: pytest.approx(1.5e-6), DRAM: 44.1}),
        ("second", {TIME: pytest.approx(1500.25e-6)}),
    ]


def test_unit_behind_the_name_is_understood() -> None:
    text = table([["ID", "Kernel Name", f"{TIME} [us]"], ["0", "k", "2.0"]])
    assert parse(text)[0].values == {TIME: pytest.approx(2e-6)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "==ERROR== nothing",
        "\0\0\0",
        '"ID"',
        '"ID","Kernel Name"\n',
        '"ID","Kernel Name"\n"","unit"\n',
        '"ID"\n"x"\n',
    ],
)
def test_what_is_no_table_is_no_row(text: str) -> None:
    assert parse(text) == []


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    parse(text)
    parse('"ID","Kernel Name","x"\n' + text)


# -- profiles ------------------------------------------------------------------------------------------------


def test_stalls_are_shares_of_all_waiting_without_the_cycle_that_issues() -> None:
    values = {LATENCY: 11.0, STALL.format("long_scoreboard"): 6.0, STALL.format("wait"): 2.0}
    assert stalls(values) == (("long_scoreboard", 0.6), ("wait", 0.2), ("other", pytest.approx(0.2)))
    assert stalls({LATENCY: 11.0}) == ()
    assert stalls({STALL.format("wait"): 2.0}) == ()


def test_a_profile_holds_what_was_counted_and_nothing_else() -> None:
    counted = {form.format("ld"): ("", [value]) for form, value in
               ((ncu.CONFLICTS, "30"), (ncu.WAVEFRONTS, "40"), (ncu.SECTORS, "0"))}  # fmt: skip
    [row] = parse(raw({DRAM: ("%", ["91.0"]), **counted}, ["k"]))
    found = profile_of(row)
    assert (found.source, found.memory_throughput_pct, found.shared_mem_bank_conflicts) == ("ncu", 91.0, 30)
    assert found.bank_conflict_share == pytest.approx(0.75)
    assert found.sectors_per_load is None  # there is no such load
    assert found.sm_occupancy_pct is None
    assert found.stalls == ()


def test_the_limit_that_lets_the_fewest_blocks_in_is_named() -> None:
    limits = dict(zip(ncu.LIMITERS, ("2", "8", "6", "32")))
    [row] = parse(raw({name: ("block", [value]) for name, value in limits.items()}, ["k"]))
    assert profile_of(row).occupancy_limiter == "registers"


def test_what_an_h200_said_of_a_tile_without_and_with_a_pad() -> None:
    # Columns of a real page. Eight lanes on one bank: seven of eight passes are repeats.
    text = (Path(__file__).parents[1] / "data" / "counters" / "ncu_raw.txt").read_text(encoding="utf-8")
    without, padded = (profile_of(row) for row in parse(text))
    assert (without.bank_conflict_share, without.shared_mem_bank_conflicts) == (0.875, 2 * 60_555_264)
    assert (padded.bank_conflict_share, padded.shared_mem_bank_conflicts) == (0.0, 0)
    assert (without.profiled_us, padded.profiled_us) == (pytest.approx(532.32), pytest.approx(70.432))
    assert (without.passes, without.blocks, without.threads, without.waves) == (6, 1056, 256, 1.0)
    assert (without.occupancy_limiter, without.smem_static_bytes, padded.smem_static_bytes) == ("threads", 4096, 4224)
    assert without.stalls[0] == ("mio_throttle", pytest.approx(93.38 / 121.86))


# -- an inspector --------------------------------------------------------------------------------------------


def job(*entries: str, tool: str = "ncu") -> Inspect:
    plans = tuple(
        LaunchPlan(shape, tuple(Launch(entry, (1, 1, 1), (Argument("buffer", "a"),)) for entry in entries))
        for shape in (SMALL, LARGE)
    )
    subject = Subject("ab" * 32, Lowered("cuda", "sm_90a", "", (), plans))
    return Inspect(MATMUL, tool, ((4, subject), (9, subject)), 1)  # type: ignore[arg-type]


def left(folder: Path, made: list[ncu_target.Made], text: str) -> None:
    (folder / ncu_target.MADE).write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in made))
    (folder / ncu.COUNTERS).write_text(text, encoding="utf-8")


def test_rows_find_their_candidate_and_the_longest_launch_counts(tmp_path: Path) -> None:
    made = [ncu_target.Made(number, entry) for number in (4, 9) for entry in ("main_", "combine")]
    left(tmp_path, made, raw({TIME: ("us", ["1", "5", "7", "2"]), DRAM: ("%", ["10", "20", "30", "40"])},
                             ["main_", "combine", "main_", "combine"]))  # fmt: skip
    found = Ncu().read(job("main_", "combine"), tmp_path, "", timed_out=False)
    told = {one.candidate: one.profile for one in found.seen}
    assert {number: profile and profile.memory_throughput_pct for number, profile in told.items()} == {4: 20.0, 9: 30.0}


def test_a_candidate_that_could_not_run_says_why_and_the_others_count(tmp_path: Path) -> None:
    made = [ncu_target.Made(4, failed="k: 1056 threads > 1024"), ncu_target.Made(9, "k")]
    left(tmp_path, made, raw({DRAM: ("%", ["30"])}, ["k"]) + '{"torn')
    found = Ncu().read(job("k"), tmp_path, "", timed_out=False)
    told = {one.candidate: (one.profile is not None, one.failed) for one in found.seen}
    assert told == {4: (False, "k: 1056 threads > 1024"), 9: (True, "")}
    assert found.refused == ""


def test_counters_without_a_launch_of_ours_belong_to_nobody(tmp_path: Path) -> None:
    left(tmp_path, [ncu_target.Made(4, "k")], raw({DRAM: ("%", ["30"])}, ["somebody_elses"]))
    found = Ncu().read(job("k"), tmp_path, "", timed_out=False)
    assert all(one.profile is None for one in found.seen)


@pytest.mark.parametrize(
    ("output", "timed_out", "words"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", False, ("ERR_NVGPUCTRPERM", "NVreg")),
        ("==ERROR== The application returned an error code (11).", False, ("returned an error code", "")),
        ("", True, ("too long", "smaller")),
        ("", False, ("nothing", "")),
    ],
)
def test_a_call_without_a_table_says_what_the_tool_said(
    tmp_path: Path, output: str, timed_out: bool, words: tuple[str, str]
) -> None:
    found = Ncu().read(job("k"), tmp_path, output, timed_out=timed_out)
    assert words[0] in found.refused
    assert words[1] in found.cure


def test_a_metric_that_this_ncu_does_not_know_is_left_out_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ncu").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = Ncu()
    first = ",".join(tool.command(job("k"), tmp_path, GPU, tmp_path))
    assert LATENCY in first
    tool.read(job("k"), tmp_path, f"==ERROR== Failed to find metric {LATENCY}\n", timed_out=False)
    assert LATENCY not in ",".join(tool.command(job("k"), tmp_path, GPU, tmp_path))
    order = msgspec.json.decode((tmp_path / ncu_target.ORDER).read_bytes(), type=ncu_target.Order)
    assert [(number, plan.shape) for number, plan, _ in order.candidates] == [(4, LARGE), (9, LARGE)]
    assert order.device == GPU.uuid
    ncu_target.write_order(job("k", tool="memcheck"), tmp_path, GPU, tmp_path)
    order = msgspec.json.decode((tmp_path / ncu_target.ORDER).read_bytes(), type=ncu_target.Order)
    assert {plan.shape for _, plan, _ in order.candidates} == {SMALL}


def test_without_ncu_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu, "find_tool", lambda name: None)
    with pytest.raises(UserError, match="no ncu on this machine; install Nsight Compute"):
        Ncu().command(job("k"), tmp_path, GPU, tmp_path)
