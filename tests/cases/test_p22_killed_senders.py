"""Pitfall 22: a viewer is killed at any point of sending: the run acts once or not at all, and shows which."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cake_tui.model import event as ev
from cake_tui.store import files, inbox
from tests.cases.shell import SLOW, Shell, events
from tests.engine.scripted import until
from tests.tui.pty_terminal import PtyTerminal

WATCHED = (inbox.__file__, files.__file__)

# A viewer that is killed right before so many lines of sending have run.
VIEWER = """
import sys
from tests.cases.test_p22_killed_senders import Steps
sys.settrace(Steps(int(sys.argv.pop(1))))
from cake_tui.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Steps:
    """A tracer that counts the lines run while a request is sent, and kills its process before the line `fatal`."""

    def __init__(self, fatal: int = 0) -> None:
        self.fatal = fatal
        self.count = 0
        self.sending = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename == WATCHED[0] and code.co_name == "send":
            self.sending = True
            return self._line
        return self._line if self.sending and code.co_filename in WATCHED else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)
        elif event == "return" and frame.f_code.co_name == "send":
            self.sending = False
        return self._line


def steps_of_sending(folder: Path) -> int:
    """How many lines run while a request is sent."""
    steps, before = Steps(), sys.gettrace()
    sys.settrace(steps)
    try:
        inbox.send(folder, "mark", {"note": "whole"}, who="anna")
    finally:
        sys.settrace(before)
    return steps.count


def sent_and_killed(folder: Path, fatal: int) -> None:
    """Send a request from a process that is killed before that line."""
    child = os.fork()
    if not child:
        sys.settrace(Steps(fatal))
        inbox.send(folder, "mark", {"note": f"killed at {fatal}"}, who="anna")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def arrived(folder: Path) -> list[Any]:
    """What an engine would read from an inbox."""
    return [request for _, request in inbox.Inbox(folder).waiting()]


def with_inbox(folder: Path) -> Path:
    (folder / "inbox").mkdir(parents=True)
    return folder


def test_a_request_is_there_whole_or_not_at_all_wherever_its_sender_is_killed(tmp_path: Path) -> None:
    steps = steps_of_sending(with_inbox(tmp_path / "whole"))
    assert steps > 20
    there: list[bool] = []
    for fatal in range(1, steps + 1):
        folder = with_inbox(tmp_path / str(fatal))
        sent_and_killed(folder, fatal)
        found = arrived(folder)
        assert [(one.what, one.who, one.body) for one in found] in (
            [], [("mark", "anna", {"note": f"killed at {fatal}"})],
        )  # fmt: skip
        there.append(bool(found))
    assert there == sorted(there)  # from one line on it is there
    assert {True, False} == set(there)


def test_what_a_killed_sender_left_is_neither_read_nor_kept(tmp_path: Path) -> None:
    folder = with_inbox(tmp_path / "session")
    for fatal in range(1, steps_of_sending(with_inbox(tmp_path / "whole"))):
        sent_and_killed(folder, fatal)
    left = list((folder / "inbox").glob(".*.new"))
    assert left
    assert all(isinstance(request, inbox.Request) for request in arrived(folder))
    for path in left:
        os.utime(path, (0, 0))
    inbox.Inbox(folder).sweep()
    assert not list((folder / "inbox").glob(".*.new"))


def note_by_a_doomed_viewer(session: Path, note: str, fatal: int, rng: random.Random) -> None:
    """Attach, type a note, send it; the viewer is killed at that line of sending, or at some moment around it."""
    doomed = {"code": VIEWER} if fatal else {}
    words = ([str(fatal)] if fatal else []) + ["attach", "a", "--sessions", str(session.parent)]
    with PtyTerminal(*words, **doomed) as terminal:  # type: ignore[arg-type]
        terminal.wait_for("candidates")
        terminal.send("m")
        terminal.wait_for("a note for the journal")
        terminal.send(note)
        terminal.wait_for(note)
        terminal.send("\r")
        if not fatal:
            time.sleep(rng.uniform(0.0, 0.03))
            terminal.process.kill()
        assert terminal.process.wait(10) == -signal.SIGKILL


@pytest.mark.soak
def test_a_run_acts_once_or_never_on_what_a_killed_viewer_sent_and_the_next_viewer_shows_which(
    shell: Shell, soak_share: float
) -> None:
    steps = steps_of_sending(with_inbox(shell.folder / "whole"))
    rng = random.Random(22)
    everywhere = [*range(1, steps + 1), *[0] * 20]
    fatal = everywhere if soak_share == 1 else [1, steps // 2, steps, 0]
    session = shell.start(device=SLOW, candidates=5_000)
    for place, line in enumerate(fatal):
        note_by_a_doomed_viewer(session, f"note-{place:03}-", line, rng)
    until(lambda: not list((session / "inbox").glob("*.json")), 10)
    taken = [event.body["note"] for event in events(session, ev.RequestTaken) if event.what == "mark"]
    assert len(taken) == len(set(taken))
    assert f"note-{fatal.index(1):03}-" not in taken
    assert f"note-{fatal.index(steps):03}-" in taken
    assert not events(session, ev.RequestRefused)
    with PtyTerminal("attach", "a", "--sessions", str(session.parent), rows=300) as terminal:
        terminal.wait_for("candidates")
        for keys, shown in (("7", "━ 7 log"), ("/", "/ filter by words"), ("note-", "/note- · "), ("\r", "/note- · ")):
            terminal.send(keys)
            terminal.wait_for(shown)
        terminal.read(2.0)  # the record is searched in slices
        assert sorted(set(re.findall(r"note-\d{3}-", terminal.text()))) == sorted(taken)
    shell.apart("stop", "a")
