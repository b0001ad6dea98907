"""Clocks and noise: can the figures be trusted? Rate, load, steal, temperature, pair noise, drift, stale codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from cake_tui import figures
from cake_tui.model.measure import STALE_NAMES
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

LABEL = 10
VALUE = 23  # cells of a value with the blank behind it
SPARK = 40


class Clocks(Pane):
    """One reading a second, a short history of each in medians of ten seconds."""

    order: ClassVar[int] = 5
    title: ClassVar[str] = "clocks and noise"
    help: ClassVar[str] = (
        "whether the figures can be trusted: the device's readings, pair noise, the last gate, drift of the best, "
        "stale-clock codes with what was seen and done"
    )

    def summary(self, view: View) -> Line:
        """When the reading was taken, where it does not run."""
        if view.status.ticking and not view.frozen:
            return ()
        stamp = fmt.clock(view.telemetry.t)
        return ((f"at {stamp}" if stamp.strip() else "no reading", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Readings, noise, guards; last what cannot be read, which is known by then."""
        readings, missing = _readings(view, width)
        lines = [*readings, *_noise(view, width), *_guards(view, width), *missing]
        return [lines[index] for index in self.window(len(lines), height)]


def _line(name: str, text: str, past: Sequence[float | None], width: int) -> Line:
    """Name, value and a short history, where there is room for one."""
    history = fmt.spark(past, max(0, min(SPARK, width - LABEL - VALUE - 1)))
    return ((fmt.pad(f" {name}", LABEL), "dim"), (fmt.pad(text, VALUE - 1) + " ", ""), (history, "accent"))


Fields = tuple[tuple[str, str, str], ...]  # name, field of the reading, what it says


def _read(view: View, fields: Fields, width: int) -> tuple[list[Line], list[Line]]:
    """The readings that are there, and those that fail with since when and why."""
    telemetry = view.telemetry
    there: list[Line] = []
    missing: list[Line] = []
    for name, field, text in fields:
        if telemetry.value(field) is not None:
            there.append(_line(name, text, telemetry.history(field), width))
            continue
        since = telemetry.missing_since.get(field)
        why = fmt.visible(telemetry.why.get(field, ""), 200).removeprefix("since start: ")
        told = f"n/a since {fmt.clock(since)}" if since else figures.UNKNOWN
        head: Line = ((fmt.pad(f" {name}", LABEL), "dim"), (told, "warn" if since else "dim"))
        if LABEL + len(told) + 2 + len(why) <= width:
            missing.append((*head, (f"  {why}", "dim")))
        else:
            missing += [head, *(((" " * LABEL + text, "dim"),) for text in fmt.wrap(why, max(8, width - LABEL))[:2])]
    return there, missing


def _readings(view: View, width: int) -> tuple[list[Line], list[Line]]:
    session = view.history.session
    if session is not None and session.device.kind == "simulated":
        return [((" simulated device: no clocks to read", "warn"),)], []
    value = view.telemetry.value
    fields: Fields = (
        ("load", "load", f"{_n(value('load'))} tasks of others"),
        ("steal", "steal_pct", f"{_n(value('steal_pct'))} %"),
        ("heat", "temperature_c", f"{_n(value('temperature_c'))} °C"),
    )
    if session is not None and session.device.kind == "cuda":
        there, missing = _read(view, (*_gpu(view), *fields), width)
        return [*there, *_complaints(view, width)], missing
    there, missing = _read(view, (("clock", "sm_mhz", f"{_n(value('sm_mhz'))} MHz"), *fields), width)
    rate = _rate(view, width)
    if not rate:
        _, unread = _read(view, (("rate", "rate", ""),), width)
        missing = [*unread, *missing]
    return [*rate, *there], missing


def _rate(view: View, width: int) -> list[Line]:
    """The processor's own rate: of the heartbeat where it runs the loop, else as read around the last series."""
    rates = view.trail.rates
    rate = view.telemetry.value("rate")
    past: Sequence[float | None] = view.telemetry.history("rate")
    if rate is None and rates:
        rate, past = rates[-1], rates
    if rate is None:
        return []
    clocks, epoch = view.history.clocks, view.history.epoch
    normal = clocks[epoch] if 0 <= epoch < len(clocks) and clocks[epoch] > 0 else max(rates, default=rate)
    return [_line("rate", f"{rate:.3g} add/ns {figures.percent(rate / normal, 0)}", past, width)]


