"""The snapshot: the same fold as the journal's, rebuilt whenever it cannot be trusted."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import msgspec
import pytest

from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.move import Move, Proposal
from cake_tui.model.outcome import Measured
from cake_tui.model.schedule import Schedule
from cake_tui.store import snapshot
from cake_tui.store.lock import state_now
from cake_tui.store.reading import JournalReader
from tests.store import journals


def folded(journal: Path) -> tuple[History, JournalReader]:
    history, reader = History(), JournalReader(journal)
    snapshot.fold_new(history, reader)
    return history, reader


@pytest.fixture
def session(tmp_path: Path) -> Path:
    journals.write(tmp_path / "journal.jsonl", 60)
    history, reader = folded(tmp_path / "journal.jsonl")
    snapshot.write(tmp_path, history, reader.offset, reader.line)
    return tmp_path


def test_a_snapshot_and_the_tail_behind_it_are_the_whole_fold(session: Path) -> None:
    lines = (session / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for taken in (1, 3, 50, len(lines) - 1, len(lines)):
        (session / "journal.jsonl").write_bytes(b"".join(lines[:taken]))
        history, reader = folded(session / "journal.jsonl")
        snapshot.write(session, history, reader.offset, reader.line)
        (session / "journal.jsonl").write_bytes(b"".join(lines))
        made = snapshot.fold(session)
        whole, _ = folded(session / "journal.jsonl")
        assert made.history == whole
        assert made.notices == ()
        assert made.reader.line == len(lines)


def test_the_snapshot_is_really_used(session: Path) -> None:
    plain = json.loads((session / "snapshot.json").read_text(encoding="utf-8"))
    plain["history"]["state_reason"] = "from the snapshot"
    (session / "snapshot.json").write_text(json.dumps(plain), encoding="utf-8")
    assert snapshot.fold(session).history.state_reason == "from the snapshot"


@pytest.mark.parametrize("damage", ["empty", "torn", "nul", "not json", "another version", "list"])
def test_a_damaged_snapshot_is_rebuilt_with_one_notice(session: Path, damage: str) -> None:
    path = session / "snapshot.json"
    content = path.read_bytes()
    changed = {
        "empty": b"",
        "torn": content[: len(content) // 2],
        "nul": b"\0" * len(content),
        "not json": b"hello",
        "another version": content.replace(b'"v":%d,' % snapshot.VERSION, b'"v":99,', 1),
        "list": b"[]",
    }[damage]
    path.write_bytes(changed)
    made = snapshot.fold(session)
    assert made.history == folded(session / "journal.jsonl")[0]
    assert len(made.notices) == 1
    assert str(path) in made.notices[0]
    assert snapshot.read_head(session) is None


def test_a_missing_snapshot_is_no_mishap(session: Path) -> None:
    (session / "snapshot.json").unlink()
    made = snapshot.fold(session)
    assert made.history == folded(session / "journal.jsonl")[0]
    assert made.notices == ()


def test_a_snapshot_of_another_journal_or_of_a_longer_one_is_passed_over(session: Path) -> None:
    journal = session / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:20]))
    assert snapshot.fold(session).history == folded(journal)[0]
    journals.write(journal, 80, seed=1)
    other = journal.read_bytes().replace(b'"name":"a"', b'"name":"b"')
    journal.write_bytes(other)
    made = snapshot.fold(session)
    assert made.history == folded(journal)[0]
    assert len(made.notices) == 1


def test_the_head_is_the_summary_of_the_fold(session: Path) -> None:
    head = snapshot.read_head(session)
    assert head is not None
    history = folded(session / "journal.jsonl")[0]
    assert head.seq == history.seq
    assert head.summary.candidates.total == 60
    assert head.summary.best is not None
    assert head.summary.best.candidate == history.incumbent


def test_rows_read_from_a_snapshot_keep_whole_numbers_and_truth_values_apart(tmp_path: Path) -> None:
    def ended(number: int, value: bool | int) -> ev.CandidateEnded:
        chosen = Schedule.of("tiled", {"pad": value})
        proposal = Proposal(0, (Move("avoid_bank_conflict", (("pad", value),)),), "r", "grid", "grid")
        outcome = Measured(verdict="slower", avg_us=1.0)
        return ev.CandidateEnded(candidate=number, round=1, outcome=outcome, proposal=proposal, schedule=chosen)

    history = History()
    events = [journals.created(), ended(0, True), ended(1, 1), ended(2, False), ended(3, 0)]
    for event in journals.stamped(iter(events)):
        history.apply(event)
    shown = [row.schedule.text for row in history.rows if row.schedule is not None]
    assert shown == ["tiled(pad=True)", "tiled(pad=1)", "tiled(pad=False)", "tiled(pad=0)"]
    assert [row.proposal.text for row in history.rows][:2] == [
        "avoid_bank_conflict(True)", "avoid_bank_conflict(1)",
    ]  # fmt: skip


def test_the_fold_of_a_journal_with_any_line_missing_never_throws() -> None:
    events = list(journals.stamped(journals.unstamped(25)))
    for hole in range(1, len(events)):
        history = History()
        for event in events[:hole] + events[hole + 1 :]:
            history.apply(event)
        assert [row.number for row in history.rows] == list(range(len(history.rows)))
        assert len(history.rows) >= 24
        assert sum(row.outcome is None for row in history.rows) <= 1  # whose end it was runs again
        if history.incumbent is not None:
            history.lineage(history.incumbent)


def test_a_candidate_number_out_of_all_reason_makes_no_rows() -> None:
    history = History()
    events = [
        journals.created(),
        ev.CandidateEnded(candidate=10**12, round=1, outcome=Measured(avg_us=1.0)),
        ev.CandidateEnded(candidate=-1, round=1, outcome=Measured(avg_us=1.0)),
    ]
    for event in journals.stamped(iter(events)):
        history.apply(event)
    assert history.rows == []


def test_followers_that_came_early_and_late_see_the_same(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    encoder = msgspec.json.Encoder()
    events = list(journals.stamped(journals.unstamped(40)))
    journal.write_bytes(b"")
    early = snapshot.fold(tmp_path)
    for block in itertools.batched(events, 7) if hasattr(itertools, "batched") else [events[:50], events[50:]]:
        with journal.open("ab") as file:
            file.write(b"".join(encoder.encode(event) + b"\n" for event in block))
        snapshot.fold_new(early.history, early.reader)
    late = snapshot.fold(tmp_path)
    assert late.history == early.history
    assert state_now(late.history.state, tmp_path) == "gone"  # it says that it runs, and nobody holds the lock


def test_twenty_thousand_candidates_keep_rows_below_a_kilobyte(soak_share: float) -> None:
    history = History()
    count = round(20_000 * soak_share)
    for event in journals.stamped(journals.unstamped(count)):
        history.apply(event)
    assert len(history.rows) == count
    assert max(len(msgspec.json.encode(row)) for row in history.rows) <= 1024
