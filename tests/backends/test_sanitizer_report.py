"""What compute-sanitizer prints, read: counts, the first findings in its words, and reports that are none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cake_tui.backends.cuda import ncu_target
from cake_tui.backends.cuda.sanitizer import REPORT, Sanitizer
from cake_tui.model.jobs import Inspected
from tests.backends.test_ncu import job

INVALID = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at kernel+0x1f0
=========     by thread (31,7,0) in block (1,0,0)
=========     Address 0x7f00 is out of bounds
========= Invalid __global__ write of size 4 bytes
=========     at kernel+0x1f0
========= ERROR SUMMARY: 2 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at kernel+0x90
=========     and Read access at kernel+0x110 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
FIRST = "Error: Race reported between Write access at kernel+0x90"
WARNED = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n"
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def read(folder: Path, report: str, output: str = "", tool: str = "memcheck", *, timed_out: bool = False) -> Inspected:
    (folder / REPORT).write_text(report, encoding="utf-8")
    (folder / ncu_target.MADE).write_text(
        '{"candidate":4,"entry":"k"}\n{"candidate":9,"entry":"k"}\n', encoding="utf-8"
    )
    return Sanitizer().read(job("k", tool=tool), folder, output, timed_out=timed_out)


@pytest.mark.parametrize(
    ("report", "errors", "complaints"),
    [
        (INVALID, 2, ("Invalid __global__ write of size 4 bytes at kernel+0x1f0",)),
        (RACE, 1, (f"{FIRST} and Read access at kernel+0x110 [96 hazards]",)),
        (WARNED, 0, ()),
        (CLEAN, 0, ()),
    ],
)
def test_errors_are_counted_and_shown_once(
    tmp_path: Path, report: str, errors: int, complaints: tuple[str, ...]
) -> None:
    found = read(tmp_path, report)
    assert {(one.errors, one.complaints, one.failed) for one in found.seen} == {(errors, complaints, "")}


def test_a_race_where_a_lane_arrives_for_its_warp_may_be_none(tmp_path: Path) -> None:
    plain = job("k", tool="racecheck")
    (tmp_path / REPORT).write_text(RACE, encoding="utf-8")
    assert Sanitizer().read(plain, tmp_path, "", timed_out=False).cure == ""
    number, subject = plain.subjects[0]
    lowered = msgspec.structs.replace(subject.lowered, source="__shared__ mbarrier full[4];")
    barred = msgspec.structs.replace(plain, subjects=((number, msgspec.structs.replace(subject, lowered=lowered)),))
    found = Sanitizer().read(barred, tmp_path, "", timed_out=False)
    assert found.seen[0].errors == 1
    assert "false alarm" in found.cure


@pytest.mark.parametrize(
    ("report", "output", "timed_out", "words"),
    [
        ("========= Error: Device not supported. Please refer to the docs\n", "", False, "Device not supported"),
        ("", "Traceback\nOSError: libcuda.so.1", False, "libcuda"),
        ("", "", True, "too long"),
        ("", "", False, "nothing"),
    ],
)  # fmt: skip
def test_no_report_is_no_clean_bill(tmp_path: Path, report: str, output: str, timed_out: bool, words: str) -> None:
    found = read(tmp_path, report, output, timed_out=timed_out)
    assert found.seen == ()
    assert words in found.refused
