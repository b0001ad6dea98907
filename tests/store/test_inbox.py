"""The inbox: whole requests or none, each id once, and no file that anybody drops can hurt the run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from cake_tui.model import event as ev
from cake_tui.store.clock import Clocks
from cake_tui.store.inbox import LARGEST, Answers, Inbox, Refusal, Request, new_id, send, wait_for
from cake_tui.store.journal import Journal


@pytest.fixture
def session(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "journal.jsonl").touch()
    return tmp_path


def drain(inbox: Inbox) -> list[Request | Refusal]:
    found = []
    while True:
        block = list(inbox.waiting())
        for path, request in block:
            found.append(request)
            inbox.done(path)
        if not block:
            return found


def test_requests_arrive_whole_in_the_order_sent(session: Path) -> None:
    ids = [send(session, "mark", {"note": f"[/x] {number} 三"}, who="me") for number in range(20)]
    found = drain(Inbox(session))
    assert [request.id for request in found] == ids
    assert all(isinstance(request, Request) and request.what == "mark" and request.who == "me" for request in found)
    assert [request.body["note"] for request in found if isinstance(request, Request)][3] == "[/x] 3 三"
    assert list((session / "inbox").iterdir()) == []


def test_an_id_sent_again_is_one_file(session: Path) -> None:
    first = send(session, "pause")
    assert send(session, "pause", id=first) == first
    assert len(drain(Inbox(session))) == 1


def test_bytes_that_are_no_utf8_can_be_sent(session: Path) -> None:
    send(session, "mark", {"note": os.fsdecode(b"caf\xe9 \xff")})
    (request,) = drain(Inbox(session))
    assert isinstance(request, Request)
    assert request.body["note"] == "caf� �"


def request_bytes(**changes: object) -> bytes:
    return json.dumps({"id": "good-1", "who": "me", "what": "pause", "body": {}, "v": 1, **changes}).encode()


HOSTILE: dict[str, bytes] = {
    "binary.json": bytes(range(256)),
    "big.json": b"x" * (10 << 20),
    "almost.json": b'{"id":"' + b"x" * LARGEST + b'"}',
    "half.json": request_bytes(id="half")[:-9],
    "newer.json": request_bytes(id="newer", v=2),
    "unknown.json": request_bytes(id="unknown", what="format-disk"),
    "other-name.json": request_bytes(id="good-1"),
    "list.json": b"[]",
    "deep.json": b"[" * 30_000,
    "null.json": b"\0" * 4096,
    "empty.json": b"",
    "body.json": request_bytes(id="body", body=[1]),
    "no-request.txt": b"hello",
    "we ird[dim]\x1b[31m.json": request_bytes(),
    "surrogate.json": b'{"id":"surrogate","who":"\\ud800","what":"pause","v":1}',
}


def test_hostile_files_are_refused_one_by_one_with_a_reason(session: Path) -> None:
    inbox = session / "inbox"
    for name, content in HOSTILE.items():
        (inbox / name).write_bytes(content)
    (session / "secret").write_bytes(request_bytes(id="link"))
    (inbox / "link.json").symlink_to(session / "secret")
    (inbox / "dangling.json").symlink_to(session / "nowhere")
    (inbox / "folder.json").mkdir()
    (inbox / "folder.json" / "inside").write_text("x", encoding="utf-8")
    os.mkfifo(inbox / "pipe.json")
    (inbox / "unreadable.json").write_bytes(request_bytes(id="unreadable"))
    (inbox / "unreadable.json").chmod(0)
    good = send(session, "pause", who="me")
    found = drain(Inbox(session))
    requests = {request.id for request in found if isinstance(request, Request)}
    refusals = [request for request in found if isinstance(request, Refusal)]
    # root may read everything
    assert requests - {"unreadable"} == {good}
    assert len(found) == len(HOSTILE) + 6
    assert all(refusal.reason and len(refusal.reason) < 300 for refusal in refusals)
    assert all(refusal.id.isprintable() for refusal in refusals)
    assert drain(Inbox(session)) == []
    assert (session / "secret").exists()
    for refusal in refusals:
        msgspec.json.encode(refusal)


def test_ten_thousand_at_once_are_taken_in_bites(session: Path, soak_share: float) -> None:
    count = round(10_000 * soak_share)
    for number in range(count):
        (session / "inbox" / f"{number}.json").write_bytes(b"?")
    inbox = Inbox(session)
    assert len(list(inbox.waiting())) == 100
    assert len(drain(inbox)) == count


def test_a_file_that_will_not_go_is_answered_once(session: Path) -> None:
    inbox = Inbox(session)
    send(session, "pause")
    ((path, _),) = inbox.waiting()
    inbox._stuck.add(path.name)
    assert list(inbox.waiting()) == []


def test_what_killed_senders_left_is_swept_in_time(session: Path) -> None:
    old, new = session / "inbox" / ".old.json.1.new", session / "inbox" / ".new.json.2.new"
    for path in (old, new):
        path.write_text("half", encoding="utf-8")
    os.utime(old, (1, 1))
    inbox = Inbox(session)
    assert drain(inbox) == []
    inbox.sweep()
    assert not old.exists()
    assert new.exists()


def test_a_sender_killed_at_any_moment_sends_once_or_not_at_all(session: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from cake_tui.store.inbox import send\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    print(send(Path(sys.argv[1]), 'inject', {'text': 'apply_unroll(4)' * 50}), flush=True)\n"
    )
    rng = random.Random(3)
    inbox = Inbox(session)
    told: list[str] = []
    for _ in range(6):
        sender = subprocess.Popen([sys.executable, "-c", program, str(session)], stdout=subprocess.PIPE, text=True)
        assert sender.stdout is not None
        sender.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.02))
        sender.send_signal(signal.SIGKILL)
        told += sender.communicate()[0].split()
    found = drain(inbox)
    ids = [request.id for request in found]
    assert all(isinstance(request, Request) for request in found)
    assert len(ids) == len(set(ids))
    assert set(told) - set(ids) in (set(), {told[-1]} if told and len(told[-1]) < 33 else set())


def test_answers_come_from_the_journal(session: Path) -> None:
    answers = Answers(session)
    sent, refused, unknown = new_id(), new_id(), new_id()
    journal = Journal(session / "journal.jsonl", Clocks())
    journal.append(
        ev.RequestTaken(id=sent, who="me", what="pause"),
        ev.RequestRefused(id=refused, who="me", what="undo", reason="nothing is queued"),
    )
    taken = answers.wait_for(sent, 1.0)
    assert isinstance(taken, ev.RequestTaken)
    found = answers.wait_for(refused, 1.0)
    assert isinstance(found, ev.RequestRefused)
    assert found.reason == "nothing is queued"
    assert answers.wait_for(unknown, 0.1) is None
    assert wait_for(session, sent, 0.1) == taken
