"""The viewer without a screen: plain lines for pipes, logs and dumb terminals; no escapes, no Textual."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TextIO

from cake_tui.store.line import line_of
from cake_tui.tui import format as fmt
from cake_tui.tui.bridge import Bridge, ReplayBridge
from cake_tui.tui.views import View, view_of

LAST = 10


def glance(folder: Path, out: TextIO, you: str) -> int:
    """Print where the session stands and its last lines; returns 0 at once (``tail -f`` follows).

    Raises BrokenPipeError when nobody reads any more.
    """
    bridge = Bridge(folder)
    lines = deque(_new_lines(bridge), maxlen=LAST)
    _print(out, status_line(view_of(bridge, you=you, selected=None)))
    for line in lines:
        _print(out, line)
    return 0


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
