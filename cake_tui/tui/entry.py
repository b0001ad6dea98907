"""Opens a session on this terminal: decides between screen and plain lines, guards the terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from cake_tui.config import environment, settings_dir
from cake_tui.errors import DAMAGED, OK, UserError
from cake_tui.model import layout
from cake_tui.tui import Look, has_screen, plain
from cake_tui.tui.bridge import Bridge
from cake_tui.tui.replay import ReplayBridge

NICENESS = 19  # a viewer is the gate's noise


def show(session_dir: Path, *, replayed: bool, read_only: bool, look: Look) -> int:
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
        return _on_screen(bridge, read_only, look)
    finally:
        bridge.close()


def ascii_wanted() -> bool:
    """The locale is not UTF-8: boxes and arrows would arrive as question marks.

    The interpreter sets LC_CTYPE where the locale is C (PEP 538): then LANG tells what the person has.
    """
    named = [environment(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if named[1] in ("C.UTF-8", "C.utf8", "UTF-8") and named[2]:
        named[1] = None
    wanted = next(filter(None, named), None)
    return wanted is not None and "utf" not in wanted.lower()


def light_ground() -> bool:
    """The terminal says that its ground is white (7) or bright white (15); most say nothing."""
    return (environment("COLORFGBG") or "").rpartition(";")[2] in ("7", "15")


def _on_screen(bridge: Bridge, read_only: bool, look: Look) -> int:
    from cake_tui.tui.app import CakeApp
    from cake_tui.tui.terminal import TerminalGuard

    app = CakeApp(
        bridge,
        read_only=read_only,
        slow_link=look.slow_link,
        ascii=ascii_wanted() if look.ascii is None else look.ascii,
        light=light_ground() if look.light is None else look.light,
        settings=settings_dir(),
    )
    with TerminalGuard(lambda: app.call_later(app.exit, 0)) as guard:
        app.leaving = guard.hurry
        app.run(mouse=look.mouse)
        ended_by = guard.ended_by
    if app.crash is not None:
        print(f"the viewer failed; {_unharmed(bridge)}", file=sys.stderr)  # noqa: T201 the terminal is ours again
        raise app.crash
    return 128 + ended_by if ended_by else app.return_code or OK


def _unharmed(bridge: Bridge) -> str:
    """What a person wants to know first when the screen broke."""
    alive = bridge.engine_alive and not bridge.replay
    return f"the run goes on: cake-tui attach {bridge.name}" if alive else "the session's record is not touched"
