"""Sample efficiency: candidates to 90 % of the optimum's speed, bandit against random search, and its two levels.

On the three surfaces with 5 seeds; ``--soak`` runs 20. The same with 20 on recorded samples, replayed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection

import pytest

from cake_tui.agents import Agent
from cake_tui.agents.bandit import make as make_bandit
from cake_tui.agents.random import make as make_random
from cake_tui.backends.simulated.surfaces import SURFACES, Surface
from cake_tui.model.schedule import Schedule
from tests.agents.recorded import RecordedSurface
from tests.agents.replay import CUBES, NAMES, Replay, recorded
from tests.agents.samples import Sample
from tests.agents.surface_session import (
    SurfaceSession,
    laws,
    median_candidates,
    optimum_us,
    reachable,
)

MOST = 600  # effective candidates a run
SHARE = 0.9
SEEDS = 20  # of replays


def candidates(agent: str, seed: int, surface: Surface, target_us: float, most: float) -> int | None:
    session = SurfaceSession(surface, agent_of(agent), seed)
    needed = session.run(math.ceil(most), target_us)
    assert session.refused_by_menu == 0
    return needed


@functools.cache
def agent_of(agent: str) -> Agent:
    """One for all runs, which spares it to read the menu anew: agents keep nothing of another history."""
    return make_random({}) if agent == "random" else make_bandit({"argument": "micro" if agent == "micro" else ""})


def median_over(seeds: Collection[int], run: Callable[[int], int | None]) -> float:
    """The median of a run's candidates; no further run where half of them never arrived, which makes it infinite."""
    counts: list[int | None] = []
    for seed in seeds:
        counts.append(run(seed))
        if 2 * counts.count(None) >= len(seeds):
            return math.inf
    return median_candidates(counts)


def compare(surface: Surface, target_us: float, soak: bool) -> str:
    """Compare the medians of the three arms and return them as one line.

    Random search runs on only as far as it takes to tell whether it needs twice the bandit's candidates.
    """
    seeds = range(20 if soak else 5)
    bandit = median_over(seeds, lambda seed: candidates("bandit", seed, surface, target_us, MOST))
    assert bandit <= MOST, "at most half of the bandits arrive at all"
    enough = 2 * MOST if soak else 2 * bandit
    random = median_over(seeds, lambda seed: candidates("random", seed, surface, target_us, enough))
    micro = median_over(seeds, lambda seed: candidates("micro", seed, surface, target_us, enough))
    assert 2 * bandit <= random
    assert 2 * micro > random or math.isinf(micro)
    return (
        f"{len(seeds)} seeds, median candidates to 90 %: bandit {bandit:g}, random {told(random, enough)}, "
        f"bandit without its macro level {told(micro, enough)}"
    )


def replayed(table: RecordedSurface, agent: str, target_us: float, most: float = math.inf) -> float:
    """The median over seeds, none of them run beyond `most` candidates.

    Without screening, as the samples were recorded: what is compared is the agents, not what is kept of them.
    """

    def run(seed: int) -> int | None:
        replay = Replay(table, agent_of(agent), seed, screen=False, drawn_starts=True)
        return replay.reach([target_us], most)[0]

    return median_over(range(SEEDS), run)


def told(count: float, most: float) -> str:
    return f"{count:g}" if count <= most else f"more than {most:g}"


def drawn(table: RecordedSurface, target_us: float) -> float:
    return median_candidates([table.drawn(seed, target_us) for seed in range(200)])


@pytest.mark.parametrize("name", SURFACES)
def test_bandit_needs_at_most_half_of_random_searchs_candidates(
    name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    line = compare(SURFACES[name], optimum_us(name) / SHARE, request.config.getoption("--soak"))
    with capsys.disabled():
        print(f"\n{name}: {line}")


@pytest.mark.parametrize("name", NAMES)
def test_bandit_is_as_much_better_where_builders_defaults_solve_nothing(
    name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """On recorded samples, with what structures start from drawn out of the record, alike for both agents.

    From builders' defaults both may be there with the first settings, and there is no search to compare: see the
    figures that ``python -m tests.benchmarks.agents`` prints and keeps.
    """
    if name in CUBES and not request.config.getoption("--soak"):
        pytest.skip("a sample that was not recorded by the product: --soak")
    table = recorded(name)
    target_us = table.optimum_us / SHARE
    bandit = replayed(table, "bandit", target_us)
    random, micro = (replayed(table, agent, target_us, 2 * bandit) for agent in ("random", "micro"))
    rows, once = drawn(table, target_us), table.as_recorded(target_us)
    with capsys.disabled():
        print(
            f"\n{name} ({table.count} times), {SEEDS} seeds, median candidates to 90 %: bandit {bandit:g}, random "
            f"{told(random, 2 * bandit)}, bandit without its macro level {told(micro, 2 * bandit)}; "
            f"rows drawn anew {rows:g}; the recorded run, from builders' defaults, {once}"
        )
    assert 2 * bandit <= random
    assert 2 * bandit <= rows
    assert 2 * bandit < micro


def test_a_recorded_session_answers_with_its_own_times_each_once() -> None:
    session = SurfaceSession(SURFACES["ridge"], make_random({}), 1, noise=0.0)
    session.run(60)
    table = RecordedSurface.of(Sample.of(session.history))
    rows = [row for row in session.history.rows if row.standing is not None and row.schedule is not None]
    assert table.count == len(rows)
    had: list[Schedule | None] = []
    for row in rows:
        assert row.schedule is not None
        assert table.time_us(row.schedule) == pytest.approx(SURFACES["ridge"].time_us(row.schedule), rel=1e-6)
        assert table.nearest(row.schedule, had) == row.schedule
        had.append(row.schedule)
    assert table.nearest(had[0] or Schedule.of("naive"), had) is None
    assert table.nearest(Schedule.of("unheard-of"), []) is None


def test_replaying_a_recorded_session_measures_recorded_schedules_only() -> None:
    once = SurfaceSession(SURFACES["cliffs"], make_random({}), 2, noise=0.0)
    once.run(50)
    table = RecordedSurface.of(Sample.of(once.history))
    known = {row.schedule for row in once.history.rows if row.standing is not None}
    replayed = Replay(table, make_bandit({}), 3, screen=False)
    replayed.run(45)
    measured = [row.schedule for row in replayed.history.rows if row.standing is not None]
    assert len(measured) >= 40
    assert set(measured) <= known
    assert len(set(measured)) == len(measured)


def test_the_search_for_the_optimum_finds_what_enumeration_finds() -> None:
    """Over all reachable settings of the tiled structure that differ in five knobs from the ones it found best."""
    place = SURFACES["mirage"]
    values = reachable("tiled")
    fixed = {"threads_x": 8, "threads_y": 8, "unroll": 4}
    names = [name for name in values if name not in fixed]
    found = math.inf
    for chosen in itertools.product(*(values[name] for name in names)):
        schedule = Schedule.of("tiled", {**fixed, **dict(zip(names, chosen))})
        time_us = place.time_us(schedule)
        if time_us < found and place.ending(schedule) == "Measured" and laws(schedule) is None:
            found = time_us
    assert optimum_us("mirage") <= found * 1.0001
    assert optimum_us("mirage") >= found * 0.97, "the ripple and the fixed knobs leave no more than this"
