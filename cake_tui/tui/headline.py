"""Status line and headline: is it alive, is it getting anywhere, how good is the best, can the figures be trusted."""

from __future__ import annotations

from cake_tui import figures
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line
from cake_tui.tui.lines import LinesWidget
from cake_tui.tui.views import View

# (importance, spans): the least important give way where the width does not hold all.
Part = tuple[int, Line]

WARNED = 56  # characters of what was wrong at the start; the log has all of it
STEP_WORDS = {
    "planned": "building",
    "build": "checking",
    "check": "measuring",
    "measure": "at the gate",
    "gate": "deciding",
}


class Headline(LinesWidget):
    """Two or three lines above all panes."""

    def show(self, view: View) -> None:
        """Draw a view."""
        self.ascii = view.ascii
        width, height = self.size
        parts = [_state(view), _best(view), [*_what(view), *_now(view)]]
        if height < 3:
            parts = [_state(view), [*_best(view), *_now(view)]]
        self.put([_line(line, width) for line in parts[:height]])

    def reading(self, share: float) -> None:
        """How far a long record has been read."""
        self.put([_line([(100, ((" READING ", "accentword!"), (f" {figures.percent(share, 0)} of the record", "")))],
                        self.size.width)])  # fmt: skip


def _line(parts: list[Part], width: int) -> Line:
    """Join parts by two blanks, leaving out the least important ones until the line fits."""
    kept = list(parts)
    while len(kept) > 1 and sum(fmt.width_of(part) + 2 for _, part in kept) - 1 > width:
        kept.remove(min(kept, key=lambda part: part[0]))
    out: list[tuple[str, str]] = [(" ", "")]
    for index, (_, part) in enumerate(kept):
        out += [("  ", "")] * (index > 0) + list(part)
    return tuple(out)


def _state(view: View) -> list[Part]:
    history, status = view.history, view.status
    parts: list[Part] = [(100, ((f" {status.word} ", status.tone + "!"),))]
    if view.frozen:
        parts.append((99, ((" SCREEN FROZEN ", "accentword!"),)))
    if status.detail:
        parts.append((95 if view.replay else 70, ((status.detail, ""),)))
    hours, wanted = view.budget("hours", 0), int(view.budget("candidates", 0))
    spent = figures.duration(view.elapsed_s) + (f" of {figures.duration(hours * 3600)}" if hours else "")
    parts.append((80, ((spent, "strong"),)))
    effective = figures.count(history.effective) + (f" of {figures.count(wanted)}" if wanted else "")
    parts.append((85, ((effective, "strong"), (" candidates", "dim"))))
    parts.append((90, _age(view)))
    without = history.rounds_without_win
    if history.rows:
        parts.append((60, ((f"{without}", "strong"), (f" round{'' if without == 1 else 's'} since a win", "dim"))))
    return parts


def _age(view: View) -> Line:
    """Age of the last event while the run goes on; its time where nothing ticks."""
    if view.status.ticking and not view.frozen:
        return (("last event ", "dim"), (f"{figures.duration(view.event_age_s)} ago", ""))
    stamp = fmt.clock(view.history.last_t)
    return (("last event ", "dim"), (f"{stamp} UTC" if stamp.strip() else figures.UNKNOWN, ""))


def _best(view: View) -> list[Part]:
    history = view.history
    if history.incumbent is None:
        return [(100, (("best ", "dim"), ("none yet: candidate 0 is being measured", "")))]
    parts: list[Part] = [
        (100, ((f"best #{history.incumbent} ", "dim"), (figures.time(history.incumbent_us), "goodword")))
    ]
    beside = _timed_beside(view)
    if beside:
        parts.append((57, ((beside, "dim"),)))
    rate = figures.rate(view.flops, history.incumbent_us)
    if rate != figures.UNKNOWN:
        parts.append((95, ((rate, "strong"),)))
    parts.append((90, ((figures.ratio(history.speedup), "strong"), (" baseline", "dim"))))
    if view.roof_us and history.incumbent_us:
        parts.append(
            (55, ((figures.percent(view.roof_us / history.incumbent_us, 0), "strong"), (" of the roof", "dim")))
        )
    for name, peer in list(history.peers.items())[:3]:
        tone = "goodword" if peer.ratio >= 1 else "warnword"
        stale = "" if peer.against == history.incumbent else f" beside #{peer.against}"
        parts.append((85, ((figures.ratio(peer.ratio), tone), (f" {fmt.visible(name, 16)}{stale}", "dim"))))
    if history.session is not None and history.session.device.kind == "simulated":
        parts.append((97, (("SIMULATED figures", "warnword"),)))
    noise = figures.percent(history.pair_noise, 2)
    parts.append((50, (("pair noise ", "dim"), (noise, ""))))
    now = view.telemetry.latest
    if now is not None and now.error:  # the guard has no clock of the driver's: by which error, before all else of it
        parts.append((75, (("clock guard off ", "warnword"), (fmt.visible(now.error.partition(": ")[0], 40), "warn"))))
    return parts


def _timed_beside(view: View) -> str:
    """Where the best's time is from, once it is not the one of its acceptance: it is refreshed from later pairs."""
    beside = view.trail.timed_beside
    if beside is None:
        return ""
    return "timed again" if beside == view.history.incumbent else f"timed beside #{beside}"


def _what(view: View) -> list[Part]:
    """Session, kernel and shape, backend and agent."""
    parts: list[Part] = [(50, ((fmt.visible(view.name, 40), "strong"),))]
    if view.read_only and not view.replay:
        parts.append((60, (("read-only", "accent"),)))
    if view.damaged:
        parts.append((58, ((f"{view.damaged} lines of the record passed over", "warn"),)))
    if view.trail.warned:
        parts.append((33, ((fmt.visible(view.trail.warned[0], WARNED), "warn"),)))
    session = view.history.session
    if session is not None:
        problem = session.problem
        shape = problem.shapes[-1].text if problem.shapes else ""
        parts.append((35, ((f"{fmt.visible(problem.kernel, 40)} {fmt.visible(shape, 40)}", "dim"),)))
        parts.append((10, ((fmt.visible(f"{session.backend}, {session.agent}", 60), "dim"),)))
    return parts


def _now(view: View) -> list[Part]:
    """What is being tried, in the words of the steps."""
    history = view.history
    if view.note:
        return [(57, ((fmt.visible(view.note, 80), "warnword"),))]
    flying = list(history.in_flight())
    if not flying or not (view.status.ticking or view.replay):
        asked = len(history.queue) + len(view.pending)
        return [(40, ((f"{asked} request{'' if asked == 1 else 's'} waiting", "accent"),))] if asked else []
    steps = [f"#{row.number} {STEP_WORDS.get(row.step, row.step)}" for row in flying[:4]]
    more = f" +{len(flying) - 4}" if len(flying) > 4 else ""
    words = f"round {flying[0].round}: {', '.join(steps)}{more}"
    parts: list[Part] = [(45, ((fmt.visible(words), "dim"),))]
    if history.queue:
        parts.append((55, ((f"{len(history.queue)} injected waiting", "accent"),)))
    return parts
