"""Pitfalls 21 and 22: hostile requests harm nothing; a sender killed anywhere asks once or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import stat
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from cake_tui.model import event as ev
from cake_tui.store.inbox import new_id
from tests.cases.shell import Shell, ended, events, legal_move, log_of, variations
from tests.engine.scripted import folded, until


def request(**parts: object) -> bytes:
    return json.dumps({"v": 1, "id": new_id(), "who": "x", "what": "mark", "body": {"note": "n"}, **parts}).encode()


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def folder_with(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x", encoding="utf-8")


def unreadable(path: Path) -> None:
    path.write_bytes(request())
    path.chmod(0)


HOSTILE = {
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 8),
    "ten megabytes": lambda path: path.write_bytes(b"x" * (10 << 20)),
    "ten megabytes of JSON": lambda path: path.write_bytes(request(body={"note": "n" * (10 << 20)})),
    "half written": lambda path: path.write_bytes(request()[:-20]),
    "of another version": lambda path: path.write_bytes(request(v=7)),
    "of an unknown kind": lambda path: path.write_bytes(request(what="explode")),
    "empty": lambda path: path.write_bytes(b""),
    "a link to a secret": lambda path: path.symlink_to("/etc/passwd"),
    "a link to nowhere": lambda path: path.symlink_to("/nowhere"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder": lambda path: path.mkdir(),
    "a folder with something in it": folder_with,
    "a pipe": lambda path: os.mkfifo(path),
    "a socket": socket_at,
    "unreadable": unreadable,
    "deep": lambda path: path.write_bytes(b"[" * 60_000),
    "a number": lambda path: path.write_bytes(b"1e999"),
    "another id than its name": lambda path: path.write_bytes(request(id="another")),
    "a body that is no table": lambda path: path.write_bytes(request(body=[1, 2])),
    "a note that is no text": lambda path: path.write_bytes(request(body={"note": {"a": 1}})),
    "a note of half a character": lambda path: path.write_bytes(request().replace(b'"n"', b'"\\ud800"')),
    "no UTF-8": lambda path: path.write_bytes(request().replace(b'"n"', b'"\xff\xfe"')),
    "a move that is none": lambda path: path.write_bytes(request(what="inject", body={"text": "rm -rf / [/dim]"})),
    "a move of a megabyte": lambda path: path.write_bytes(request(what="inject", body={"text": "f(" * 20_000})),
    "a setting that is none": lambda path: path.write_bytes(request(what="set", body={"values": {"round": "NaN"}})),
    "an undo of nothing": lambda path: path.write_bytes(request(what="undo", body={"request": "x" * 1000})),
    "an action file": lambda path: path.write_bytes(request(what="actions", body={"add": "[[action]]\nname = 3"})),
    "a profile of nobody": lambda path: path.write_bytes(request(what="profile", body={"candidate": 10**30})),
}


def test_every_hostile_file_is_refused_and_the_run_goes_on(shell: Shell) -> None:
    session = shell.start()
    until(lambda: ended(session) >= 1)
    paths = {}
    for place, (name, make) in enumerate(HOSTILE.items()):
        hidden = session / "inbox" / f".{place}"
        make(hidden)
        paths[name] = session / "inbox" / f"{place:03}-hostile.json"
        hidden.rename(paths[name])
    for name in ("x" * 200 + ".json", "no ending", "ü[x].json", "a\nb.json", " .json"):
        (session / "inbox" / name).write_bytes(request())
    until(lambda: not [path for path in (session / "inbox").iterdir() if not path.name.startswith(".")])
    refused = events(session, ev.RequestRefused)
    assert len(refused) >= len(HOSTILE) + 4 - 2  # two may be taken for what they say
    assert all(one.reason for one in refused)
    assert len({one.id for one in refused}) == len(refused)
    assert "root:" not in (session / "journal.jsonl").read_text(encoding="utf-8")
    count = ended(session)
    until(lambda: ended(session) >= count + 2)
    assert "Traceback" not in log_of(session)
    assert max(map(len, (session / "journal.jsonl").read_bytes().splitlines())) < 100_000
    shell.here("stop", "a")
    assert folded(session).state == "stopped"
    for line in shell.here("tail", "a", "-n", "200").splitlines():
        assert "\x1b" not in line


@pytest.mark.soak
def test_ten_thousand_at_once(shell: Shell, soak_share: float) -> None:
    session = shell.start(device="ridge,series_s=0.02")
    until(lambda: ended(session) >= 1)
    count = round(10_000 * soak_share)
    for number in range(count):
        (session / "inbox" / f"many-{number}.json").write_bytes(b"?" if number % 2 else request(id=f"many-{number}"))
    seen = ended(session)
    until(lambda: len(events(session, ev.RequestRefused, ev.RequestTaken)) >= count, 120)
    until(lambda: ended(session) > seen)
    shell.here("stop", "a")
    answers = events(session, ev.RequestRefused, ev.RequestTaken)
    assert len({one.id for one in answers}) == len(answers)


def test_an_inbox_that_cannot_be_used_is_no_obstacle(shell: Shell) -> None:
    session = shell.start()
    until(lambda: ended(session) >= 1)
    (session / "inbox").rename(session / "gone")
    count = ended(session)
    until(lambda: ended(session) >= count + 1)
    err = shell.here("mark", "a", "x", code=3)
    assert err.count("\n") == 1
    assert "inbox" in err
    (session / "gone").rename(session / "inbox")
    assert "noted" in shell.here("mark", "a", "x")
    shell.here("stop", "a")


@pytest.mark.soak
def test_a_sender_killed_anywhere_asks_once_or_not_at_all(shell: Shell, soak_share: float) -> None:
    """Pitfall 22: and the next one who looks sees which."""
    rng = random.Random(7)
    session = shell.start()
    until(lambda: ended(session) >= 1)
    shell.here("pause", "a")
    sent = 0
    move = legal_move(session)
    for _ in range(max(4, round(60 * soak_share))):
        process = shell.popen("inject", "a", move, stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.05, 0.45))
        process.send_signal(signal.SIGKILL)
        sent += process.wait() == 0
    until(lambda: not list((session / "inbox").glob("*.json")))
    taken = [one for one in events(session, ev.RequestTaken) if one.what == "inject"]
    assert len({one.id for one in taken}) == len(taken)
    assert len(taken) >= sent
    assert list(folded(session).queue) == [one.id for one in taken]
    # The same id again, as after a lost connection: nothing happens.
    for one in taken:
        path = session / "inbox" / f"{one.id}.json"
        path.with_suffix(".part").write_bytes(request(id=one.id, what="inject", body={"text": "apply_unroll(2)"}))
        path.with_suffix(".part").rename(path)
    until(lambda: not list((session / "inbox").glob("*.json")))
    assert len([one for one in events(session, ev.RequestTaken) if one.what == "inject"]) == len(taken)
    left = [path for path in (session / "inbox").iterdir() if not path.name.startswith(".")]  # a half-written one
    assert left == []
    for _ in taken:
        assert "taken back" in shell.here("undo", "a")
    assert folded(session).queue == {}
    shell.here("stop", "a")


def test_requests_are_private(shell: Shell) -> None:
    session = shell.start()
    pid = shell.pid()
    os.kill(pid, signal.SIGSTOP)
    process = shell.popen("mark", "a", "secret", stdout=subprocess.DEVNULL)
    until(lambda: list((session / "inbox").glob("*.json")))
    (path,) = (session / "inbox").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(session.stat().st_mode) == 0o700
    os.kill(pid, signal.SIGCONT)
    assert process.wait(60) == 0
    shell.here("stop", "a")


BUSY = {
    "a compiler that takes a minute": "ridge,compile_s=60",
    "a check that takes a minute": "ridge,check_s=60",
    "series that take a minute": "ridge,series_s=60",
    "a compiler that never ends": "ridge,compile_hangs=1,compile_s=0.05",
}


@pytest.mark.parametrize("device", variations(BUSY, 2))
def test_requests_are_answered_in_the_middle_of_a_long_step(shell: Shell, device: str) -> None:
    """Within two seconds, by the record's own clock: sent as ids that hold their time."""
    session = shell.start(device=BUSY[device])
    wanted = ev.BuildEnded if "check" in device or "series" in device else ev.SelfTestEnded
    until(lambda: events(session, wanted))
    time.sleep(0.5)
    requests = (("pause",), ("resume",), ("mark", "x"), ("inject", "use_tiled_loops()"), ("set", "round=5"), ("stop",))
    for name, *words in requests:
        shell.here(name, "a", *words)
    for one in events(session, ev.RequestTaken):
        asked = int(one.id.split("-")[0]) / 1e9
        assert datetime.fromisoformat(one.t).timestamp() - asked < 2.0, one
    assert [one.what for one in events(session, ev.RequestTaken)] == [name for name, *_ in requests]
    assert folded(session).state == "stopped"


def test_a_pause_holds_between_two_steps_and_costs_no_budget(shell: Shell) -> None:
    session = shell.brisk()
    until(lambda: ended(session) >= 1)
    shell.here("pause", "a")
    record = shell.still()
    elapsed = folded(session).elapsed_s
    time.sleep(0.7)
    assert (session / "journal.jsonl").read_bytes() == record
    assert "PAUSED" in shell.here("status", "a")
    shell.here("resume", "a")
    count = ended(session)
    until(lambda: ended(session) > count)
    shell.here("stop", "a")
    monos = [one.mono for one in events(session, ev.Event)]
    assert folded(session).elapsed_s < monos[-1] - monos[0] - 1.1
    assert folded(session).elapsed_s > elapsed
