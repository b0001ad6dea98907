"""A09: among many equal candidates the luckiest never becomes best; what does is measured again and on record."""

from __future__ import annotations

import pytest

from cake_tui.model import event as ev
from tests.cases.shell import Shell, events
from tests.engine.scripted import folded


@pytest.mark.soak
def test_equal_candidates_stay_equal(shell: Shell, soak_share: float) -> None:
    """The gate itself meets five hundred of them in tests/steps; here the whole product does."""
    session = shell.headless(
        device="mirage,flat_us=1000,noise=2,seed=5,failures=0", candidates=max(25, round(500 * soak_share))
    )
    history = folded(session)
    accepted = [row for row in history.rows if row.verdict == "accepted"]
    assert len(accepted) <= 1
    assert history.incumbent_us == pytest.approx(1000.0, rel=0.05)
    coarse = {event.candidate: event for event in events(session, ev.Coarse)}
    measured = [row.number for row in history.rows if row.outcome == "Measured"]
    assert set(measured) <= set(coarse)
    for number in measured[1:]:
        assert len(coarse[number].series) == 3
        assert all(pair.holder_us > 0 and pair.candidate_us > 0 for one in coarse[number].series for pair in one.pairs)
    for row in accepted:
        (gated,) = [event for event in events(session, ev.GateEnded) if event.candidate == row.number]
        assert gated.result.confirmed
        assert gated.result.series >= 8
    assert {event.decision for event in (one.result for one in events(session, ev.GateEnded))} <= {
        "reject", "undecided", "noisy", "accept"
    }  # fmt: skip


def test_a_real_gain_is_confirmed_beside_the_best_as_it_then_is(shell: Shell) -> None:
    session = shell.headless(device="ridge,failures=0", candidates=12)
    wins = [row for row in folded(session).rows if row.verdict == "accepted"]
    assert wins
    for row in wins:
        gated = next(event for event in events(session, ev.GateEnded) if event.candidate == row.number)
        assert gated.result.confirmed
        before = [event for event in events(session, ev.Coarse) if event.candidate == row.number]
        assert len(before[0].runs_us) == 3
        assert gated.result.holder_us > gated.result.candidate_us
        # The best is the one that held the place at that moment, timed in the same series.
        holders = [0, *(one.number for one in wins if one.number < row.number)]
        assert gated.against in holders
