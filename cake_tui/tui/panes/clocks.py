"""Clocks and noise: can the figures be trusted? Rate, load, steal, temperature, pair noise, drift, stale codes."""

from __future__ import annotations

import math
from typing import ClassVar

from cake_tui import figures
from cake_tui.model.measure import STALE_NAMES
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.pane import Pane
from cake_tui.tui.views import View

LABEL = 9
VALUE = 19
SPARK = 20


class Clocks(Pane):
    """One reading a second, a short history of each in medians of ten seconds."""

    order: ClassVar[int] = 5
    title: ClassVar[str] = "clocks and noise"
    help: ClassVar[str] = "the machine's readings, pair noise, drift of the best and stale-clock codes"

    def summary(self, view: View) -> Line:
        """When the reading was taken, where it does not run."""
        if view.status.ticking and not view.frozen:
            return ()
        stamp = fmt.clock(view.telemetry.t)
        return ((f"at {stamp}" if stamp.strip() else "no reading", "dim"),)

    def body(self, view: View, width: int, height: int) -> list[Line]:
        """Readings, noise, guards."""
        lines = [*_readings(view, width), *_noise(view, width), *_guards(view, width)]
        return [lines[index] for index in self.window(len(lines), height)]


def _reading(view: View, name: str, field: str, text: str, width: int) -> Line:
    if view.telemetry.value(field) is None:
        since = view.telemetry.missing_since.get(field)
        why = view.telemetry.why.get(field, "")
        told = f"n/a since {fmt.clock(since)}" if since else figures.UNKNOWN
        return (
            (fmt.pad(f" {name}", LABEL), "dim"),
            (f"{told}  {fmt.visible(why, 120)}".rstrip(), "warn" if since else "dim"),
        )
    history = fmt.spark(view.telemetry.history(field), max(0, min(SPARK, width - LABEL - VALUE - 1)))
    return ((fmt.pad(f" {name}", LABEL), "dim"), (fmt.pad(text, VALUE), ""), (history, "accent"))


def _readings(view: View, width: int) -> list[Line]:
    telemetry = view.telemetry
    value = telemetry.value
    session = view.history.session
    lines: list[Line] = []
    if session is not None and session.device.kind == "simulated":
        return [((" simulated device: no clocks to read", "warn"),)]
    if session is not None and session.device.kind == "cuda":
        lines += _gpu(view, width)
    else:
        rate, best = value("rate"), telemetry.greatest.get("rate")
        share = f" {figures.percent(rate / best, 0)}" if rate and best else ""
        lines.append(_reading(view, "rate", "rate", f"{_n(rate)} add/ns{share}", width))
    lines.append(_reading(view, "load", "load", f"{_n(value('load'))} others", width))
    lines.append(_reading(view, "steal", "steal_pct", f"{_n(value('steal_pct'))} %", width))
    lines.append(_reading(view, "heat", "temperature_c", f"{_n(value('temperature_c'))} °C", width))
    return lines


def _gpu(view: View, width: int) -> list[Line]:
    telemetry = view.telemetry
    value = telemetry.value
    lines = []
    for name, field in (("SM", "sm_mhz"), ("memory", "memory_mhz")):
        best = telemetry.greatest.get(field)
        now = value(field)
        share = f" {figures.percent(now / best, 0)}" if now and best else ""
        lines.append(_reading(view, name, field, f"{_n(now)} MHz{share}", width))
    lines.append(_reading(view, "power", "power_w", f"{_n(value('power_w'))} W", width))
    reasons = ", ".join(telemetry.reasons) or "none"
    lines.append(
        ((fmt.pad(" throttle", LABEL), "dim"), (fmt.visible(reasons, 200), "" if reasons == "none" else "warn"))
    )
    foreign = value("foreign_processes")
    if foreign:
        lines.append(((fmt.pad(" others", LABEL), "dim"), (f"{int(foreign)} foreign processes on the device", "warn")))
    return lines


def _noise(view: View, width: int) -> list[Line]:
    history, trail = view.history, view.trail
    room = max(0, min(SPARK, width - LABEL - VALUE - 1))
    noise = figures.percent(history.pair_noise, 2)
    of = f" of #{history.noise_of}" if history.noise_of is not None and history.pair_noise is not None else ""
    lines: list[Line] = [
        (
            (fmt.pad(" noise", LABEL), "dim"),
            (fmt.pad(f"{noise}{of}", VALUE), ""),
            (fmt.spark(trail.noises, room), "accent"),
        ),
    ]
    if trail.drift:
        words = figures.percent(math.expm1(trail.drift[-1]), 1, sign=True)
        lines.append(
            ((fmt.pad(" drift", LABEL), "dim"), (fmt.pad(words, VALUE), ""), (fmt.spark(trail.drift, room), "accent"))
        )
    gate = trail.last_gate
    if gate is not None:
        words = f"#{gate.candidate} {gate.decision} {figures.gain(gate.gain)} ± {figures.percent(gate.half_width, 1)}"
        lines.append(((fmt.pad(" gate", LABEL), "dim"), (words, ""), (f"  {gate.series} series", "dim")))
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
    return figures.UNKNOWN if value is None else f"{value:.3g}"


PLUGIN: type[Pane] = Clocks
