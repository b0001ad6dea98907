"""The response surfaces: pure, with an answer for everything, and deceptive before numbers are tuned."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import subprocess
import sys

import pytest

from cake_tui.backends.simulated.surfaces import SURFACES, surface
from cake_tui.errors import UserError
from cake_tui.model.schedule import Schedule

# values as wide as a CPU's knobs plausibly are; the surfaces themselves know of no legal values
GRID = {
    "naive": {"unroll": (1, 2, 4, 8), "vector": (1, 4, 8, 16)},
    "tiled": {
        "thread_m": (1, 4, 8, 12), "thread_n": (1, 2, 4), "block_k": (16, 32, 64, 128), "vector": (1, 8, 16),
        "pad": (0, 8), "shared": (False, True), "unroll": (1, 4),
    },
    "packed": {
        "thread_m": (4, 6, 8, 12), "thread_n": (1, 2, 3, 4), "block_k": (128, 256, 512, 1024), "vector": (4, 8, 16),
        "pad": (0, 8), "unroll": (1, 2, 4),
    },
    "split_k": {
        "thread_m": (1, 4, 8, 12), "thread_n": (1, 2, 3, 4), "threads_x": (2, 4, 8, 16), "threads_y": (4, 8),
        "vector": (4, 8, 16), "split_k": (2, 4, 8), "unroll": (1, 4),
    },
}  # fmt: skip
WINNER = {"ridge": "packed", "cliffs": "split_k", "mirage": "tiled"}


def schedules(structure: str) -> list[Schedule]:
    names = list(GRID[structure])
    return [Schedule.of(structure, dict(zip(names, values))) for values in itertools.product(*GRID[structure].values())]


def middle(structure: str) -> Schedule:
    return Schedule.of(structure, {name: values[(len(values) - 1) // 2] for name, values in GRID[structure].items()})


@pytest.mark.parametrize("name", SURFACES)
def test_the_best_structure_wins_tuned_and_loses_untuned(name: str) -> None:
    place = surface(name)
    best = {structure: min(map(place.time_us, schedules(structure))) for structure in GRID}
    winner = min(best, key=best.__getitem__)
    assert winner == WINNER[name]
    second = sorted(best.values())[1]
    assert best[winner] < 0.9 * second, "no other structure is within 90 % of the best"
    assert place.time_us(middle(winner)) > second, "at moderate numbers it loses to another structure's best"
    assert statistics.median(map(place.time_us, schedules(winner))) > second


@pytest.mark.parametrize("name", SURFACES)
def test_single_steps_from_the_middle_do_not_reveal_the_optimum(name: str) -> None:
    """Interactions: the best value of a knob depends on the others, so one knob at a time from the middle fails."""
    place, structure = surface(name), WINNER[name]
    start = middle(structure)
    one_at_a_time = {
        knob: min(values, key=lambda value: place.time_us(start.with_knobs({knob: value})))
        for knob, values in GRID[structure].items()
    }
    best = min(map(place.time_us, schedules(structure)))
    assert place.time_us(start.with_knobs(one_at_a_time)) > best * 1.05


@pytest.mark.parametrize("name", SURFACES)
def test_every_structure_and_knob_has_a_sensible_answer(name: str) -> None:
    place = surface(name)
    values = (0, 1, 7, 4096, -3, True, False, "row", "Ω", 10**12)
    for structure in (*GRID, "template", "text-abc", "Ω", ""):
        for knobs in ({}, *({"BM": v, "thread_m": v, "block_k": v, "vector": v} for v in values)):
            time_us = place.time_us(Schedule.of(structure, knobs))
            assert math.isfinite(time_us)
            assert time_us > 0
    wide, narrow = (place.time_us(Schedule.of("template", {"BM": value})) for value in (16, 128))
    assert wide != narrow, "a knob nobody knows still matters"


def test_surfaces_are_pure_across_processes() -> None:
    schedule = Schedule.of("packed", {"thread_m": 8, "thread_n": 3, "block_k": 512, "colour": "red"})
    program = (
        "from cake_tui.backends.simulated.surfaces import SURFACES\n"
        "from cake_tui.model.schedule import Schedule\n"
        "import sys\n"
        f"s = Schedule.of('packed', {dict(schedule.knobs)!r})\n"
        "print([p.time_us(s) for p in SURFACES.values()], [p.ending(s) for p in SURFACES.values()])\n"
        "print([m for m in sys.modules if m.startswith('cake_tui.ir')])\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = [place.time_us(schedule) for place in SURFACES.values()]
    endings = [place.ending(schedule) for place in SURFACES.values()]
    assert out.splitlines() == [f"{here} {endings}", "[]"]


def test_cliffs_has_every_ending_and_naive_never_fails() -> None:
    place = surface("cliffs")
    rng = random.Random(5)
    seen: dict[str, int] = {}
    for _ in range(4000):
        structure = rng.choice(("tiled", "packed", "split_k"))
        knobs = {name: rng.choice(values) for name, values in GRID[structure].items()}
        knobs["threads_x"] = rng.choice((1, 2, 4, 8, 16))
        ending = place.ending(Schedule.of(structure, knobs))
        seen[ending] = seen.get(ending, 0) + 1
    assert set(seen) == {"Measured", "BuildFailed", "LaunchFailed", "Crashed", "TimedOut", "WrongAnswer"}
    assert seen["Measured"] > 0.9 * 4000
    assert {p.ending(s) for p in SURFACES.values() for s in schedules("naive")} == {"Measured"}


def test_an_unknown_surface_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r'no simulated surface "rigde" .did you mean "ridge"'):
        surface("rigde")