def _gpu(view: View) -> Fields:
    telemetry, now = view.telemetry, view.telemetry.latest
    value = telemetry.value
    told: list[tuple[str, str, str]] = []
    for name, field, limit in (
        ("SM", "sm_mhz", now.sm_max_mhz if now is not None else None),
        ("memory", "memory_mhz", None),
    ):
        most, mhz = limit or telemetry.greatest.get(field), value(field)
        told.append((name, field, f"{_n(mhz)} MHz {figures.percent(mhz / most, 0) if mhz and most else ''}"))
    limit_w = f" of {_n(now.power_limit_w)}" if now is not None and now.power_limit_w else ""
    return (*told, ("power", "power_w", f"{_n(value('power_w'))}{limit_w} W"))


def _complaints(view: View, width: int) -> list[Line]:
    """What a GPU says against itself: throttling, health, the driver's words, others on it."""
    now = view.telemetry.latest
    if now is None:
        return []
    lines = _words("throttle", ", ".join(now.reasons), "none", width)
    if now.health:
        lines += _words("health", ", ".join(now.health), "", width)
    if now.error:
        lines += _words("driver", now.error, "", width)
    if now.foreign_processes:
        held = f", {now.foreign_bytes / 2**30:.1f} GiB held" if now.foreign_bytes else ""
        lines += _words("others", f"{now.foreign_processes} foreign processes on the device{held}", "", width)
    return lines


def _words(name: str, text: str, otherwise: str, width: int) -> list[Line]:
    """What is wrong in words, wrapped; `otherwise` where nothing is."""
    pieces = fmt.wrap(fmt.visible(text or otherwise, 300), max(8, width - LABEL))[:3]
    heads = [f" {name}", *[""] * len(pieces)]
    return [((fmt.pad(head, LABEL), "dim"), (piece, "warn" if text else "")) for head, piece in zip(heads, pieces)]


def _noise(view: View, width: int) -> list[Line]:
    history, trail = view.history, view.trail
    noise = figures.percent(history.pair_noise, 2)
    of = f" of #{history.noise_of}" if history.noise_of is not None and history.pair_noise is not None else ""
    lines: list[Line] = [_line("noise", f"{noise}{of}", trail.noises, width)]
    if trail.drift:
        words = figures.percent(math.expm1(trail.drift[-1]), 1, sign=True)
        lines.append(_line("drift", f"{words} of the best", trail.drift, width))
    gate = trail.last_gate
    if gate is not None:
        words = f"#{gate.candidate} {gate.decision} {figures.gain(gate.gain)} ± {figures.percent(gate.half_width, 1)}"
        lines.append(((fmt.pad(" gate", LABEL), "dim"), (words, "")))
        series = f"  {gate.series} series"
        if LABEL + len(words) + len(series) <= width:
            lines[-1] = (*lines[-1], (series, "dim"))
    return lines


def _guards(view: View, width: int) -> list[Line]:
    if not view.trail.guards:
        return [((fmt.pad(" stale", LABEL), "dim"), ("no code fired", "dim"))]
    lines: list[Line] = []
    for guard in sorted(view.trail.guards.values(), key=lambda g: g.t, reverse=True):
        meaning = STALE_NAMES.get(guard.code, "")
        at = "" if guard.candidate is None else f" at #{guard.candidate}"
        lines.append((
            (fmt.pad(" stale", LABEL), "dim"),
            (f"{fmt.visible(guard.code, 4)} ×{guard.times} ", "warnword"),
            (f"{meaning}, last {fmt.clock(guard.t)}{at}", ""),
        ))  # fmt: skip
        told = f"{fmt.visible(guard.saw, 200)} → {fmt.visible(guard.reaction, 200)}"
        lines += [((" " * LABEL + text, "dim"),) for text in fmt.wrap(told, max(8, width - LABEL))[:2]]
    return lines


def _n(value: float | None) -> str:
    """A reading: whole numbers from a hundred on, else three digits."""
    if value is None or not math.isfinite(value):
        return figures.UNKNOWN
    return figures.count(round(value)) if abs(value) >= 100 else f"{value:.3g}"


PLUGIN: type[Pane] = Clocks
