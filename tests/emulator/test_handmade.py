"""The emulator itself: kernels written by hand run right in every order; each of their mutants is found and named."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.compiling import NEEDED
from tests.emulator.handmade import HANDMADE, KERNELS, run, source_of

MUTANTS = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))["mutant"]
SIZES = [(64, 64, 64), (36, 52, 44)]
ODD = (33, 17, 65)

pytestmark = NEEDED


@pytest.mark.parametrize("name", HANDMADE)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_right_kernel_passes_in_every_order(name: str, sizes: tuple[int, int, int]) -> None:
    for seed in range(1, 5):
        assert run(name, sizes, seed=seed) is None


def test_every_kernel_file_is_used() -> None:
    assert {path.stem for path in KERNELS.glob("*.cu")} == set(HANDMADE)
    assert {mutant["kernel"] for mutant in MUTANTS} == set(HANDMADE)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant['kernel']}: {mutant['new'] or mutant['old']}")
def test_a_mutant_is_found_and_named(mutant: dict[str, Any]) -> None:
    parts = source_of(mutant["kernel"]).split(mutant["old"])
    assert len(parts) > 1, "the kernel says no such thing"
    at = mutant.get("nth")
    places = range(1, len(parts)) if at is None else [at + 1]
    text = parts[0] + "".join(
        (mutant["new"] if i in places else mutant["old"]) + parts[i] for i in range(1, len(parts))
    )
    found = run(mutant["kernel"], SIZES[1], text, limit_s=0.5 if mutant["kind"] == "time" else 30)
    assert found is not None
    assert found.kind in mutant["kind"].split(" or "), found.where
    assert mutant["says"] in found.where
