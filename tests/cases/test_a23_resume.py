"""A23: a resume keeps the best, its time and its number; budget and numbering go on; changes are listed old and new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cake_tui.model import event as ev
from tests.cases.shell import QUIET, Shell, copied, events, variations
from tests.engine.scripted import folded, until

WORSE = [f"split_k({n}) + apply_unroll({m}) + apply_vectorize(4)" for n in (16, 8, 4, 2) for m in (8, 4, 2)]


def worse(shell: Shell) -> str:
    """An agent that only proposes what is slower than the best by far."""
    steps = [{"moves": moves, "base": "first", "reason": "no better"} for moves in WORSE * 3]
    (shell.folder / "worse.json").write_text(json.dumps(steps), encoding="utf-8")
    return "script:worse.json"


# Settings of the tiled structure, each of which has a time of its own, none as good as `GOOD`.
SETTINGS = [
    f"apply_tiling({tile}) + apply_unroll({unroll}) + apply_vectorize({width}) + apply_register_block({m}, {n})"
    for m in (4, 6, 8) for n in (1, 2) for width in (4, 8) for unroll in (2, 4, 8) for tile in (16, 32, 64, 128)
]  # fmt: skip
GOOD = "split_k(2) + apply_unroll(8)"


@pytest.mark.soak
def test_the_case_itself(shell: Shell, soak_share: float) -> None:
    """As it was reported: 130 candidates with the best at 126, then another history's length and seed, ten more."""
    best = max(8, round(126 * soak_share))
    moves = [*SETTINGS[: best - 1], GOOD, *SETTINGS[best - 1 :]]
    steps = [{"moves": text, "base": "first", "reason": "in the list's order"} for text in moves]
    (shell.folder / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
    flags = {"agent": "script:steps.json", "candidates": best + 4}
    shell.apart(
        "run", "--backend", "simulated", "--device", QUIET, "--name", "a", "--headless", "--set", "screen=off",
        "--set", "round=1", *(word for name, value in flags.items() for word in (f"--{name}", str(value))),
    )  # fmt: skip
    session = shell.sessions / "a"
    before, was = folded(session), best_of(shell)
    assert (before.incumbent, before.effective, len(before.rows)) == (best, best + 4, best + 4)
    more = ("--candidates", str(best + 14), "--seed", "5", "--set", "patience=7", "--set", "propose_factor=3")
    out, _ = shell.apart("resume", "a", "--headless", *more)
    after, now = folded(session), best_of(shell)
    assert after.incumbent == best
    assert (now["candidate"], now["found_at_s"], now["schedule"]) == (best, was["found_at_s"], was["schedule"])
    assert after.rows[best].time_us == before.rows[best].time_us
    assert now["time_us"] == pytest.approx(was["time_us"], rel=1e-3)
    assert [row.number for row in after.rows[best + 4 :]] == list(range(best + 4, best + 14))
    assert after.effective == best + 14
    assert sum(row.proposal.moves == () for row in after.rows) == 1
    for change in ("seed: 0 → 5", f"candidates: {best + 4} → {best + 14}", "patience: 20 → 7", "propose_factor: 2 → 3"):
        assert change in out


def best_of(shell: Shell) -> Any:
    return shell.json("show", "a")["best"]


def test_the_best_stays_with_its_number_and_time(shell: Shell, recorded: Path) -> None:
    before, best = folded(recorded), best_of(shell)
    assert before.incumbent
    flags = ("--agent", worse(shell), "--seed", "5", "--set", "patience=7", "--set", "round=1", "--set", "screen=off")
    out, _ = shell.apart("resume", "a", "--candidates", str(before.effective + 2), "--headless", *flags)
    after = folded(recorded)
    assert after.incumbent == before.incumbent
    assert after.rows[: len(before.rows)] == before.rows
    now = best_of(shell)
    assert {**now, "time_us": 0, "throughput_tflops": 0} == {**best, "time_us": 0, "throughput_tflops": 0}
    assert now["time_us"] == pytest.approx(best["time_us"], rel=0.01)
    # Numbering and budget go on; there is one baseline.
    assert [row.number for row in after.rows] == list(range(len(after.rows)))
    assert after.effective >= before.effective + 2
    assert after.elapsed_s > before.elapsed_s
    assert after.round > before.round
    assert sum(row.proposal.moves == () for row in after.rows) == 1
    assert len(events(recorded, ev.SessionCreated)) == 1
    started = events(recorded, ev.EngineStarted)[-1]
    changes = {name: (old, new) for name, old, new in started.changes}
    assert changes["seed"] == ("4", "5")
    assert changes["patience"] == ("20", "7")
    assert changes["agent"] == ("bandit", "script:worse.json")
    assert changes["candidates"] == ("10", str(before.effective + 2))
    for name, (old, new) in changes.items():
        assert f"{name}: {old} → {new}" in out
    assert int((recorded / "best" / "candidate").read_text(encoding="utf-8")) == before.incumbent


def test_nothing_changed_is_nothing_listed(shell: Shell, recorded: Path) -> None:
    before = folded(recorded)
    out, _ = shell.apart("resume", "a", "--headless")
    assert " → " not in out
    assert events(recorded, ev.EngineStarted)[-1].changes == ()
    assert folded(recorded).rows == before.rows


def test_done_goes_on_with_a_larger_budget_and_not_without(shell: Shell, recorded: Path) -> None:
    before = folded(recorded)
    for _ in range(2):
        shell.apart("resume", "a", "--headless")
        assert folded(recorded).rows == before.rows
        assert shell.json("status", "a")["state"] == "done"
    shell.apart("resume", "a", "--candidates", str(before.effective + 3))
    until(lambda: folded(recorded).state == "done")
    after = folded(recorded)
    assert before.effective + 3 <= after.effective <= before.effective + 7
    assert after.rows[: len(before.rows)] == before.rows
    out, _ = shell.apart("resume", "a", "--candidates", "1", "--headless")  # a smaller one is spent at once
    assert "candidates: " in out
    assert folded(recorded).rows == after.rows


EDITS = {
    "an action less": lambda text: text.replace('name = "apply_vectorize"', 'name = "vectorize_by"'),
    "other values": lambda text: text.replace("[", "[ ", 1),
    "an action more": lambda text: (
        text + '\n[[action]]\nname = "deep_unroll"\nlevel = "micro"\nsummary = "Unroll by sixteen"\n'
        'edits = [{ do = "unroll", factor = 16 }]\n'
    ),
}


@pytest.mark.parametrize("edit", variations(EDITS))
def test_a_changed_action_space_changes_nothing_on_record(shell: Shell, recorded: Path, edit: str) -> None:
    from tests.cases.shell import ROOT

    before, best = folded(recorded), best_of(shell)
    text = EDITS[edit]((ROOT / "actions.toml").read_text(encoding="utf-8"))
    (shell.folder / "actions.toml").write_text(text, encoding="utf-8")
    shell.apart("resume", "a", "--candidates", str(before.effective + 1), "--headless")
    after = folded(recorded)
    assert after.rows[: len(before.rows)] == before.rows
    assert after.rows[best["candidate"]].schedule == before.rows[best["candidate"]].schedule


def test_a_setting_edited_by_hand_counts_and_a_wrong_one_is_refused(shell: Shell, recorded: Path) -> None:
    document = recorded / "session.toml"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace("patience = 20", "patience = 3"), encoding="utf-8")
    out, _ = shell.apart("resume", "a", "--headless")
    assert "patience: 20 → 3" in out
    record = (recorded / "journal.jsonl").read_bytes()
    for wrong in ("patience = 0", "patiense = 3", 'patience = "x"', "patience ="):
        document.write_text(text.replace("patience = 20", wrong), encoding="utf-8")
        for code in (2, 5):
            process = shell.popen("resume", "a", "--headless", stdout=-1, stderr=-1)
            _, err = process.communicate(timeout=60)
            assert process.returncode in (2, 5)
            assert err.count(b"\n") == 1
            assert b"session.toml" in err
            if process.returncode == code:
                break
        assert (recorded / "journal.jsonl").read_bytes() == record


