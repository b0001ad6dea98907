"""Where a session stands: its summary, one line of it, and its record as lines for whoever follows along."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cake_tui import figures
from cake_tui.errors import DAMAGED, UserError
from cake_tui.model import layout
from cake_tui.model.event import Event
from cake_tui.model.history import History
from cake_tui.store.line import progress_of, visible
from cake_tui.store.lock import engine_of, state_now
from cake_tui.store.reading import JournalReader
from cake_tui.store.snapshot import fold_session, lags, read_head, refuse_without_session
from cake_tui.store.summary import Summary, summarise


def summary_of(session: Path) -> Summary:
    """Return a session's summary from its snapshot, else from its journal, too where that has gone on since.

    Raises UserError: DAMAGED, or ENVIRONMENT where its files may not be read.
    """
    head = read_head(session)
    current = head is not None and not lags(session, head)
    summary = head.summary if head is not None and current else summarise(fold_session(session).history)
    return seen_now(summary, session)


def seen_now(summary: Summary, session: Path) -> Summary:
    """Return a record's summary as its folder stands: whether an engine runs, and by the name that commands know."""
    return msgspec.structs.replace(summary, name=session.name, state=state_now(summary.state, session))


def trouble_with(session: Path, error: UserError) -> str:
    """Return the line of a session whose summary cannot be had, for lists that go on with the others."""
    what = "damaged" if error.exit_code == DAMAGED else "not readable"
    return visible(f"{session.name}  {what}: {error}")


def line_about(session: Path) -> str:
    """Return one line: state, budget, best, how long without a win; raises UserError (DAMAGED)."""
    summary = summary_of(session)
    counts = summary.candidates
    parts = [
        f"{summary.name} {summary.state.upper()}" + (f" ({summary.reason})" if summary.reason else ""),
        f"{counts.effective}/{counts.budget} candidates",
        f"{figures.duration(summary.elapsed_s)} of {summary.hours:g} h",
    ]
    if summary.best is not None:
        gain = f", {figures.ratio(summary.speedup.baseline)} the baseline" if summary.speedup.baseline else ""
        parts.append(f"best #{summary.best.candidate} {figures.time(summary.best.time_us)}{gain}")
        parts.append(f"{summary.stalled_rounds} rounds without a win")
    holder = engine_of(session)
    if holder is not None and holder.note:
        parts.append(holder.note)
    return visible(" · ".join(parts))


class Progress:
    """Folds a growing journal and says what each event means at its own moment."""

    def __init__(self, session: Path) -> None:
        self.history = History()
        self._session = session
        self._reader = JournalReader(session / layout.JOURNAL)

    def events(self) -> Iterator[Event]:
        """Fold and yield what was appended since the last call."""
        for event in self._reader.read():
            if event.seq > self.history.seq:
                self.history.apply(event)
                yield event

    def refuse_without_session(self) -> None:
        """Raise UserError (DAMAGED) where what was read so far holds no session."""
        refuse_without_session(self._session, self.history, self._reader)

    def lines(self) -> Iterator[str]:
        """Fold what was appended since the last call and yield its lines."""
        for event in self.events():
            line = progress_of(event, self.history)
            if line is not None:
                yield f"{event.t}  {line}"


def last_lines(session: Path, most: int) -> list[str]:
    """Return the last lines of a session."""
    return list(deque(Progress(session).lines(), maxlen=most))
