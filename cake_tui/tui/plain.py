"""The viewer without a screen: plain lines for pipes, logs and dumb terminals; no escapes, no Textual."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from cake_tui.store.follower import ENDED
from cake_tui.store.line import line_of
from cake_tui.tui import format as fmt
from cake_tui.tui.bridge import Bridge, ReplayBridge
from cake_tui.tui.view import View, view_of

BEFORE = 10  # lines of the past shown on attaching
STATUS_S = 30.0
POLL_S = 0.5


def follow(folder: Path, out: TextIO, you: str, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Print the last events, then each as it comes, until the run ends or its engine is gone; returns 0.

    A status line comes every 30 s, so that a quiet run is told from a dead one. Raises BrokenPipeError
    when nobody reads any more.
    """
    bridge = Bridge(folder)
    past: deque[str] = deque(maxlen=BEFORE)
    said = time.monotonic()
    history = bridge.fold.history
    for line in _new_lines(bridge):
        past.append(line)
    _print(out, status_line(view_of(bridge, you=you, selected=None)))
    for line in past:
        _print(out, line)
    while True:
        history = bridge.fold.history
        if history.state in ENDED or bridge.engine_alive is False:
            _print(out, status_line(view_of(bridge, you=you, selected=None)))
            return 0
        sleep(POLL_S)
        for line in _new_lines(bridge):
            _print(out, line)
        if time.monotonic() - said >= STATUS_S:
            said = time.monotonic()
            _print(out, status_line(view_of(bridge, you=you, selected=None)))


def recount(folder: Path, out: TextIO, you: str) -> int:
    """Print all events of a session and how it stands at the end of the record; returns 0."""
    bridge = ReplayBridge(folder)
    for line in _new_lines(bridge):
        _print(out, line)
    _print(out, status_line(view_of(bridge, you=you, selected=None)))
    return 0


def status_line(view: View) -> str:
    """``RUNNING  0:42  150 of 600 candidates  best #127 1.520 ms ...`` on one line."""
    history = view.history
    parts = [view.status.word, view.status.detail, fmt.duration(history.elapsed_s)]
    wanted = int(view.budget("candidates", 0))
    parts.append(f"{history.effective}{f' of {wanted}' if wanted else ''} candidates")
    if history.incumbent is not None:
        parts.append(f"best #{history.incumbent} {fmt.time(view.best_us)}")
        parts.append(fmt.rate(view.flops, view.best_us) if view.flops else "")
        parts.append(f"{fmt.ratio(view.speedup)} baseline")
        parts += [f"{fmt.ratio(peer.ratio)} {fmt.visible(name, 20)}" for name, peer in history.peers.items()]
    return "  ".join(part for part in parts if part)


def _new_lines(bridge: Bridge) -> list[str]:
    """Poll and say what is new, in the words of ``tail``."""
    first = len(bridge.reader)
    bridge.poll()
    lines = []
    for index in range(first, len(bridge.reader)):
        event = bridge.reader.event(index)
        text = line_of(event, bridge.fold.history) if event is not None else None
        if event is not None and text is not None:
            lines.append(f"{fmt.clock(event.t)}  {text}")
    return lines


def _print(out: TextIO, text: str) -> None:
    encoding = (out.encoding or "ascii").lower().replace("-", "")
    out.write((text if encoding == "utf8" else fmt.ascii_only(text)) + "\n")
    out.flush()
