"""Every wait, arrive, commit, barrier, where and expect of the programs is needed, and every index is right.

Each mutant must be refused by a law whose line is one that the mutator knows to be left unprotected.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from cake_tui.ir.laws import verify
from cake_tui.ir.text import parse
from tests.ir import mutants

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.cake"))
ALLOWED = tomllib.loads(Path(__file__).with_name("allowed_mutants.toml").read_text(encoding="utf-8"))["mutant"]
ALLOWED_KEYS = {(item["program"], item["kind"], item["change"]) for item in ALLOWED}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_mutant_is_refused_at_a_line_it_leaves_unprotected(path: Path) -> None:
    program = parse(path.read_text(encoding="utf-8"))
    missed = []
    for mutant in mutants.mutants(program):
        if (path.stem, mutant.kind, mutant.what) in ALLOWED_KEYS:
            continue
        found = verify(mutant.program)
        if not {diagnostic.line for diagnostic in found} & mutant.lines:
            missed.append(
                f"{mutant.kind} {mutant.what}: {[diagnostic.text for diagnostic in found] or 'no law speaks'}"
            )
    assert not missed, "\n".join(missed)


def test_there_are_ten_mutants_of_each_kind_and_few_are_spared(capsys: pytest.CaptureFixture[str]) -> None:
    made, spared = Counter[str](), Counter[str]()
    for path in PROGRAMS:
        for mutant in mutants.mutants(parse(path.read_text(encoding="utf-8"))):
            made[mutant.kind] += 1
            spared[mutant.kind] += (path.stem, mutant.kind, mutant.what) in ALLOWED_KEYS
    with capsys.disabled():
        print("\nmutants:", ", ".join(f"{kind} {made[kind]} ({spared[kind]} spared)" for kind in mutants.KINDS))
    for kind in mutants.KINDS:
        assert made[kind] >= 10, kind
        assert spared[kind] <= 0.05 * made[kind], kind


def test_the_allow_list_names_mutants_that_exist_with_a_reason() -> None:
    for item in ALLOWED:
        program = parse(next(path for path in PROGRAMS if path.stem == item["program"]).read_text(encoding="utf-8"))
        assert any((mutant.kind, mutant.what) == (item["kind"], item["change"]) for mutant in mutants.mutants(program))
        assert len(item["reason"]) > 40
