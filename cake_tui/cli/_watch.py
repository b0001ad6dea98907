"""Start an engine for a command and show it: a viewer at a terminal, plain lines elsewhere."""

from __future__ import annotations

from pathlib import Path

from cake_tui.config import sessions_dir
from cake_tui.engine.process import Started, Work, detach
from cake_tui.errors import OK
from cake_tui.store.lock import engine_of
from cake_tui.tui import Look, has_screen
from cake_tui.tui import view as open_viewer


def run_engine(work: Work, path: Path, *, headless: bool) -> int:
    """Run `work` here (headless) or detached; then watch it, where there is a terminal to watch it on."""
    if headless:
        return work(_nobody)
    started = detach(work)
    for notice in started.notices:
        print(notice)
    if has_screen():
        return view(path)
    print(f"session {path.name} runs detached (PID {started.pid}), in {path}")
    print(come_back(path))
    return OK


def view(path: Path, *, read_only: bool = False, look: Look | None = None) -> int:
    """Open the viewer on a session; when its screen is closed, say how to come back."""
    code = open_viewer(path, read_only=read_only, look=look or Look())
    if has_screen():
        print(come_back(path))
    return code


def come_back(path: Path) -> str:
    """How to look at a session again, and how to end it or to go on with it."""
    where = "" if path.parent == sessions_dir().absolute() else f" --sessions {path.parent}"
    words = ("stop it", "stop") if engine_of(path) is not None else ("go on", "resume")
    return f"come back: cake-tui attach {path.name}{where} · {words[0]}: cake-tui {words[1]} {path.name}{where}"


def _nobody(started: Started) -> None:
    """In the foreground nobody waits for the announcement: its notices are progress lines already."""
