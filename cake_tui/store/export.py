"""What an export needs of a session: its best candidate (or one asked for) as an exporter's bundle."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import NO_CANDIDATE, UserError
from cake_tui.exporters import Bundle
from cake_tui.ir.work import work
from cake_tui.model import layout
from cake_tui.model.history import History
from cake_tui.model.lowered import Lowered
from cake_tui.model.row import Row
from cake_tui.store.clock import utc_text
from cake_tui.store.files import write_whole


def bundle(folder: Path, history: History, candidate: int | None = None, *, allow_simulated: bool = False) -> Bundle:
    """Return the bundle of a session's best, or of one measured candidate.

    Raises UserError (exit 6) where there is no valid candidate, its files were pruned, or its figures are
    simulated and nobody asked for that.
    """
    session = history.session
    if session is None:
        raise UserError(f"session {folder.name}: nothing to export yet", NO_CANDIDATE)
    row = _row(folder, history, candidate)
    simulated = session.device.kind == "simulated"
    if simulated and not allow_simulated:
        raise UserError(
            f"session {folder.name} ran on the simulated backend: its figures are no measurements; "
            "export all the same: --allow-simulated",
            NO_CANDIDATE,
        )
    best = row.number == history.incumbent
    time_us = history.incumbent_us if best else row.time_us
    return Bundle(
        session=session.name, candidate=row.number, problem=session.problem, device=session.device,
        lowered=_lowered(folder, row.number), schedule=row.schedule.text if row.schedule else "",
        lineage=tuple(_step(history, number) for number in reversed(history.lineage(row.number))),
        time_us=time_us, throughput_tflops=work(session.problem).throughput_tflops(time_us),
        over_baseline=row.over_baseline, pair_noise=history.pair_noise, max_abs_err=row.max_abs_err,
        peers={name: peer for name, peer in history.peers.items() if peer.against == row.number},
        versions=session.versions, exported_at=utc_text(time.time()), simulated=simulated,
    )  # fmt: skip


def save(path: Path, text: str, *, force: bool) -> None:
    """Write an export whole or not at all; raises UserError where the file is there or cannot be written.

    `force` replaces a file, or what a link leads to; never a folder, a device or a pipe.
    """
    if os.path.lexists(path) and not force:
        raise UserError(f"{path} is there already; overwrite it: --force, or choose another --output")
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is no file; choose another --output")
        write_whole(path.resolve() if path.is_symlink() else path, text.encode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; choose another --output") from None


def _row(folder: Path, history: History, candidate: int | None) -> Row:
    number = history.incumbent if candidate is None else candidate
    if number is None:
        raise UserError(f"session {folder.name}: no candidate has passed its checks yet", NO_CANDIDATE)
    if not 0 <= number < len(history.rows):
        raise UserError(f"--candidate: found {number}, allowed: 0 to {len(history.rows) - 1}")
    row = history.rows[number]
    if row.outcome != "Measured":
        ended = row.outcome or "not ended yet"
        raise UserError(f"candidate {number} cannot be exported: {ended}: {row.reason}", NO_CANDIDATE)
    return row


def _lowered(folder: Path, number: int) -> Lowered:
    for path in (folder / layout.CANDIDATES / str(number) / layout.LOWERED, folder / layout.BEST / layout.LOWERED):
        try:
            lowered = msgspec.json.decode(path.read_bytes(), type=Lowered)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise UserError(f"{path}: {error}", NO_CANDIDATE) from None
        return lowered
    raise UserError(f"candidate {number}: its files are gone (see the setting disk)", NO_CANDIDATE)


def _step(history: History, number: int) -> str:
    row = history.rows[number]
    time = figures.time(row.time_us) if row.time_us else "no time"
    return f"{number}: {row.proposal.text}: {time}"
