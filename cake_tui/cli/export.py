"""Write a session's best kernel as a file of its own.

The run may go on meanwhile. The file holds the kernel that was checked and measured, how to launch it, a
harness, where it comes from and the figures measured for it. `cake-tui verify FILE` proves it again.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from cake_tui import figures, registry
from cake_tui.cli import Command
from cake_tui.cli._session import add_sessions_argument
from cake_tui.errors import OK, UserError, printable
from cake_tui.exporters import Exporter
from cake_tui.model.row import Row
from cake_tui.store import export, name, snapshot
from cake_tui.store.inbox import send
from cake_tui.store.lock import engine_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Session, format, file and candidate."""
    parser.add_argument("name", metavar="NAME", help="the session")
    known = ", ".join(registry.names("exporters"))
    parser.add_argument("--format", metavar="F", help=f"one of {known}; default: the kernel's own, c or cuda")
    parser.add_argument("--output", metavar="FILE", type=Path, help="with the format's ending; default: NAME-CANDIDATE")
    parser.add_argument("--candidate", metavar="N", type=int, help="default: the best")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--allow-simulated", action="store_true", help="export simulated figures, labelled so")
    add_sessions_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Export and say where the file is and what its kernel is."""
    wanted: Exporter | None = registry.load("exporters", args.format) if args.format else None
    folder = name.find(args.name, args.sessions)
    fold = snapshot.fold_session(folder)
    bundle = export.bundle(folder, fold.history, args.candidate, allow_simulated=args.allow_simulated)
    exporter: Exporter = wanted or registry.load("exporters", bundle.lowered.target)
    path = args.output or Path(f"{args.name}-{bundle.candidate}{exporter.suffix}")
    if path.suffix != exporter.suffix:  # verify and compilers go by it
        raise UserError(
            f"--output: {printable(str(path))} ends in {printable(path.suffix) or 'nothing'}, but the kernel is for "
            f"{bundle.lowered.target}: allowed: {exporter.suffix}, as {printable(path.stem or 'best')}{exporter.suffix}"
        )
    export.save(path, exporter.write(bundle), force=args.force)
    time = figures.time(bundle.time_us) if bundle.time_us else "no time"
    print(f"{printable(str(path))}: candidate {bundle.candidate}, {time}, {figures.digest(bundle.lowered.sha256)}")
    if bundle.lowered.target == "cuda":
        _sanitized(folder, fold.history.rows[bundle.candidate])
    return OK


def _sanitized(folder: Path, row: Row) -> None:
    """Say what compute-sanitizer found in an exported kernel; one it never saw is shown to it where an engine runs."""
    if row.sanitized in ("errors", "doubtful"):
        said = "found errors in" if row.sanitized == "errors" else "complains, perhaps wrongly, about"
        print(f"compute-sanitizer {said} candidate {row.number}: cake-tui tail {folder.name}", file=sys.stderr)
    if row.sanitized is not None:
        return
    said = "compute-sanitizer has not looked at it"
    if engine_of(folder) is not None:
        with contextlib.suppress(OSError):  # the kernel is exported all the same
            send(folder, "profile", {"candidate": row.number, "sanitize": True})
            said = "compute-sanitizer looks at it after this round"
    print(f"{said}: cake-tui tail {folder.name}", file=sys.stderr)


PLUGIN: Command = Command(example="cake-tui export first --output best.c", add_arguments=add_arguments, run=run)
