"""Whole sessions on a GPU: a user's own kernel.cu, right and wrong in turn; each fault stays with its candidate."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.row import Row
from cake_tui.store import snapshot
from cake_tui.store.reading import decode
from tests.cuda.jobs import KERNELS

pytestmark = pytest.mark.cuda

ROOT = Path(__file__).parents[2]


def test_faults_are_charged_to_their_candidates_and_the_run_goes_on(tmp_path: Path) -> None:
    shutil.copytree(KERNELS / "faulty", tmp_path / "kernels" / "faulty")
    command = [
        "run",
        "faulty",
        "--backend",
        "cuda",
        "--headless",
        "--agent",
        "grid",
        "--candidates",
        "5",
        "--name",
        "f",
    ]
    settings = ["--set", "run_s=1", "--set", "run_factor=2", "--set", "screen=off"]
    done = subprocess.run(
        [sys.executable, "-m", "cake_tui", *command, *settings, "--sessions", str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    history = snapshot.fold(tmp_path / "f").history
    found: dict[int, Row] = {dict(row.schedule.knobs)["FAULT"]: row for row in history.rows if row.schedule}  # type: ignore[misc]
    assert {fault: row.outcome for fault, row in found.items()} == {
        0: "Measured", 1: "WrongAnswer", 2: "WrongAnswer", 3: "WrongAnswer", 4: "Crashed", 5: "TimedOut", 6: "Measured",
    }, said  # fmt: skip
    for fault, share in ((1, 0.5), (2, 1.0)):
        bad, elements = map(int, re.findall(r"(\d+) of (\d+) elements", found[fault].reason)[0])
        assert share <= bad / elements < share + 0.05
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found[4].reason
    lines = (tmp_path / "f" / "journal.jsonl").read_bytes().splitlines()
    events = [event for line in lines for event in decode(line)]
    replaced = {event.candidate for event in events if isinstance(event, ev.EvaluatorReplaced)}
    assert replaced == {found[4].number, found[5].number}
