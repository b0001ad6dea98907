"""Adding a thing is one file, folder or entry and no other edit: done in a copy of the package, one thing at a time.

The things lie in tests/data/additions, in the places where they go.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ADDITIONS = ROOT / "tests/data/additions"
SHIPPED = ("cake_tui", "kernels", "actions.toml")
SIMULATED = ("--backend", "simulated", "--headless")


class Tree:
    """A copy of the product with a working folder beside it; commands run from there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "product"
        self.work = folder / "work"
        self.work.mkdir()
        for name in SHIPPED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name)  # with the compiled files, whose times are kept
            else:
                shutil.copy2(source, self.root / name)

    def add(self, place: str) -> None:
        """Put one file or folder into its place, where nothing was."""
        source, target = ADDITIONS / place, self.root / place
        assert not target.exists()
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)

    def add_action(self, name: str) -> None:
        """Append one entry to the action space."""
        path = self.root / "actions.toml"
        path.write_text(path.read_text(encoding="utf-8") + (ADDITIONS / name).read_text(encoding="utf-8"), "utf-8")

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the working folder on this copy alone."""
        locks = str(self.work.parent / "locks")  # whoever tunes on this machine meanwhile
        environment = {**os.environ, "PYTHONPATH": str(self.root), "COLUMNS": "200", "CAKE_TUI_LOCKS": locks}
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.work, env=environment, capture_output=True, text=True, timeout=120
        )

    def cake(self, *arguments: str, code: int = 0) -> str:
        """Run one command; returns what it printed."""
        done = self.python("-m", "cake_tui", *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def run(self, moves: Sequence[str], *, kernel: str = "matmul_bias_relu", candidates: int | None = None) -> None:
        """Run a session named ``first`` whose candidates 1, 2, … are `moves` from the baseline or, with @N, from N."""
        steps = []
        for move in moves:
            text, _, base = move.partition(" @")
            steps.append({"moves": text, "base": int(base or 0)})
        (self.work / "script.json").write_text(json.dumps({"step": steps}), encoding="utf-8")
        count = str(candidates or len(moves) + 1)
        self.cake(
            "run", kernel, "--shape", "M=64,N=48,K=256", "--name", "first", "--agent", "script:script.json",
            "--round", "1", "--candidates", count, *SIMULATED,
        )  # fmt: skip

    def kept(self, number: int, name: str) -> str:
        """A file of one candidate of the session."""
        return (self.work / f"sessions/first/candidates/{number}/{name}").read_text(encoding="utf-8")

    def feedback(self, number: int) -> dict[str, Any]:
        """What agents and people are told of one candidate."""
        found: dict[str, Any] = json.loads(self.kept(number, "feedback.json"))
        return found

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Events of a kind in the session's journal."""
        lines = (self.work / "sessions/first/journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# --- TOML: actions and kernels ------------------------------------------------------------------------


def test_an_action_is_one_entry(tree: Tree) -> None:
    assert "go_packed_and_tall" not in tree.cake("actions")
    tree.add_action("actions.toml")
    assert "Dense panels under a tall register block" in tree.cake("actions")
    tree.run(["go_packed_and_tall(6)", "go_packed_and_tall(12)", "go_packed_and_tall(7)"], candidates=4)
    sources = [tree.kept(number, "kernel.c") for number in range(3)]
    assert len(set(sources)) == 3
    assert "thread_m=6" in tree.kept(1, "schedule.txt")
    assert "thread_m=12" in tree.kept(2, "schedule.txt")
    assert [row["who"] for row in (event["proposal"] for event in tree.events("Planned"))][1:] == ["script", "script"]
    (refused,) = [event for event in tree.events("CandidateEnded") if event["candidate"] == 3]
    assert "needed: go_packed_and_tall(rows)" in refused["outcome"]["reason"]


@pytest.mark.cc
@pytest.mark.parametrize("kernel", ["leaky_gate", "by_reference", "row_scale"])
def test_a_kernel_is_one_folder(kernel: str, tree: Tree) -> None:
    """By its `value` alone, with a reference.py, and as a kernel.c written by hand."""
    tree.cake("check", kernel, code=2)
    tree.add(f"kernels/{kernel}")
    checked = tree.cake("check", kernel, "--backend", "cpu")
    assert f"{kernel}: ok" in checked
    tree.cake("run", kernel, "--name", "first", "--candidates", "5", *SIMULATED)
    (created,) = tree.events("SessionCreated")
    assert created["problem"]["kernel"] == kernel
    assert len({tree.kept(event["candidate"], "kernel.c") for event in tree.events("Planned")}) >= 3


# --- the IR: structures, edits, laws ------------------------------------------------------------------


@pytest.mark.cc
def test_a_structure_is_one_file(tree: Tree) -> None:
    """It is listed, reached by a move of its own, passes the laws, and the compiled kernel is right."""
    tree.add("cake_tui/ir/build/contraction/row_panels.py")
    assert "row_panels (4 settings)" in tree.cake("check", "matmul_bias_gelu", "--backend", "cpu")
    assert "use_row_panels()" in tree.cake("actions")
    tree.run(["use_row_panels()", "change_block_config(1, 64) @1"], kernel="matmul_bias_gelu")
    assert tree.kept(1, "schedule.txt").strip() == "row_panels(threads_y=16)"
    assert "structure row_panels" in tree.kept(1, "program.cake") or "row_panels" in tree.kept(1, "lowered.json")
    assert tree.feedback(1)["outcome"] == "Measured"
    assert tree.kept(1, "kernel.c") != tree.kept(0, "kernel.c")
    exported = tree.cake("export", "first", "--candidate", "1", "--output", "rows.c", "--allow-simulated")
    assert "rows.c: candidate 1" in exported
    assert "rows.c: ok: candidate 1" in tree.cake("verify", "rows.c")  # compiled here, held against float64


def test_agents_find_a_new_structure_by_themselves(tree: Tree) -> None:
    tree.add("cake_tui/ir/build/contraction/row_panels.py")
    run = ("--name", "first", "--agent", "bandit", "--candidates", "12", *SIMULATED)
    tree.cake("run", "matmul_bias_relu", *run)
    assert "row_panels" in {event["schedule"]["structure"] for event in tree.events("Planned")}


def test_an_edit_is_one_file(tree: Tree) -> None:
    tree.add_action("doubling.toml")
    refused = tree.python("-m", "cake_tui", "actions")
    assert refused.returncode == 2
    assert '"double"' in refused.stderr
    tree.add("cake_tui/ir/edits/double.py")
    assert "double_block_k()" in tree.cake("actions")
    tree.run(["use_tiled_loops()", "double_block_k() @1", "double_block_k()"])
    assert "block_k=128" in tree.kept(1, "schedule.txt")
    assert "block_k=256" in tree.kept(2, "schedule.txt")
    assert tree.kept(1, "kernel.c") != tree.kept(2, "kernel.c")
    assert "naive has no number block_k" in json.dumps(tree.events("CandidateEnded"))


def test_a_law_is_one_file(tree: Tree) -> None:
    tree.add("cake_tui/ir/laws/steady_unroll.py")
    tree.run(["use_tiled_loops()", "apply_unroll(4) @1", "apply_unroll(8) @1"])
    assert tree.feedback(2)["outcome"] == "Measured"
    assert tree.feedback(3)["outcome"] == "Rejected"
    assert "steady-unroll" in tree.kept(3, "feedback.json")
    assert "unroll = 8" in tree.kept(3, "feedback.json")


# --- what reads measurements: rules, agents, exporters ------------------------------------------------


def test_a_rule_is_one_file(tree: Tree) -> None:
    tree.add("cake_tui/rules/plain_loops.py")
    tree.run(["use_tiled_loops()"])
    found = {finding["label"]: finding for finding in tree.feedback(0)["findings"]}
    assert found["plain loops"]["kind"] == "structural"
    assert found["plain loops"]["evidence"] == {"structure": "naive"}
    assert found["plain loops"]["advice"].rstrip(".") == "any other structure"
    assert found["plain loops"]["actions"] == ["use_tiled_loops"]
    assert "plain loops" not in {finding["label"] for finding in tree.feedback(1)["findings"]}


def test_an_agent_is_one_file(tree: Tree) -> None:
    run = ("run", "matmul_bias_relu", "--name", "first", "--agent", "in_order", "--candidates", "6", *SIMULATED)
    tree.cake(*run, code=2)
    tree.add("cake_tui/agents/in_order.py")
    tree.cake(*run)
    planned = [event["proposal"] for event in tree.events("Planned")][1:]
    assert planned
    assert {proposal["who"] for proposal in planned} == {"in_order"}
    ended = [event["proposal"] for event in tree.events("CandidateEnded") if "proposal" in event]  # refused on paper
    assert {"use_tiled_loops", "use_packed_panels"} <= {
        move["action"] for one in planned + ended for move in one["moves"]
    }


def test_an_exporter_is_one_file(tree: Tree) -> None:
    tree.run(["use_packed_panels()"])
    export = ("export", "first", "--format", "record", "--allow-simulated", "--candidate", "1")
    tree.cake(*export, code=2)
    tree.add("cake_tui/exporters/record.py")
    assert "record" in tree.cake("export", "--help")
    assert tree.cake(*export).startswith("first-1.json: candidate 1")
    record = json.loads((tree.work / "first-1.json").read_text(encoding="utf-8"))
    assert record["lowered"]["source"] == tree.kept(1, "kernel.c")


@pytest.mark.cc
def test_what_a_new_exporter_wrote_is_verified_too(tree: Tree) -> None:
    tree.add("cake_tui/exporters/record.py")
    tree.run(["use_packed_panels()"])
    tree.cake("export", "first", "--format", "record", "--allow-simulated", "--candidate", "1", "--output", "one.json")
    assert "one.json: ok: candidate 1" in tree.cake("verify", "one.json")
    path = tree.work / "one.json"
    text = path.read_text(encoding="utf-8")
    wrong = re.sub(r"relu_f32(x\d+)?\(acc", "(acc", text)
    assert wrong != text
    path.write_text(wrong, encoding="utf-8")
    assert "WRONG" in tree.cake("verify", "one.json", code=7)


# --- machines: backends and monitors ------------------------------------------------------------------


def test_a_backend_is_one_folder(tree: Tree) -> None:
    run = ("run", "matmul_bias_relu", "--name", "first", "--backend", "flat", "--candidates", "5", "--headless")
    tree.cake(*run, code=2)
    tree.add("cake_tui/backends/flat")
    assert "flat" in tree.cake("run", "--help")
    tree.cake(*run)
    (created,) = tree.events("SessionCreated")
    assert created["backend"] == "flat"
    verdicts = {event["outcome"].get("verdict") for event in tree.events("CandidateEnded") if event["candidate"]}
    assert verdicts
    assert "accepted" not in verdicts  # all schedules are equal there
    assert tree.feedback(0)["perf"]["avg_us"] == pytest.approx(250, rel=0.2)


def test_a_monitor_is_one_file(tree: Tree) -> None:
    tree.add("cake_tui/monitors/still.py")
    tree.run(["use_tiled_loops()"])
    series = [one for event in tree.events("Coarse") for one in event["series"]]
    readings = {one[when].get("temperature_c") for one in series for when in ("before", "after")}
    assert readings - {None} == {41.5}  # some series are taken without a guard


# --- what people see: commands and panes --------------------------------------------------------------


def test_a_command_is_one_file(tree: Tree) -> None:
    tree.run(["use_tiled_loops()", "use_packed_panels()"])
    tree.cake("tally", "first", code=2)
    tree.add("cake_tui/cli/tally.py")
    assert "Count a session's candidates by how they ended." in tree.cake("--help")
    assert "cake-tui tally first" in tree.cake("tally", "--help")
    assert tree.cake("tally", "first") == "    3 Measured\n"


PANE = """
import asyncio, sys
from pathlib import Path
import cake_tui
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge
from tests.tui.picture import text_of

assert Path(cake_tui.__file__).is_relative_to(sys.argv[1]), cake_tui.__file__

async def look():
    for size in ((200, 60), (80, 24)):
        app = CakeApp(Bridge(Path("sessions/first")), you="sam")
        async with app.run_test(size=size) as pilot:
            for keys in ("8", "x", "question_mark", "end"):
                await pilot.press(keys)
                await pilot.pause()
                print("SCREEN", size[0], keys)
                print(text_of(app))

asyncio.run(look())
"""


def test_a_pane_is_one_file(tree: Tree) -> None:
    """It is drawn with a number in large and small terminals, its own key acts, and the help lists both."""
    tree.run(["use_tiled_loops()", "use_packed_panels()", "apply_unroll(2)"])
    tree.add("cake_tui/tui/panes/endings.py")
    script = tree.work / "look.py"
    script.write_text(PANE, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tree.root}{os.pathsep}{ROOT}", "TERM": "xterm-256color"}
    done = subprocess.run(
        [sys.executable, str(script), str(tree.root)], cwd=tree.work, env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    screens = {}
    for part in done.stdout.split("SCREEN ")[1:]:
        head, _, text = part.partition("\n")
        screens[head] = text
    for width in (200, 80):
        chosen = screens[f"{width} 8"]
        assert "8 endings" in chosen
        assert "by number" in chosen
        assert "    3 Measured" in chosen
        assert "    1 Rejected" in chosen
        assert "by name" in screens[f"{width} x"]
        told = screens[f"{width} question_mark"] + screens[f"{width} end"]
        assert "8 endings" in told
        assert "by number or by name" in told


# --- all of it ----------------------------------------------------------------------------------------


def test_all_at_once_live_together(tree: Tree) -> None:
    for path in sorted(ADDITIONS.rglob("*")):
        place = path.relative_to(ADDITIONS)
        if path.is_file() and place.parts[0] in SHIPPED and place.name != "actions.toml":
            (tree.root / place).parent.mkdir(parents=True, exist_ok=True)
            tree.add(str(place))
    tree.add_action("actions.toml")
    tree.add_action("doubling.toml")
    tree.cake("run", "leaky_gate", "--name", "first", "--agent", "in_order", "--candidates", "8", *SIMULATED)
    assert "Measured" in tree.cake("tally", "first")
    tree.cake("export", "first", "--format", "record", "--allow-simulated", "--output", "all.json")
    assert "plain loops" in tree.kept(0, "feedback.json")
