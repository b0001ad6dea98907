"""Case A10 on the board: times taken at another clock than the normal one are marked."""

from __future__ import annotations

import re

from cake_tui.model import event as ev
from cake_tui.model.measure import Stale
from tests.tui.conftest import app_of
from tests.tui.pilot import text_after
from tests.tui.sample import Sample


def marked(sample: Sample) -> tuple[int, int]:
    """How many rows of the board have a time, and how many of them a marked one."""
    text = text_after(app_of(sample), ["4", "z", "f"])
    times = re.findall(r"(\*?)\d[\d.]* (?:µs|us|ms)\b", text.split("outcome")[1])
    return len(times), sum(mark == "*" for mark in times)


def test_times_at_the_old_clock_are_marked_and_those_that_follow_are_not(sample: Sample) -> None:
    count, old = marked(sample)
    assert count > 5
    assert old == 0
    sample.put(ev.GuardFired(candidate=3, stale=Stale("S4", "rate 1.59", "new normal rate", 1.98, 1.59)))
    count, old = marked(sample)
    assert old == count
    sample.put(ev.GuardFired(candidate=4, stale=Stale("S4", "rate 1.98", "new normal rate", 1.59, 1.98)))
    assert marked(sample)[1] == 0
