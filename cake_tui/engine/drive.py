"""Drive the loop: journal each event, fold it, then look at requests, signals, gaps and the disk; end in order."""

from __future__ import annotations

import errno
import gc
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from cake_tui import figures
from cake_tui.engine.desk import Desk
from cake_tui.engine.guards import EqualFailures
from cake_tui.engine.heartbeat import Heartbeat, settled_period
from cake_tui.engine.signals import Signals
from cake_tui.engine.voice import Voice
from cake_tui.errors import BUG, ENVIRONMENT, NO_CANDIDATE, OK, Ended, UserError
from cake_tui.model import event as ev
from cake_tui.model import layout
from cake_tui.model.history import History
from cake_tui.model.outcome import Interrupted
from cake_tui.monitors import Monitor
from cake_tui.store import snapshot
from cake_tui.store.clock import Clocks, GapWatch, seconds_since
from cake_tui.store.disk import DiskBound, Keep
from cake_tui.store.files import NO_SPACE, NOT_ALLOWED, free_bytes
from cake_tui.store.inbox import Inbox, new_id
from cake_tui.store.journal import Journal
from cake_tui.store.line import progress_of
from cake_tui.store.rotation import RotatingFile
from cake_tui.store.session import Session

LOOP_PAUSE_S = 0.05  # between two looks at the inbox of a paused run
LOOK_EVERY_S = 0.2  # between two looks during a long step
SNAPSHOT_EVERY_S = 1.0
SNAPSHOT_SHARE = 0.02  # of the time may go into snapshots, however long the history
FULL_SAID_EVERY_S = 60.0
SPARE_BYTES = 64 * 1024
LOG_BYTES, TELEMETRY_BYTES = 4 << 20, 16 << 20  # at most a sixteenth of the session's bound each, twice

# What the machine does to us, in contrast to a bug of ours.
MACHINE_FAILS = (*NO_SPACE, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE)

_LIMITED = {errno.EFBIG: ", but the size of files is limited (ulimit -f)", errno.EDQUOT: ", but the quota is used up"}
IN_THE_WAY = (*NOT_ALLOWED, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP)

# How often the collector looks for cycles: planning makes many small values and hardly a cycle, and what a run has
# loaded stays; with Python's own numbers a tenth of a candidate's time goes into looking.
COLLECT_EVERY = (20_000, 20, 50)

Loop = Generator[ev.Event | None, None, str]


# What a power loss may take, for nothing was spent on it: the next step's end syncs it as well.
CHATTER = (
    ev.RoundBegan, ev.RoundEnded, ev.GuardFired, ev.NoiseCalibrated, ev.IncumbentTimed, ev.PeerTimed, ev.Stalled,
    ev.EvaluatorReplaced, ev.ProposalDropped, ev.StepLost, ev.Noticed, ev.Probed, ev.Planned,
)  # fmt: skip


def _is_chatter(event: ev.Event) -> bool:
    on_paper = isinstance(event, ev.CandidateEnded) and event.proposal is not None
    return on_paper or isinstance(event, CHATTER)


class Stopping(BaseException):
    """The run is to end now, in order; travels through the loop, which clears up after itself."""


