"""Opens a session on this terminal: decides between screen and plain lines, guards the terminal."""

from __future__ import annotations

import locale
import os
import sys
from contextlib import suppress
from pathlib import Path

from cake_tui.config import settings_dir
from cake_tui.errors import DAMAGED, OK, UserError
from cake_tui.model import layout
from cake_tui.tui import has_screen, plain
from cake_tui.tui.bridge import Bridge
from cake_tui.tui.replay import ReplayBridge

NICENESS = 19  # a viewer is the gate's noise


def show(session_dir: Path, *, replayed: bool, read_only: bool, slow_link: bool, ascii: bool | None) -> int:  # noqa: A002
    """Run the viewer and return the exit code; raises UserError where the folder is no session."""
    folder = Path(session_dir)
    if not (folder / layout.JOURNAL).is_file():
        raise UserError(f"{folder}: no session here (it has no journal.jsonl); see: cake-tui list", DAMAGED)
    if not has_screen():
        return plain.recount(folder) if replayed else plain.glance(folder)
    with suppress(OSError):
        os.nice(NICENESS)
    bridge = ReplayBridge(folder) if replayed else Bridge(folder)
    try:
        return _on_screen(bridge, read_only, slow_link, ascii_wanted() if ascii is None else ascii)
    finally:
        bridge.close()


def ascii_wanted() -> bool:
    """The locale is not UTF-8: braille, boxes and arrows would arrive as question marks."""
    return "utf" not in locale.getpreferredencoding(False).lower()


def _on_screen(bridge: Bridge, read_only: bool, slow_link: bool, ascii: bool) -> int:  # noqa: A002
    from cake_tui.tui.app import CakeApp
    from cake_tui.tui.terminal import TerminalGuard

    app = CakeApp(bridge, read_only=read_only, slow_link=slow_link, ascii=ascii, settings=settings_dir())
    with TerminalGuard(lambda: app.call_later(app.exit, 0)) as guard:
        app.leaving = guard.hurry
        app.run(mouse=True)
        ended_by = guard.ended_by
    if app.crash is not None:
        print(f"the viewer failed; {_unharmed(bridge)}", file=sys.stderr)  # noqa: T201 the terminal is ours again
        raise app.crash
    return 128 + ended_by if ended_by else app.return_code or OK


def _unharmed(bridge: Bridge) -> str:
    """What a person wants to know first when the screen broke."""
    alive = bridge.engine_alive and not bridge.replay
    return f"the run goes on: cake-tui attach {bridge.name}" if alive else "the session's record is not touched"
