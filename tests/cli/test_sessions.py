"""Sessions from the command line: real processes, the simulated backend, terminals where one is involved."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

import pytest

from cake_tui.model import event as ev
from cake_tui.store.reading import JournalReader
from cake_tui.tui.moves import Moves
from tests.cases.shell import SLOW, Shell, ended, legal_move
from tests.engine.scripted import descendants, folded, gone, kinds, until

STEP_ENDS = {"BuildEnded", "CheckEnded", "Coarse", "GateEnded", "CandidateEnded"}


def test_a_run_from_start_to_done(shell: Shell) -> None:
    session = shell.headless(candidates=12, seed=3)
    shown = shell.json("show", "a")
    assert shown["state"] == "done"
    assert shown["kernel"] == "matmul_bias_relu"
    assert shown["problem"]["shapes"] == [{"M": 512, "N": 512, "K": 512}]
    assert shown["device"]["uuid"].startswith("simulated:ridge")
    assert (shown["backend"], shown["agent"]) == ("simulated", "bandit")
    counts = shown["candidates"]
    for key in ("total", "effective", "repeated", "rejected", "screened", "failed", "measured", "accepted"):
        assert isinstance(counts[key], int), key
    assert counts["effective"] >= 12
    best = shown["best"]
    assert best["lineage"][-1] == 0
    assert best["lineage"][0] == best["candidate"]
    work = 2 * 512**3
    assert best["throughput_tflops"] == pytest.approx(work / best["time_us"] * 1e-6)
    assert len(best["source_sha256"]) == 64
    assert f"kernel id  {best['source_sha256'][:12]}" in shell("show", "a")
    assert shown["speedup"]["baseline"] > 1
    assert isinstance(shown["speedup"]["peer"], dict)
    assert shown["noise"]["pair_pct"] is not None
    assert shown["elapsed_s"] > 0
    assert isinstance(shown["stalled_rounds"], int)
    assert int((session / "best" / "candidate").read_text(encoding="utf-8")) == best["candidate"]
    assert shell.json("status", "a") == shown
    assert "DONE" in shell("status", "a")
    assert shell("status", "a").count("\n") == 1
    assert [one["name"] for one in shell.json("list")] == ["a"]
    assert "a " in shell("list")
    tail = shell("tail", "a", "-n", "3").splitlines()
    assert len(tail) == 3
    assert "DONE" in tail[-1]
    assert all(json.loads(line)["kind"] for line in shell("tail", "a", "--json").splitlines())
    assert f"candidate  {best['candidate']}" in shell("show", "a", "--candidate", str(best["candidate"]))
    assert "allowed" not in shell("show", "a")
    assert "there: 0 to" in shell("show", "a", "--candidate", "99999", code=2)


def test_steering_a_detached_run(shell: Shell) -> None:
    session = shell.brisk()
    until(lambda: ended(session) >= 1)
    assert "paused" in shell("pause", "a")
    assert "PAUSED (by tester)" in shell("status", "a")
    assert "paused already" in shell("pause", "a", code=2)
    shell.still()
    before = kinds(session)
    move = legal_move(session, "use_tiled_loops() + apply_unroll(2)", "apply_unroll(2)", "apply_unroll(4)")
    assert f"queued {move}" in shell("inject", "a", move.replace(" ", ""))
    assert folded(session).incumbent is not None
    before_queued = kinds(session)
    for text in ("apply_unroll(2) + apply_unroll(2)", "use_naive_loops() + apply_unroll(2)", "apply_vectorize(7)"):
        judged = Moves(folded(session)).judge(text)
        assert not judged.legal
        assert shell("inject", "a", text, code=2).splitlines() == list(judged.lines)
    assert kinds(session) == before_queued
    assert 'did you mean "apply_unroll"' in shell("inject", "a", "apply_unrol(2)", code=2)
    assert "taken back" in shell("undo", "a")
    assert "nothing is queued" in shell("undo", "a", code=2)
    assert "disabled apply_unroll" in shell("disable", "a", "apply_unroll")
    assert "disabled already" in shell("disable", "a", "apply_unroll", code=2)
    assert "enabled apply_unroll" in shell("enable", "a", "apply_unroll")
    assert "noted" in shell("mark", "a", "browser closed [/x] \x1b[31m")
    assert "set candidates=900" in shell("set", "a", "candidates=900")
    assert "allowed: 1 to 64" in shell("set", "a", "round=0", code=2)
    after = [kind for kind in kinds(session)[len(before) :] if not kind.startswith("Request") and kind != "GapSeen"]
    assert after == ["SettingsChanged"]
    assert "goes on" in shell("resume", "a")
    until(lambda: folded(session).incumbent not in (None, 0))
    assert "queued revert_last()" in shell("inject", "a", "revert_last()")
    until(lambda: {"BaseReverted", "RequestRefused"} & set(kinds(session)[len(before) + 8 :]))
    until(lambda: len(kinds(session)) > len(before) + 12)
    assert "stopped" in shell("stop", "a")
    assert folded(session).state == "stopped"
    for words in (("pause", "a"), ("inject", "a", "apply_unroll(2)"), ("mark", "a", "x"), ("stop", "a")):
        assert "not running" in shell(*words, code=2)
    assert list((session / "inbox").iterdir()) == []


def test_a_second_engine_is_refused_and_adds_not_a_byte(shell: Shell) -> None:
    session = shell.brisk()
    pid = shell.pid()
    until(lambda: ended(session) >= 1)
    shell("pause", "a")
    record = shell.still()
    _, refused = shell.within(2.0, "run", "--backend", "simulated", "--name", "a", code=4)
    for part in ('"a"', str(pid), os.uname().nodename, "attach a", "since 20"):
        assert part in refused
    assert (session / "journal.jsonl").read_bytes() == record
    shell("resume", "a")
    assert str(pid) in shell("resume", "a", code=4)
    assert str(pid) in shell("resume", "a", "--headless", code=4)
    assert "RUNNING" in shell("attach", "a")
    assert shell.json("show", "a")["state"] == "running"


def test_of_two_starts_within_ten_milliseconds_exactly_one_wins(shell: Shell) -> None:
    command = shell.words("run", "--backend", "simulated", "--device", SLOW, "--name", "b")
    both = [
        subprocess.Popen(
            command, cwd=shell.folder, env=shell.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=60) for process in both]
    assert sorted(process.returncode for process in both) == [0, 4], said
    assert [path.name for path in shell.sessions.iterdir()] == ["b"]
    assert kinds(shell.sessions / "b").count("EngineStarted") == 1


def test_kill_9_leaves_no_child_and_loses_at_most_the_step_in_flight(shell: Shell, soak_share: float) -> None:
    rng = random.Random(11)
    session = shell.start(candidates=10_000)
    for _ in range(max(2, round(20 * soak_share))):
        steps = len(kinds(session))
        until(lambda steps=steps: STEP_ENDS & set(kinds(session)[steps:]))
        time.sleep(rng.uniform(0.0, 0.6))
        pid = shell.pid()
        children = descendants(pid)
        before = folded(session)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: gone(pid))
        until(lambda children=children: all(map(gone, children)))
        kept = folded(session)
        assert children
        for old, new in zip(before.rows, kept.rows):
            assert old.in_flight or old == new
        assert "GONE" in shell("status", "a")
        shell("resume", "a")
        assert kept.incumbent is None or folded(session).rows[kept.incumbent] == kept.rows[kept.incumbent]
    until(lambda: not any(row.lost for row in folded(session).rows) and folded(session).incumbent is not None)
    shell("stop", "a")
    history = folded(session)
    assert [row.number for row in history.rows] == list(range(len(history.rows)))
    assert not list(history.in_flight())
    lost = [
        event.candidate for event in JournalReader(session / "journal.jsonl").read() if isinstance(event, ev.StepLost)
    ]
    assert all(lost.count(row.number) > 1 for row in history.rows if row.outcome == "Crashed")
    assert int((session / "best" / "candidate").read_text(encoding="utf-8")) == history.incumbent


def test_nothing_is_left_after_a_stop(shell: Shell) -> None:
    session = shell.start(candidates=10_000)
    until(lambda: ended(session) >= 1)
    pid = shell.pid()
    children = descendants(pid)
    assert children
    shell("stop", "a")
    until(lambda: gone(pid) and all(map(gone, children)))


def test_resume_keeps_best_budget_and_numbering(shell: Shell) -> None:
    session = shell.headless(candidates=8)
    before = folded(session)
    assert before.incumbent
    found = before.rows[before.incumbent]
    said = shell("resume", "a", "--candidates", "11", "--seed", "5", "--set", "patience=7", "--headless")
    assert "candidates: 8 → 11" in said
    assert "seed: 0 → 5" in said
    assert "patience: 20 → 7" in said
    after = folded(session)
    assert after.problem.seed == 5
    assert after.rows[: len(before.rows)] == before.rows
    assert after.rows[before.incumbent] == found
    assert after.effective >= 11
    assert kinds(session).count("SessionCreated") == 1
    assert sum(row.proposal.moves == () for row in after.rows) == 1
    if not any(row.verdict == "accepted" for row in after.rows[len(before.rows) :]):
        assert after.incumbent == before.incumbent


def test_a_torn_record_is_told_in_one_line_at_resume(shell: Shell) -> None:
    session = shell.headless(candidates=6)
    journal = session / "journal.jsonl"
    content = journal.read_bytes()
    cut = content.index(b"\n", content.rindex(b'"kind":"CandidateEnded"'))
    journal.write_bytes(content[: cut + 1][:-17])
    line = content[:cut].count(b"\n") + 1
    start = content.rindex(b"\n", 0, cut) + 1
    said = shell("resume", "a", "--candidates", "8", "--headless").splitlines()
    told = [text for text in said if "half written" in text]
    assert len(told) == 1
    for part in ("journal.jsonl", f"line {line}", f"{cut + 1 - 17 - start} bytes", "candidate"):
        assert part in told[0]
    assert "half written" not in shell("resume", "a", "--candidates", "9", "--headless")
    assert all(isinstance(json.loads(text), dict) for text in journal.read_bytes().splitlines())


@pytest.mark.parametrize("damage", [b"", b'{"v":1,"seq":'])
def test_a_lost_snapshot_is_one_notice(shell: Shell, damage: bytes) -> None:
    session = shell.headless(candidates=4)
    best = folded(session).incumbent
    (session / "snapshot.json").write_bytes(damage)
    assert shell.json("status", "a")["state"] == "done"
    assert shell("show", "a").count("is rebuilt") == 1
    said = shell("resume", "a", "--headless")
    assert said.count("is rebuilt") == 1
    assert folded(session).incumbent == best
    assert "is rebuilt" not in shell("show", "a")


def test_a_damaged_session_is_exit_code_five(shell: Shell) -> None:
    session = shell.headless(candidates=2)
    (session / "journal.jsonl").write_bytes(b"\0" * 100 + b"\n")
    (session / "snapshot.json").unlink()
    for words in (("status", "a"), ("show", "a"), ("resume", "a", "--headless")):
        assert "holds no session" in shell(*words, code=5)
    assert "damaged" in shell("list")
