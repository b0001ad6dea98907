"""What a session does about clocks and gaps: the best timed again, noise measured again, times marked as old."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cake_tui import loop
from cake_tui.menu import Menu
from cake_tui.model import event as ev
from cake_tui.model.history import History
from cake_tui.model.measure import Clock, Pair, Series, Stale
from cake_tui.model.move import Proposal
from cake_tui.steps.context import Context
from tests.loop.driving import Session

ROUNDS = (["use_packed_panels()"], ["apply_register_block(8, 2)"], ["apply_unroll(4)"], ["apply_unroll(2)"])
QUIET = "ridge,noise=0,drift=0,failures=0"


class Listed:
    """Proposes from a list, round by round; then nothing."""

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        at = history.round - 1
        texts = ROUNDS[at] if at < len(ROUNDS) else ()
        return [Proposal(history.incumbent or 0, (menu.parse(text),), "listed", "script", "test") for text in texts]


def drive(session: Session, after: Callable[[Context, ev.Event], None], rounds: int = len(ROUNDS)) -> None:
    """Run some rounds; `after` is called behind each event and may record others."""
    with session.context(Listed()) as ctx:
        story = loop.run(ctx)
        for event in story:
            after(ctx, session.record(event))
            if isinstance(event, ev.RoundEnded) and event.round == rounds:
                break
        story.close()


def names(events: Sequence[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


# -- gaps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["wall", "stopped", "offline"])
def test_after_a_gap_the_best_is_timed_again_before_it_is_compared(tmp_path: Path, what: str) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.RoundEnded) and event.round == 1:
            session.record(ev.GapSeen(seconds=36_000.0, what=what))  # type: ignore[arg-type]

    drive(session, after, rounds=2)
    at = names(session.events).index("GapSeen")
    behind = session.events[at + 1 :]
    coarse = names(behind).index("Coarse")
    [timed] = [event for event in behind[:coarse] if isinstance(event, ev.IncumbentTimed)]
    holder = behind[coarse].against  # type: ignore[attr-defined]
    assert timed.candidate == holder
    assert timed.avg_us == pytest.approx(session.history.rows[holder].time_us, rel=0.05)
    assert not session.history.retime_due
    assert names(behind[coarse + 1 :]).count("IncumbentTimed") == 0


def test_a_quick_best_gets_its_pair_noise_measured_again_after_a_gap(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.RoundEnded) and event.round == 2:
            assert (session.history.incumbent_us or 0.0) < loop.QUICK_US
            session.record(ev.GapSeen(seconds=120.0, what="stopped"))

    drive(session, after, rounds=3)
    at = names(session.events).index("GapSeen")
    behind = names(session.events[at + 1 :])
    assert behind.index("NoiseCalibrated") < behind.index("IncumbentTimed") < behind.index("Coarse")


def test_after_a_gap_the_guard_learns_the_clock_anew(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.RoundEnded) and event.round == 1:
            ctx.guard.forget()
            for _ in range(6):  # a clock ten times faster than the one that the evaluator has
                ctx.guard.judge(Series((Pair(1.0, 1.0, True),), Clock(0.0, rate=30.0), Clock(0.1, rate=30.0)))
            session.record(ev.GapSeen(seconds=36_000.0, what="wall"))

    drive(session, after, rounds=2)
    at = names(session.events).index("GapSeen")
    assert "Coarse" in names(session.events[at:])
    assert "GuardFired" not in names(session.events[at:])


def test_a_gap_before_there_is_a_best_asks_for_nothing(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)
    session.record(ev.GapSeen(seconds=5.0, what="stopped"))
    drive(session, lambda ctx, event: None, rounds=1)
    first = next(event for event in session.events if isinstance(event, ev.CandidateEnded))
    assert first.candidate == 0
    assert "IncumbentTimed" not in names(session.events)


# -- noise and settings -------------------------------------------------------------------------------------


def test_noise_that_is_due_is_measured_at_the_end_of_the_round(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.RoundEnded) and event.round == 2:
            ctx.guard.calibration_due = True
        if isinstance(event, ev.RoundBegan) and event.round == 3:
            assert not ctx.guard.calibration_due

    drive(session, after, rounds=3)
    rounds = [index for index, event in enumerate(session.events) if isinstance(event, ev.RoundEnded)]
    between = names(session.events[rounds[1] : rounds[2]])
    began = between.index("RoundBegan")
    assert "NoiseCalibrated" in between[:began]
    calibrated = session.events[rounds[1] + between.index("NoiseCalibrated")]
    assert isinstance(calibrated, ev.NoiseCalibrated)
    assert calibrated.pairs == 16


def test_noise_is_not_measured_on_a_slow_best(tmp_path: Path) -> None:
    session = Session(tmp_path, f"{QUIET},flat_us=30000", candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        ctx.guard.calibration_due = True

    drive(session, after, rounds=2)
    assert "NoiseCalibrated" not in names(session.events)


def test_the_guard_follows_its_setting(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)
    seen: list[int] = []

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.Coarse):
            seen.append(ctx.guard.refusals)
            settings = {**session.history.settings, "guard_refusals": 9}
            session.record(ev.SettingsChanged(changes=(("guard_refusals", "5", "9"),), settings=settings))

    drive(session, after, rounds=2)
    assert seen[:3] == [5, 9, 9]


# -- times at another clock: case A10 -----------------------------------------------------------------------


def moved(before: float | None, now: float | None, code: str = "S4") -> ev.GuardFired:
    return ev.GuardFired(candidate=None, stale=Stale(code, "saw", "reaction", before, now))


def test_candidates_say_at_which_clock_they_were_timed(tmp_path: Path) -> None:
    session = Session(tmp_path, QUIET, candidates=24, screen=False)

    def after(ctx: Context, event: ev.Event) -> None:
        if isinstance(event, ev.RoundEnded) and event.round == 1:
            session.record(moved(1.98, 1.59, "S2"))

    drive(session, after, rounds=2)
    timed = {row.number: row.epoch for row in session.history.measured()}
    assert timed[0] == timed[1] == 0
    assert timed[2] == 1
    assert session.history.epoch == 1


@pytest.mark.parametrize(
    ("events", "epoch"),
    [
        ([moved(1.98, 1.59)], 1),
        ([moved(1.98, 1.59), moved(1.59, 1.98)], 0),
        ([moved(1.98, 1.59), moved(1.59, 1.30)], 2),
        ([moved(1.98, 1.59), moved(1.59, 1.97), moved(1.97, 1.60)], 1),
        ([moved(None, None)], 1),
        ([moved(None, None), moved(None, None)], 2),
        ([moved(None, None), moved(1.59, 1.98)], 2),
        ([moved(None, None, "S2"), moved(None, None, "S9")], 0),
    ],
)
def test_a_clock_that_comes_back_is_the_one_it_was(events: list[ev.GuardFired], epoch: int) -> None:
    history = History()
    for event in events:
        history.apply(event)
    assert history.epoch == epoch
