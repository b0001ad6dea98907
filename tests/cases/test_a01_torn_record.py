"""A01 and pitfall 16: a half-written last record never swallows the next one, wherever it was cut."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.model.history import History
from tests.cases.shell import SLOW, Shell, descendants, events, variations
from tests.engine.scripted import folded, gone, until

CANDIDATES = 200


def lines_of(session: Path) -> list[bytes]:
    return (session / "journal.jsonl").read_bytes().splitlines(keepends=True)


def whole(session: Path) -> bool:
    """Every line is one event."""
    lines = lines_of(session)
    values = [json.loads(line) for line in lines]
    return all(isinstance(one, dict) and line.count(b'"seq":') == 1 for one, line in zip(values, lines))


def kept(before: History, after: History, rows: int) -> bool:
    return after.rows[:rows] == before.rows[:rows]


@pytest.mark.soak
def test_the_case_itself(shell: Shell, soak_share: float) -> None:
    """As it was reported: finish, cut 17 bytes, resume, three more, stop, resume again."""
    count = max(10, round(CANDIDATES * soak_share))
    session = shell.headless(candidates=count)
    lines = lines_of(session)
    last = max(number for number, line in enumerate(lines) if b'"kind":"CandidateEnded"' in line)
    number = json.loads(lines[last])["candidate"]
    (session / "journal.jsonl").write_bytes(b"".join(lines[: last + 1])[:-17])
    before = folded(session)
    best = (before.incumbent, before.rows[before.incumbent or 0])

    out, _ = shell.apart("resume", "a", "--candidates", str(count + 3), "--headless")
    told = [line for line in out.splitlines() if "half written" in line]
    assert len(told) == 1
    for part in (str(session / "journal.jsonl"), f"line {last + 1} ", f"{len(lines[last]) - 17} bytes"):
        assert part in told[0]
    assert f"candidate {number} run again" in told[0] or "no candidate has to run again" in told[0]
    assert (session / f"journal.jsonl.torn-{last + 1}").read_bytes() == lines[last][:-17] + b"\n"
    first = folded(session)
    assert kept(before, first, number)
    assert first.effective >= count + 3
    assert whole(session)

    out, _ = shell.apart("resume", "a", "--candidates", str(count + 4), "--headless")
    assert "half written" not in out
    after = folded(session)
    assert kept(first, after, len(first.rows))
    assert whole(session)
    assert after.rows[best[0] or 0] == best[1]
    assert after.incumbent == best[0] or after.rows[after.incumbent or 0].verdict == "accepted"


CUTS = {
    "one byte before the end of the line": lambda line: line[:-2],
    "only the end of the line": lambda line: line[:-1],
    "in the middle": lambda line: line[: len(line) // 2],
    "after the first byte": lambda line: line[:1],
    "inside a character": lambda line: line[: line.index("é".encode()) + 1],
    "overwritten with zeros": lambda line: b"\0" * 512,
    "zeros behind a half": lambda line: line[: len(line) // 2] + b"\0" * 300,
}


@pytest.mark.parametrize("cut", variations(CUTS, 2))
def test_wherever_the_last_line_was_cut(shell: Shell, recorded: Path, cut: str) -> None:
    lines = lines_of(recorded)
    note = json.dumps({**json.loads(lines[-1]), "kind": "Noticed", "level": "info", "text": "é"}, ensure_ascii=False)
    lines.append(note.encode() + b"\n")
    stub = CUTS[cut](lines[-1])
    (recorded / "journal.jsonl").write_bytes(b"".join(lines[:-1]) + stub)
    before = folded(recorded)
    out, _ = shell.apart("resume", "a", "--candidates", str(before.effective + 1), "--headless")
    intact = cut == "only the end of the line"
    assert out.count("half written") == (0 if intact else 1)
    after = folded(recorded)
    assert whole(recorded)
    assert kept(before, after, len(before.rows))
    assert after.effective > before.effective
    side = list(recorded.glob("journal.jsonl.torn-*"))
    assert [path.read_bytes() for path in side] == ([] if intact else [stub + b"\n"])
    assert "no candidate has to run again" in out or intact


def test_a_record_cut_at_its_first_line_is_damaged_and_kept(shell: Shell, recorded: Path) -> None:
    content = lines_of(recorded)[0][:-30]
    (recorded / "journal.jsonl").write_bytes(content)
    _, err = shell.apart("resume", "a", "--headless", code=5)
    assert err.count("\n") == 1
    assert "holds no session" in err
    assert [path.read_bytes() for path in recorded.glob("journal.jsonl.torn-1")] == [content + b"\n"]


def test_readers_never_stumble_over_a_line_that_is_being_written(shell: Shell, recorded: Path) -> None:
    content = (recorded / "journal.jsonl").read_bytes()
    expected = shell.json("show", "a")["candidates"]
    for cut in (1, 17, 200):
        (recorded / "journal.jsonl").write_bytes(content[:-cut])
        (recorded / "snapshot.json").unlink(missing_ok=True)
        assert shell.json("show", "a")["candidates"] == expected
        for command in ("status", "tail", "attach", "replay"):
            assert shell.here(command, "a")
        assert (recorded / "journal.jsonl").read_bytes() == content[:-cut]


def test_kill_9_while_the_record_is_written(shell: Shell, soak_share: float) -> None:
    """Pitfall 16: at any byte of an append, as often as the engine appends."""
    rng = random.Random(3)
    session = shell.start(device=SLOW, candidates=10_000)
    for _ in range(max(1, round(20 * soak_share))):
        size = (session / "journal.jsonl").stat().st_size
        until(lambda size=size: (session / "journal.jsonl").stat().st_size > size)
        time.sleep(rng.uniform(0, 0.2))
        pid = shell.pid()
        children = descendants(pid)
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid, children=children: all(map(gone, [pid, *children])))
        before = folded(session)
        out, _ = shell.apart("resume", "a")
        assert out.count("half written") <= 1
        until(lambda: len(events(session, ev.EngineStarted)) > 1)
        after = folded(session)
        ended = [row for row in before.rows if not row.in_flight]
        assert [after.rows[row.number] for row in ended] == ended
    shell.here("stop", "a")
    assert whole(session)
