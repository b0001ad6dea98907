"""The cost model on recorded random sessions: predicted by the product before each candidate was measured."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.agents.samples import STORED, Sample, read_history
from tests.benchmarks.cost_model import as_predicted, estimates_of, evaluate_model, report

SESSION = Path(__file__).parents[2] / "sessions" / "example-cpu-512-random"


@functools.cache
def recorded(name: str) -> Sample:
    return Sample.of(read_history(SESSION / "journal.jsonl")) if name == SESSION.name else Sample.stored(name)


pytestmark = pytest.mark.parametrize("name", [SESSION.name, *STORED])


def test_the_sample_is_random_unscreened_and_large_enough(name: str) -> None:
    sample = recorded(name)
    assert sample.agent == "random"
    assert not sample.screened
    assert len(estimates_of(sample)) >= 200


def test_what_the_run_itself_predicted_ranks_what_it_then_measured(name: str) -> None:
    found = as_predicted(recorded(name))
    print(f"{name}: predicted before measured, Spearman {found:.3f}")
    assert found >= 0.7


def test_the_model_screens_to_half_with_little_regret_and_beats_simpler_ones(name: str) -> None:
    qualities = evaluate_model(estimates_of(recorded(name)))
    print(f"{name}\n{report(qualities)}")
    model, constant, flops = (qualities[name] for name in ("model", "constant", "flops"))
    assert model.spearman >= 0.7
    assert model.regret <= 0.02
    assert model.kept < 0.9, "a model that abstains from everything screens nothing"
    for other in (constant, flops):
        assert model.spearman > other.spearman
        assert model.regret < other.regret
