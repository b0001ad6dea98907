"""Show a session: the state of the run, its best, how it compares, how candidates ended; or one candidate."""

from __future__ import annotations

import argparse

from cake_tui import figures
from cake_tui.cli import Command
from cake_tui.cli._output import print_json, print_line
from cake_tui.cli._session import add_session_arguments, folder_of
from cake_tui.errors import OK, UserError
from cake_tui.model.ending import meaning_of, reason_of, word_of
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.store.line import visible
from cake_tui.store.progress import seen_now
from cake_tui.store.snapshot import fold_session
from cake_tui.store.summary import Summary, summarise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session and what of it."""
    add_session_arguments(parser)
    parser.add_argument("--candidate", type=int, metavar="N", help="one candidate instead of the session")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """Fold the journal and print."""
    path = folder_of(args)
    made = fold_session(path)
    history = made.history
    if args.candidate is not None:
        row = _row(history, args.candidate)
        if args.json:
            print_json(row)
        else:
            _print(_lines_of_row(history, row))
        return OK
    summary = seen_now(summarise(history), path)
    if args.json:
        print_json(summary)
    else:
        _print([*made.notices, *_lines(summary)])
    return OK


def _row(history: History, number: int) -> Row:
    if not 0 <= number < len(history.rows):
        there = f"0 to {len(history.rows) - 1}" if history.rows else "none yet"
        raise UserError(f"--candidate: found {number}, there: {there}")
    return history.rows[number]


def _lines(summary: Summary) -> list[str]:
    counts, best = summary.candidates, summary.best
    reason = f" ({summary.reason})" if summary.reason else ""
    shapes = "; ".join(",".join(f"{k}={v}" for k, v in shape.items()) for shape in summary.problem["shapes"])
    elapsed = f"{figures.duration(summary.elapsed_s)} of {summary.hours:g} h"
    ended = (
        f"{counts.measured} measured ({counts.accepted} accepted), {counts.failed} failed, {counts.rejected} rejected, "
        f"{counts.screened} screened, {counts.repeated} repeated, {counts.interrupted} interrupted"
    )
    lines = [
        f"{summary.name}  {summary.state.upper()}{reason}",
        f"kernel     {summary.kernel}  {shapes}",
        f"device     {summary.device['name']}  ({summary.backend}, {summary.device['uuid']})",
        f"agent      {summary.agent}",
        f"time       {elapsed}, round {summary.round}, {summary.stalled_rounds} rounds without a win",
        f"candidates {counts.effective} of {counts.budget} effective; {counts.total} in all: {ended}",
    ]
    if best is not None:
        flops = f", {figures.throughput(best.throughput_tflops)}" if best.throughput_tflops is not None else ""
        lines.append(
            f"best       candidate {best.candidate}: {figures.time(best.time_us)}{flops}, found after "
            f"{figures.duration(best.found_at_s)}: {best.schedule}"
        )
        if best.source_sha256:
            lines.append(f"kernel id  {best.source_sha256[:12]}, as the viewer, export and verify name it")
        lines.append(f"lineage    {' < '.join(map(str, best.lineage))}")
    if summary.speedup.baseline is not None:
        lines.append(f"speed-up   {figures.ratio(summary.speedup.baseline)} the baseline")
    for name, ratio in summary.speedup.peer.items():
        lines.append(f"peer       {name}: the best is {figures.ratio(ratio, 4)} as fast")
    if summary.noise.pair_pct is not None:
        lines.append(f"noise      {summary.noise.pair_pct:.2f} % a pair")
    return lines


def _lines_of_row(history: History, row: Row) -> list[str]:
    gain = f"{figures.gain(row.gain)} against #{row.against}" if row.gain is not None else "n/a"
    said = word_of(row.ended_as) if row.outcome else f"in flight after {row.step}"
    means = meaning_of(history, row)
    return [
        f"candidate  {row.number}, round {row.round}: {said}",
        f"found      {means}",
        f"reason     {reason_of(row) or 'none'}",
        f"moves      {row.proposal.text}, from #{row.proposal.base}, by {row.proposal.who}: {row.proposal.reason}",
        f"schedule   {row.schedule.text if row.schedule is not None else 'none'}",
        f"time       {figures.time(row.time_us)}, {gain}",
        f"error      {'n/a' if row.max_abs_err is None else f'{row.max_abs_err:.3g}'}",
        f"findings   {', '.join(row.labels) or 'none'}",
        f"lineage    {' < '.join(map(str, history.lineage(row.number)))}",
    ]


def _print(lines: list[str]) -> None:
    for line in lines:
        print_line(visible(line, 2000), inset=11)


PLUGIN: Command = Command("cake-tui show first --json", add_arguments, run)
