"""List the sessions: state, kernel, candidates, best."""

from __future__ import annotations

import argparse

from cake_tui import figures
from cake_tui.cli import Command
from cake_tui.cli._output import print_json
from cake_tui.cli._session import add_sessions_argument
from cake_tui.errors import OK, UserError
from cake_tui.store import name as names
from cake_tui.store.line import visible
from cake_tui.store.progress import summary_of, trouble_with
from cake_tui.store.summary import Summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder."""
    add_sessions_argument(parser)
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Print one line a session; a damaged one is named and passed over."""
    folder = names.folder_of(args.sessions)
    found: list[Summary] = []
    damaged: list[str] = []
    for name in names.all_names(args.sessions):
        try:
            found.append(summary_of(folder / name))
        except UserError as error:
            damaged.append(trouble_with(folder / name, error))
    if args.json:
        print_json(found)
        return OK
    for summary in found:
        best = f"#{summary.best.candidate} {figures.time(summary.best.time_us)}" if summary.best is not None else "-"
        effective = f"{summary.candidates.effective}/{summary.candidates.budget}"
        print(visible(f"{summary.name:<24} {summary.state:<8} {summary.kernel:<20} {effective:>9}  {best}"))
    for line in damaged:
        print(line)
    if not found and not damaged:
        print(f"no sessions in {folder}")
    return OK


PLUGIN: Command = Command("cake-tui list", add_arguments, run)
