"""A new action, one TOML entry in an empty folder, is proposed, applied and journaled by a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cake_tui.cli import main

ENTRY = """\
[[action]]
name = "go_packed_and_wide"
level = "macro"
summary = "Packed panels under a wide register block"
edits = [{ do = "change_structure", structure = "packed", thread_n = "$n" }]
parameters.c = { n = [1, 3] }

[[action]]
name = "deeper"
level = "micro"
summary = "More steps of k"
edits = [{ do = "unroll", factor = "$factor" }]
parameters.c = { factor = [2, 4, 8] }
"""


def test_a_run_uses_an_action_that_only_the_working_folder_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("actions.toml").write_text(ENTRY, encoding="utf-8")
    run = ["run", "--backend", "simulated", "--name", "new", "--agent", "random", "--candidates", "5", "--headless"]
    assert main(run) == 0
    events = [json.loads(line) for line in Path("sessions/new/journal.jsonl").read_text(encoding="utf-8").splitlines()]
    planned = [event for event in events if event["kind"] == "Planned" and event["proposal"]["moves"]]
    actions = {move["action"] for event in planned for move in event["proposal"]["moves"]}
    assert {"go_packed_and_wide"} <= actions <= {"go_packed_and_wide", "deeper"}
    wide = [event["schedule"] for event in planned if event["proposal"]["moves"][0]["action"] == "go_packed_and_wide"]
    assert all(schedule["structure"] == "packed" for schedule in wide)
    assert {value for schedule in wide for name, value in schedule["knobs"] if name == "thread_n"} <= {1, 3}
