"""The cost model as the probe's prior: believed as far as it was right, and asked only where little is measured."""

from __future__ import annotations

import math
import random
import statistics

from cake_tui import ir
from cake_tui.agents import Agent, _forecast
from cake_tui.agents._forecast import BELIEF, YOUNG, Forecast
from cake_tui.agents._record import Record
from cake_tui.agents.bandit import BanditAgent
from cake_tui.agents.random import make as make_random
from cake_tui.backends.simulated.surfaces import SURFACES
from cake_tui.ir import cost
from cake_tui.model import event as ev
from cake_tui.model.schedule import Schedule
from tests.agents.surface_session import SurfaceSession, packaged_menu


def predicted_us(schedule: Schedule) -> float:
    menu = packaged_menu()
    found = cost.estimate(ir.full_build(menu.problem, schedule, menu.device), menu.device, menu.problem.shapes)
    assert found is not None
    return found.predicted_us


def belief(run: SurfaceSession) -> float:
    record = Record()
    record.follow(run.history)
    return Forecast(run.menu, record).belief


def test_belief_follows_how_right_the_cost_model_was() -> None:
    """Over random settings, which lie further apart than what is proposed later."""

    def after(power: float) -> float:
        run = SurfaceSession(
            SURFACES["ridge"], make_random({}), 1, truth=lambda one: 1e3 * predicted_us(one) ** power, noise=0.0
        )
        assert math.isclose(belief(run), BELIEF)  # nothing to go by yet
        run.run(40)
        return belief(run)

    assert abs(after(1.0) - 1.0) < 0.05
    assert abs(after(0.5) - 0.5) < 0.05
    assert after(-1.0) < _forecast.BELIEF_LEAST


def test_numbers_of_young_structures_are_those_that_the_cost_model_expects_most_of() -> None:
    def typical_us(agent: Agent, rounds: range) -> float:
        run = SurfaceSession(SURFACES["ridge"], agent, 3, truth=predicted_us, noise=0.0)
        for _ in range(rounds.stop):
            list(run.round())
        rows = [
            row for row in run.history.rows if row.level == "micro" and row.standing is not None and row.round in rounds
        ]
        return statistics.median(predicted_us(row.schedule) for row in rows if row.schedule is not None)

    assert typical_us(BanditAgent(), range(2, 5)) < 0.5 * typical_us(make_random({}), range(2, 10))


def test_settings_that_cannot_be_built_are_not_proposed_while_a_structure_is_young() -> None:
    menu = packaged_menu()
    wide = menu.default("packed").with_knobs({"thread_m": 14, "thread_n": 4})
    forecast = Forecast(menu, Record())
    assert forecast.standing(wide) == -math.inf
    for seed in range(3):
        run = SurfaceSession(SURFACES["ridge"], BanditAgent(), seed)
        run.run(2 * YOUNG)
        assert not [row for row in run.history.rows if row.outcome == "Rejected"]


def test_a_structure_without_an_opinion_is_searched_all_the_same() -> None:
    assert Forecast(packaged_menu(), Record()).standing(Schedule.of("text-0123456789ab", {"BM": 64})) is None


def test_a_structure_on_its_way_is_not_begun_a_second_time() -> None:
    """As where the next round is planned while this one is timed."""
    run = SurfaceSession(SURFACES["ridge"], BanditAgent(), 1)
    history, menu = run.history, run.menu
    told = []
    for number in (1, 2):
        history.apply(ev.RoundBegan(round=number, size=4, incumbent=0))
        for proposal in BanditAgent().propose(history, menu, 4, random.Random(number)):
            schedule, level = menu.apply(menu.first, proposal.moves)
            history.apply(
                ev.Planned(
                    candidate=len(history.rows), round=number, proposal=proposal, level=level, schedule=schedule,
                    predicted_us=None, source_sha256=schedule.text,
                )
            )  # fmt: skip
            told += [(number, schedule.structure)] if "was never measured" in proposal.reason else []
    assert told
    assert len({structure for _, structure in told}) == len(told)
