"""What panes see: one value a repaint with the fold, readings, files, the selection and the state in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cake_tui import figures
from cake_tui.ir.work import work
from cake_tui.model.goal import Goal
from cake_tui.model.history import History
from cake_tui.model.row import Row
from cake_tui.tui import format as fmt
from cake_tui.tui.bridge import Bridge
from cake_tui.tui.files import SessionFiles
from cake_tui.tui.index import JournalIndex
from cake_tui.tui.telemetry import Telemetry
from cake_tui.tui.trail import Trail

STALE_BEATS = 3.0


@dataclass(frozen=True)
class Status:
    """The state in words, apart from colours; `ticking` tells whether clocks on the screen run."""

    word: str
    tone: str
    detail: str = ""
    ticking: bool = False


@dataclass(frozen=True)
class View:
    """A moment of a session. Panes read it and nothing else; they never change it."""

    history: History
    trail: Trail
    status: Status
    telemetry: Telemetry
    files: SessionFiles
    journal: JournalIndex
    cursor: int
    name: str
    you: str
    flops: float | None
    selected: int | None
    follows: bool
    roof_us: float | None  # the least time that the device's peaks allow
    elapsed_s: float
    event_age_s: float | None
    replay: bool = False
    read_only: bool = False
    frozen: bool = False
    ascii: bool = False
    damaged: int = 0
    note: str = ""  # what the engine waits for, as it says itself
    pending: Mapping[str, str] = field(default_factory=dict)  # request id -> what was asked, not yet answered

    @property
    def selected_row(self) -> Row | None:
        """The row that feedback and details show."""
        if self.selected is None or not 0 <= self.selected < len(self.history.rows):
            return None
        return self.history.rows[self.selected]

    def budget(self, name: str, default: float) -> float:
        """A number of the settings."""
        value = self.history.settings.get(name, default)
        return float(value) if isinstance(value, (int, float)) else default


def view_of(
    bridge: Bridge,
    *,
    you: str,
    selected: int | None,
    read_only: bool = False,
    frozen: bool = False,
    ascii: bool = False,  # noqa: A002 the flag's own name
    pending: Mapping[str, str] | None = None,
) -> View:
    """Make the view of this moment; without a selection that exists in it the latest ended candidate is shown."""
    history = bridge.fold.history
    if selected is not None and not 0 <= selected < len(history.rows):  # a replay's cursor went back behind it
        selected = None
    age = None if bridge.replay else bridge.event_age_s()
    status = status_of(bridge, you)
    return View(
        history=history,
        trail=bridge.fold.trail,
        status=status,
        telemetry=bridge.telemetry,
        files=bridge.files,
        journal=bridge.reader,
        cursor=bridge.cursor,
        name=bridge.name,
        you=you,
        flops=None if history.session is None else work(history.session.problem).flops,
        roof_us=roof_us(history),
        selected=latest_ended(history) if selected is None else selected,
        follows=selected is None,
        elapsed_s=history.elapsed_s + (age or 0.0 if status.ticking else 0.0),
        event_age_s=age,
        replay=bridge.replay,
        read_only=read_only,
        frozen=frozen,
        ascii=ascii,
        damaged=bridge.fold.damaged + bridge.reader.skipped,
        note=bridge.note,
        pending=pending or {},
    )


def latest_ended(history: History) -> int | None:
    """The newest candidate that has an outcome and was not merely answered from the record."""
    fallback = None
    for row in reversed(history.rows[-200:]):
        if row.outcome is not None:
            if row.outcome not in ("Repeated", "Screened"):
                return row.number
            fallback = row.number if fallback is None else fallback
    return fallback


def status_of(bridge: Bridge, you: str) -> Status:
    """Say what state the run is in."""
    history = bridge.fold.history
    reason = fmt.visible(history.state_reason, 300)
    if bridge.replay:
        return Status("REPLAY", "accentword", bridge.place())
    match history.state:
        case "done":
            return Status(f"DONE: {reason}" if reason else "DONE", "goodword")
        case "stopped":
            return Status("STOPPED", "warnword", reason)
        case "failed":
            return Status("FAILED", "badword", reason)
    if bridge.engine_alive is False and history.session is not None:
        return Status("ENGINE GONE", "badword", f"go on with: cake-tui resume {bridge.name}")
    if history.state == "paused":
        return _paused(history, you, reason)
    late = _late(bridge, history)
    if late:
        return late
    if history.state != "running" or not history.rows:
        return Status("STARTING", "accentword", "", ticking=True)
    stalled = history.rounds_without_win
    if history.stalled:
        return Status(f"STALLED {stalled} rounds", "warnword", "", ticking=True)
    return Status("RUNNING", "goodword", "", ticking=True)


def _paused(history: History, you: str, reason: str) -> Status:
    who = fmt.visible(history.paused_by or "", 24)
    if history.state_reason == f"by {history.paused_by}":
        return Status("PAUSED by you" if history.paused_by == you else f"PAUSED by {who}", "warnword")
    if who[:1] == "S" and who[1:].isdigit():
        return Status("PAUSED: clocks", "warnword", f"{who}: {reason}")
    return Status(f"PAUSED: {who}", "warnword", reason)


def _late(bridge: Bridge, history: History) -> Status | None:
    """An engine that holds its lock but has not been heard of for three heartbeats."""
    age = bridge.heartbeat_age_s()
    beat = history.settings.get("heartbeat", 1.0)
    limit = STALE_BEATS * max(0.2, float(beat) if isinstance(beat, (int, float)) else 1.0)
    if age is None or age <= limit + 1.0 or history.session is None:
        return None
    return Status("STALE", "badword", f"engine silent for {figures.duration(age)}", ticking=True)


AFTER = {"planned": "build", "build": "check", "check": "measure", "measure": "gate"}


def until_next_step_s(view: View) -> float | None:
    """About how long the running step still takes, by what it took the last time; None where that is unknown.

    Requests are taken up between two steps.
    """
    flying = min(view.history.in_flight(), key=lambda row: row.number, default=None)
    took = None if flying is None else view.trail.step_s.get(AFTER.get(flying.step, ""))
    if took is None or view.event_age_s is None or not view.status.ticking:
        return None
    return max(0.0, took - view.event_age_s)


def roof_us(history: History) -> float | None:
    """The problem's least arithmetic and traffic over the device's peaks, the longer of both; None where unknown."""
    if history.session is None:
        return None
    least, device = work(history.problem), history.device
    pairs = ((least.flops, device.peak_gflops), (least.bytes_moved, device.memory_gbps))
    times = [amount / peak * 1e-3 for amount, peak in pairs if amount and peak]
    return max(times) if times else None


def goal_us(view: View) -> tuple[str, float] | None:
    """The goal's text and the time that reaches it, where the session has one that can be told."""
    session = view.history.session
    goal = Goal.read(session.goal) if session is not None and session.goal else None
    time_us = None if goal is None else _goal_time(view, goal)
    return None if session is None or session.goal is None or time_us is None else (session.goal, time_us)


def _goal_time(view: View, goal: Goal) -> float | None:
    number = goal.number
    match goal.unit:
        case "us":
            return number
        case "tflops":
            return view.flops / number * 1e-6 if view.flops else None
        case "baseline":
            return view.history.baseline_us / number if view.history.baseline_us else None
        case "peer":
            times = [peer.avg_us for peer in view.history.peers.values()]
            return min(times) / number if times else None
    peer = view.history.peers.get(goal.unit)
    return peer.avg_us / number if peer else None
