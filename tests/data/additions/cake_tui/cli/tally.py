"""Count a session's candidates by how they ended.

One line an ending, the most frequent first.
"""

from __future__ import annotations

import argparse
from collections import Counter

from cake_tui.cli import Command
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.errors import OK
from cake_tui.store import snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session."""
    add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the counts."""
    rows = snapshot.fold(folder_of(args)).history.rows
    for ending, times in Counter(row.outcome for row in rows if row.outcome).most_common():
        print(f"{times:>5} {ending}")
    return OK


PLUGIN: Command = Command("cake-tui tally first", add_arguments, run)