def test_a_copy_of_a_session_is_a_session_of_its_own(shell: Shell, recorded: Path) -> None:
    copied(recorded, shell.sessions, "b")
    record = (recorded / "journal.jsonl").read_bytes()
    shell.apart("resume", "b", "--candidates", "12", "--headless")
    assert (recorded / "journal.jsonl").read_bytes() == record
    assert folded(shell.sessions / "b").rows[:5] == folded(recorded).rows[:5]
    for words in (("list",), ("status", "b"), ("show", "b")):  # under the name that commands find it by
        assert any(line.startswith("b ") for line in shell.here(*words).splitlines()), words


def test_a_new_session_from_another_or_a_file(shell: Shell, recorded: Path) -> None:
    history = folded(recorded)
    best = history.incumbent or 0
    other = next(row.number for row in history.rows if row.outcome == "Measured" and row.number not in (0, best))
    (shell.folder / "mine.txt").write_bytes((recorded / "best" / "schedule.txt").read_bytes())
    wanted = {"a": best, f"a:{other}": other, "a:0": 0, "mine.txt": best}
    for place, (origin, number) in enumerate(wanted.items()):
        session = shell.headless(f"from-{place}", candidates=1, **{"from": origin})
        made = folded(session)
        assert made.rows[0].schedule == history.rows[number].schedule
        assert made.rows[0].outcome == "Measured"
        assert made.session is not None
        assert made.session.started_from is not None
    for wrong in ("a:999", "a:-1", "a:x", "b", "nothing.txt", "", "actions.toml/x"):
        words = ("run", "--backend", "simulated", "--device", QUIET, "--name", "z", "--from", wrong)
        _, err = shell.apart(*words, code=2)
        assert err.count("\n") == 1
    assert not (shell.sessions / "z").exists()


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ("1.5 baseline", "goal reached: 1.5 baseline"),
        pytest.param("80000 us", "goal reached: 80000 us", marks=pytest.mark.soak),
        pytest.param("0.001 peer", "goal reached: 0.001 peer", marks=pytest.mark.soak),
    ],
)
def test_a_goal_ends_the_run_and_a_farther_one_takes_it_on(shell: Shell, goal: str, reason: str) -> None:
    session = shell.headless(candidates=300, goal=goal)
    reached = folded(session)
    assert reason in reached.state_reason
    assert reached.effective < 300
    shell.apart("resume", "a", "--headless", "--goal", "1e6 baseline", "--candidates", str(reached.effective + 2))
    assert folded(session).effective >= reached.effective + 2
    assert folded(session).rows[: len(reached.rows)] == reached.rows


@pytest.mark.parametrize("goal", ["", "fast", "1.1", "-1 peer", "0 us", "nan baseline", "1 cublass", "1 peer extra"])
def test_a_goal_that_is_none_is_refused_in_one_line(shell: Shell, goal: str) -> None:
    words = ("run", "--backend", "simulated", "--name", "z", f"--goal={goal}")
    _, err = shell.apart(*words, code=2)
    assert err.count("\n") == 1
    assert list(shell.sessions.glob("*")) == []
