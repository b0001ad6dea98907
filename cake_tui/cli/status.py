"""Say in one line where a session stands, quickly; without a name, one line for each session."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from cake_tui.cli import Command
from cake_tui.cli._output import print_json
from cake_tui.cli._session import add_sessions_argument
from cake_tui.errors import DAMAGED, OK, UserError
from cake_tui.model import layout
from cake_tui.store import name as names
from cake_tui.store.line import seconds_text, time_text, visible
from cake_tui.store.lock import engine_of, state_now
from cake_tui.store.snapshot import fold, read_head
from cake_tui.store.summary import Summary, summarise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the session (all of them)")
    add_sessions_argument(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Read the snapshots' heads."""
    if args.name is not None:
        path = names.find(args.name, args.sessions)
        if args.json:
            print_json(summary_of(path))
        else:
            print(line_about(path))
        return OK
    folder = names.folder_of(args.sessions)
    found = [folder / name for name in names.all_names(args.sessions)]
    if args.json:
        print_json([summary_of(path) for path in found])
        return OK
    for path in found:
        print(line_about(path))
    if not found:
        print(f"no sessions in {folder}")
    return OK


def summary_of(path: Path) -> Summary:
    """Return a session's summary from its snapshot, else from its journal; raises UserError (DAMAGED)."""
    head = read_head(path)
    if head is not None:
        summary = head.summary
    else:
        history = fold(path).history
        if history.session is None:
            raise UserError(f"{path / layout.JOURNAL} holds no session", DAMAGED)
        summary = summarise(history)
    return msgspec.structs.replace(summary, state=state_now(summary.state, path))


def line_about(path: Path) -> str:
    """Return one line: state, budget, best, how long without a win."""
    summary = summary_of(path)
    counts = summary.candidates
    parts = [
        f"{summary.name} {summary.state.upper()}" + (f" ({summary.reason})" if summary.reason else ""),
        f"{counts.effective}/{counts.budget} candidates",
        f"{seconds_text(summary.elapsed_s)} of {summary.hours:g} h",
    ]
    if summary.best is not None:
        gain = f", {summary.speedup.baseline:.2f}× the baseline" if summary.speedup.baseline else ""
        parts.append(f"best #{summary.best.candidate} {time_text(summary.best.time_us)}{gain}")
        parts.append(f"{summary.stalled_rounds} rounds without a win")
    holder = engine_of(path)
    if holder is not None and holder.note:
        parts.append(holder.note)
    return visible(" · ".join(parts))


PLUGIN: Command = Command("cake-tui status first", add_arguments, run)
