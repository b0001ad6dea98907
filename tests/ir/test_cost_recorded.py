"""The cost model on the recorded random session: predicted by the product before each candidate was measured."""

from __future__ import annotations

import functools
import math
from pathlib import Path

from cake_tui.model.history import History
from cake_tui.store.reading import JournalReader
from cake_tui.store.snapshot import fold_new
from tests.benchmarks.cost_model import evaluate_model, report, sample_of, spearman

SESSION = Path(__file__).parents[2] / "sessions" / "example-cpu-512-random"
CALIBRATED = 60


@functools.cache
def recorded() -> History:
    history = History()
    fold_new(history, JournalReader(SESSION / "journal.jsonl"))
    return history


def test_the_sample_is_random_unscreened_and_large_enough() -> None:
    history = recorded()
    assert history.session is not None
    assert history.session.agent == "random"
    assert history.settings["screen"] is False
    assert len(sample_of(history)) >= 200


def test_what_the_run_itself_predicted_ranks_what_it_then_measured() -> None:
    history = recorded()
    baseline = history.baseline_us
    assert baseline is not None
    pairs = [
        (row.predicted_us, baseline * math.exp(-row.standing))
        for row in history.measured()
        if row.number > 0 and row.predicted_us is not None and row.standing is not None
    ][CALIBRATED:]
    found = spearman([predicted for predicted, _ in pairs], [measured for _, measured in pairs])
    print(f"predicted before measured: {len(pairs)} judged, Spearman {found:.3f}")
    assert found >= 0.7


def test_the_model_screens_to_half_with_little_regret_and_beats_simpler_ones() -> None:
    qualities = evaluate_model(sample_of(recorded()), CALIBRATED)
    print(report(qualities))
    model, constant, flops = (qualities[name] for name in ("model", "constant", "flops"))
    assert model.spearman >= 0.7
    assert model.regret <= 0.02
    assert model.kept < 0.9, "a model that abstains from everything screens nothing"
    for other in (constant, flops):
        assert model.spearman > other.spearman
        assert model.regret < other.regret
