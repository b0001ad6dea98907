"""Print a session's last events, one line each; with -f also the new ones, until its engine ends."""

from __future__ import annotations

import argparse
import time
from collections import deque
from pathlib import Path

import msgspec

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.errors import OK, UserError
from cake_tui.model import layout
from cake_tui.model.event import Event
from cake_tui.model.history import History
from cake_tui.model.state import ENDED
from cake_tui.store.line import line_of
from cake_tui.store.lock import engine_of
from cake_tui.store.reading import JournalReader

_POLL_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and how much of it."""
    add_session_arguments(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the engine ends")
    parser.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="how many of the last (20)")
    parser.add_argument("--json", action="store_true", help="the events themselves")


def run(args: argparse.Namespace) -> int:
    """Fold the journal, print its end, follow it where asked to."""
    if args.lines < 0:
        raise UserError(f"-n: found {args.lines}, allowed: 0 or more")
    path = folder_of(args)
    lines = Lines(path, as_json=args.json)
    for line in deque(lines.new(), maxlen=args.lines):
        print(line)
    while args.follow:
        alive = engine_of(path) is not None
        for line in lines.new():
            print(line, flush=True)
        if not alive or lines.history.state in ENDED:
            break
        time.sleep(_POLL_S)
    return OK


class Lines:
    """Turns a growing journal into lines."""

    def __init__(self, path: Path, *, as_json: bool = False) -> None:
        self.history = History()
        self._reader = JournalReader(path / layout.JOURNAL)
        self._as_json = as_json

    def new(self) -> deque[str]:
        """Return the lines of what was appended since the last call."""
        found: deque[str] = deque(maxlen=100_000)
        for event in self._reader.read():
            if event.seq <= self.history.seq:
                continue
            self.history.apply(event)
            text = self._text(event)
            if text is not None:
                found.append(text)
        return found

    def _text(self, event: Event) -> str | None:
        if self._as_json:
            return msgspec.json.encode(event).decode()
        line = line_of(event, self.history)
        return f"{event.t}  {line}" if line is not None else None


def last_lines(path: Path, most: int) -> list[str]:
    """Return a session's last lines."""
    return list(deque(Lines(path).new(), maxlen=most))


PLUGIN: Command = Command("cake-tui tail first -f", add_arguments, run)
