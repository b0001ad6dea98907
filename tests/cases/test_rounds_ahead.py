"""Rounds that are begun ahead: whatever ends the engine, two rounds under way lose nothing and nothing runs twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from cake_tui.model import event as ev
from tests.cases.shell import Shell, all_gone, descendants, ended, events
from tests.engine.scripted import folded, gone, until

BUSY = "ridge,noise=0,drift=0,failures=0,compile_s=0.1,check_s=0.03,series_s=0.02"


def _two_rounds(session: Path) -> bool:
    rows = folded(session).in_flight() if (session / "journal.jsonl").exists() else ()
    return len({row.round for row in rows}) == 2


def test_killed_stopped_and_resumed_with_two_rounds_under_way(shell: Shell) -> None:
    session = shell.start(device=BUSY, candidates=24, round=2, set="trial_rounds=0")
    for _ in range(2):
        before = ended(session)
        until(lambda before=before: ended(session) > before + 1 and _two_rounds(session))
        pid = shell.pid()
        family = descendants(pid)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: gone(pid))
        until(all_gone(family))
        flying = [row.number for row in folded(session).in_flight()]
        shell("resume", "a")
        until(lambda flying=flying: not set(flying) & set(folded(session).flying))
        assert all(folded(session).rows[number].outcome == "Measured" for number in flying)
    until(lambda: _two_rounds(session))
    shell("stop", "a")
    until(lambda: folded(session).state == "stopped")
    stopped = folded(session)
    assert not stopped.flying
    assert stopped.counts["Interrupted"] >= 1
    shell("resume", "a")
    until(lambda: folded(session).state == "done")
    history = folded(session)
    assert history.effective == 24
    ends = [event.candidate for event in events(session, ev.CandidateEnded)]
    assert sorted(ends) == list(range(len(history.rows)))
    timed = [row.source_sha256 for row in history.rows if row.outcome == "Measured"]
    assert len(timed) == len(set(timed))
    assert any(event.knew_round is not None for event in events(session, ev.RoundBegan))