class Engine:
    """One engine of one session. Make it with the session's lock held; hand `wait` to the loop, then `drive` it."""

    def __init__(
        self,
        session: Session,
        history: History,
        *,
        lines: int = 0,
        clocks: Clocks | None = None,
        monitor: Monitor | None = None,
        foreground: bool = False,
    ) -> None:
        self.session = session
        self.history = history
        self._clocks = clocks or Clocks()
        session.on_full = self.wait_for_space
        self._journal = Journal(session.journal_path, self._clocks, history.seq, self.wait_for_space)
        self._lines = lines
        self._desk: Desk | None = None
        self._inbox = Inbox(session.path)
        self._failures = EqualFailures()
        self._foreground = foreground
        small = int(float(history.settings.get("disk", 2.0)) * 1e9) // 16
        self._voice = Voice(session.path, foreground=foreground, log_bytes=min(LOG_BYTES, small))
        self._watch = GapWatch(self._clocks, settled_period(history.settings))
        self._signals = Signals(foreground=foreground, continued=self._watch.continued)
        telemetry = RotatingFile(session.path / layout.TELEMETRY, min(TELEMETRY_BYTES, small))
        self._heart = Heartbeat(history, telemetry, self._clocks, self._watch, monitor)
        self.when_paused: Callable[[], Iterator[ev.Event]] = lambda: iter(())  # what a pause is good for
        self._shown_state = history.state
        self._stop_reason: str | None = None
        self._ending = False
        self._looked_at = self._log_looked_at = 0.0
        self._snapshot_due = 0.0
        self._full_said_at = -FULL_SAID_EVERY_S
        self._held: tuple[str, float] | None = None  # by a full disk: what could not be written, since when
        self._bound_disk()

    # -- what the loop gets ----------------------------------------------------------------------------

    def wait(self) -> None:
        """To be called often during long steps: signals, requests and gaps; raises Stopping where the run ends."""
        self._signals.check(self._stop)
        now = self._clocks.mono()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self._look()
        if self._stop_reason is not None:
            raise Stopping

    def tell(self, text: str) -> None:
        """Show people at once what the run waits for, beside the record; an empty text takes it away."""
        self._heart.note = text
        self.session.lock.note(text)

    # -- the run ---------------------------------------------------------------------------------------

    def begin(
        self,
        desk: Desk,
        *,
        changes: tuple[tuple[str, str, str], ...] = (),
        settings: dict[str, object] | None = None,
        notices: Sequence[str] = (),
        who: str = "",
    ) -> None:
        """Journal that an engine has the session, what changed since the last one and what people should hear."""
        self._desk = desk
        self._watch.restart()
        paused, ran_before = self.history.state == "paused", self.history.state != "created"
        away_s = seconds_since(self.history.last_t, self._clocks.wall())
        self.record(ev.EngineStarted(pid=os.getpid(), host=socket.gethostname(), changes=changes))
        if ran_before:
            self.record(ev.GapSeen(seconds=away_s, what="offline"))
        of_settings = tuple(change for change in changes if change[0] in (settings or {}))
        if of_settings and settings is not None:
            self.session.write_settings(settings)
            self.record(ev.SettingsChanged(changes=of_settings, settings=settings))
        for notice in notices:
            self.record(ev.Noticed(level="warning", text=notice))
        if paused:
            self.record(ev.RequestTaken(id=new_id(), who=who, what="resume", body={}))
        self._inbox.sweep()
        self._look(stale=True)
        self._snapshot(force=True)

    def drive(self, loop: Loop) -> int:
        """Run the loop to its end and return the exit code; the session's state is on disk by then."""
        self._signals.install()
        self._watch.restart()
        self._heart.start()
        before = gc.get_threshold()
        gc.set_threshold(*COLLECT_EVERY)
        try:
            return self._end(*self._run(loop))
        finally:
            gc.set_threshold(*before)
            self._signals.restore()
            self._heart.stop()
            self._voice.close()
            self.session.close()
            self._journal.close()

    def _run(self, loop: Loop) -> tuple[str, str, int]:
        """Return how it ended: state, reason, exit code."""
        try:
            while True:
                self._between()
                event = next(loop)
                if event is not None:
                    self.record(event)
        except StopIteration as ended:
            return "done", str(ended.value or "the loop ended"), OK
        except Stopping:
            return "stopped", self._stop_reason or "told to stop", self._signals.exit_code
        except Ended as ended:
            return "failed", ended.outcome.reason or type(ended.outcome).__name__, NO_CANDIDATE
        except UserError as error:
            return "failed", "; ".join(str(error).splitlines()), error.exit_code
        except Exception as error:  # noqa: BLE001 the process boundary: a bug travels into engine.log
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                free = free_bytes(self.session.path)
                return "failed", f"no space: {free} bytes free, cannot write {error.filename or 'a file'}", ENVIRONMENT
            self._voice.log_bug(error)
            if isinstance(error, OSError) and (error.errno in MACHINE_FAILS or self._is_obstacle(error)):
                return "failed", f"{error.strerror}: {error.filename or self.session.path}", ENVIRONMENT
            return "failed", f"a bug: {type(error).__name__}: {str(error)[:200]} (traceback in engine.log)", BUG
        finally:
            self._close(loop)

    def _is_obstacle(self, error: OSError) -> bool:
        """Whether something or somebody keeps us from a file or folder of the session."""
        name = error.filename
        inside = isinstance(name, str | os.PathLike) and self.session.path in Path(name).absolute().parents
        return inside and error.errno in IN_THE_WAY

    def _close(self, loop: Loop) -> None:
        self._ending = True
        try:
            loop.close()
        except (Exception, Stopping) as error:  # noqa: BLE001 the loop's own clearing up must not hide how it ended
            self._voice.log_bug(error)

    def _end(self, state: str, reason: str, code: int) -> int:
        try:
            if state == "stopped":
                # The baseline stays in flight: without its time nothing is tried, so a resume goes on with it.
                flying = [row for row in self.history.in_flight() if row.number]
                for row in sorted(flying, key=lambda row: row.number):
                    outcome = Interrupted(step=row.step, reason=reason)
                    self.record(ev.CandidateEnded(candidate=row.number, round=row.round, outcome=outcome))
            if self.history.state not in ("done", "failed"):
                self.record(ev.EngineEnded(state=state, reason=reason, exit_code=code))  # type: ignore[arg-type]
            self._snapshot(force=True)
        except OSError as error:
            # Nothing can be written: what is on disk stays as it is, and a resume goes on from there.
            self._voice.say(f"the end could not be recorded: {error.strerror}: {self.session.path}")
            return code or ENVIRONMENT
        return code

    # -- between two steps -----------------------------------------------------------------------------

    def _between(self) -> None:
        self._signals.check(self._stop)
        self._look()
        while self.history.state == "paused" and self._stop_reason is None:
            for event in self.when_paused():
                self.record(event)
            time.sleep(LOOP_PAUSE_S)
            self._signals.check(self._stop)
            self._look()
        if self._stop_reason is not None:
            raise Stopping

    def _look(self, *, stale: bool = False) -> None:
        """Take gaps and requests into the record; raises UserError where the record is gone."""
        now = self._clocks.mono()
        if now - self._log_looked_at >= LOOK_EVERY_S:
            self._log_looked_at = now
            self._voice.look()
        if not self._journal.is_in_place():
            raise UserError(f"{self._journal.path} was moved or deleted while the run went on", ENVIRONMENT)
        self._gaps()
        if self._desk is None:
            return
        for path, request in self._inbox.waiting():
            for event in self._desk.answer(request, self.history, stale=stale):
                self.record(event)
                if isinstance(event, ev.RequestTaken) and event.what == "stop":
                    self._stop(f"by {event.who}")
            self._journal.settle()  # the request is on record before its file goes
            self._inbox.done(path)

    def _gaps(self) -> None:
        self._watch.look(beat=False)
        for gap in self._watch.take():
            self.record(gap)

    def _stop(self, reason: str) -> None:
        self._stop_reason = self._stop_reason or reason

    # -- the record ------------------------------------------------------------------------------------

    def record(self, event: ev.Event) -> None:
        """Append, sync, fold; then whatever follows from it: a line, a snapshot, a pause."""
        if not isinstance(event, ev.GapSeen) and not self._ending:
            self._gaps()
        (stamped,) = self._journal.append(event, sync=not _is_chatter(event))
        self._go_on()
        self._lines += 1
        self.history.apply(stamped)
        line = progress_of(stamped, self.history)
        if line is not None:
            self._voice.say(line)
        if isinstance(stamped, ev.CandidateEnded):
            self._snapshot()
        elif isinstance(stamped, ev.SettingsChanged):
            self._bound_disk()
        pause = self._failures.see(stamped, self.history, int(self.history.settings.get("equal_failures", 20)))
        if pause is not None and self.history.state == "running":
            self.record(pause)
        if self.history.state != self._shown_state:
            self._shown_state = self.history.state
            self._snapshot(force=True)

    def _snapshot(self, *, force: bool = False) -> None:
        now = self._clocks.mono()
        if now < self._snapshot_due and not force:
            return
        self._journal.settle()  # never ahead of the journal
        try:
            snapshot.write(self.session.path, self.history, self._journal.size_bytes, self._lines)
        except OSError as error:
            # It is a convenience: the old one stays, and the journal says when the disk is really full.
            if error.errno in NO_SPACE:
                self._say_full(self.session.path / layout.SNAPSHOT, error)
            else:
                self._voice.log(f"snapshot: {error}")
        took = self._clocks.mono() - now
        self._snapshot_due = now + max(SNAPSHOT_EVERY_S, took / SNAPSHOT_SHARE)

    def _bound_disk(self) -> None:
        limit = int(float(self.history.settings.get("disk", 2.0)) * 1e9)
        if self.session.disk is None:
            self.session.disk = DiskBound(self.session.path, limit, self._spared)
        self.session.disk.limit_bytes = limit

    def _spared(self) -> Keep:
        history = self.history
        line = history.lineage(history.incumbent) if history.incumbent is not None else ()
        return Keep(frozenset((*line[:1], *(row.number for row in history.in_flight()))), frozenset(line))

    # -- a full disk -----------------------------------------------------------------------------------

    def wait_for_space(self, path: Path, size: int, error: OSError) -> None:
        """Hold the run until there is room for `path`; raises the error where the run is ending anyway."""
        if self._ending or self._stop_reason is not None:
            raise error
        self._held = self._held or (path.name, self._clocks.mono())
        self._say_full(path, error)
        limited = error.errno != errno.ENOSPC  # by a quota or a limit on files: how much is free says nothing
        tries = 0
        while True:
            time.sleep(0.1)
            tries += 1
            self._signals.check(self._stop)
            self._requested_stop()
            if self._stop_reason is not None:
                raise Stopping
            if tries % 10 == 0 or (not limited and free_bytes(self.session.path) >= size + SPARE_BYTES):
                return
            self._say_full(path, error)

    def _go_on(self) -> None:
        """After a write that worked: say so where none did before, and how long that took."""
        if self._held is None:
            return
        (name, began), self._held = self._held, None
        self.tell("")
        seconds = self._clocks.mono() - began
        self._watch.add(ev.GapSeen(seconds=seconds, what="no space"))
        self._voice.say(f"going on after {figures.duration(seconds, exact=True)}: {name} is written again")

    def _say_full(self, path: Path, error: OSError) -> None:
        now = self._clocks.mono()
        free = f"{free_bytes(self.session.path)} bytes free{_LIMITED.get(error.errno or 0, '')}"
        text = f"PAUSED: no space in {self.session.path}: {free}, cannot write {path.name}"
        self.tell(text)
        if now - self._full_said_at >= FULL_SAID_EVERY_S:
            self._full_said_at = now
            self._voice.say(text)

    def _requested_stop(self) -> None:
        # No answer can be journaled now; the file stays and is refused as stale by the next engine.
        for _, request in self._inbox.waiting():
            if getattr(request, "what", "") == "stop":
                self._stop(f"by {getattr(request, 'who', '')}")
