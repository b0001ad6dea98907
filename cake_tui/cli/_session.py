"""What commands about a session share: its name and folder on the command line, asking its engine."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from cake_tui.config import user_name
from cake_tui.errors import BUSY, ENVIRONMENT, OK, USAGE, UserError, quoted
from cake_tui.model import layout
from cake_tui.model.event import Event, RequestRefused
from cake_tui.store import name as names
from cake_tui.store.inbox import Answers, Kind, send
from cake_tui.store.lock import Holder, engine_of

ANSWER_S = 10.0
_LONGEST_NAME = 255  # bytes; what file systems have room for


def add_sessions_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--sessions``."""
    parser.add_argument("--sessions", metavar="DIR", type=folder, help="folder of the sessions (sessions/)")


def folder(text: str) -> Path:
    """Return the folder that a flag names; an empty text, as of a variable that is not set, names none."""
    path = Path(text)
    if not text.strip() or "\0" in text or any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.parts):
        raise argparse.ArgumentTypeError(f"found {quoted(text)}, allowed: the name of a folder")
    return path


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session's name and ``--sessions``."""
    parser.add_argument("name", metavar="NAME", help="the session")
    add_sessions_argument(parser)


def folder_of(args: argparse.Namespace) -> Path:
    """Return the folder of the session that the arguments name; raises UserError."""
    return names.find(args.name, args.sessions)


def refuse_unless_running(path: Path) -> Holder:
    """Return who runs a session; raises UserError where no engine does."""
    holder = engine_of(path)
    if holder is None:
        raise UserError(f'session "{path.name}" is not running; go on with it: cake-tui resume {path.name}')
    return holder


def ask(args: argparse.Namespace, what: Kind, body: dict[str, Any] | None = None, *, done: str) -> int:
    """Send a request to the session's engine and print what became of it; `done` says that it was taken.

    Raises UserError where no engine runs, or it refuses.
    """
    path = folder_of(args)
    holder = refuse_unless_running(path)
    answers = Answers(path)
    try:
        sent = send(path, what, body)
    except OSError as error:
        instead = f"; end it in order with: kill {holder.pid}" if what == "stop" else ""
        raise UserError(f"{path / layout.INBOX}: {error.strerror}; nothing was asked{instead}", ENVIRONMENT) from None
    answer = _answer(answers, sent, path)
    if answer is None:
        print(f"{path.name}: {_unanswered(engine_of(path), what, sent)}")
        return OK
    if isinstance(answer, RequestRefused):
        raise UserError(f"{path.name}: {answer.reason}", BUSY if answer.what == "resume" else USAGE)
    print(f"{path.name}: {done.format(id=sent, who=user_name())}")
    return OK


def _answer(answers: Answers, sent: str, path: Path) -> Event | None:
    """Wait for the answer for as long as there is an engine to give it, at most `ANSWER_S`."""
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline and engine_of(path) is not None:
        if (answer := answers.wait_for(sent, 0.2)) is not None:
            return answer
    return answers.wait_for(sent, 0.0)


def _unanswered(engine: Holder | None, what: Kind, sent: str) -> str:
    """Say what becomes of a request that the record has no answer to."""
    if engine is not None:
        note = f" ({engine.note})" if engine.note else ""
        return f"the engine has not answered within {ANSWER_S:g} s{note}; it will act on request {sent}"
    if what in ("pause", "resume", "stop"):
        return "the engine ended before it could answer"
    return f"the engine ended before it could answer; request {sent} waits for a resume"
