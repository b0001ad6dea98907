"""Every rule that the registry finds: its words, its manners, and its measured cases from tests/data/rules."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cake_tui import registry, rules
from cake_tui.menu import load
from cake_tui.model.outcome import Outcome
from cake_tui.rules import confidence
from tests.rules.evidence import evidence

DATA = Path(__file__).parents[1] / "data" / "rules"
RULES = registry.names("rules")


def cases() -> list[tuple[str, int, dict[str, Any]]]:
    found = []
    for path in sorted(DATA.glob("*.toml")):
        for number, case in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["case"]):
            found.append((path.stem, number, case))
    return found


@pytest.mark.parametrize(("rule", "number", "case"), cases(), ids=lambda value: str(value)[:40])
def test_measured_case_gives_its_finding(rule: str, number: int, case: dict[str, Any]) -> None:
    finding = registry.load("rules", rule)(evidence(case["evidence"]))
    if "finding" not in case:
        assert finding is None, case["name"]
        return
    wanted = case["finding"]
    assert finding is not None, case["name"]
    assert (finding.rule, finding.label, finding.kind) == (rule, wanted["label"], wanted["kind"])
    low, high = wanted["confidence"]
    assert low <= finding.confidence <= high
    seen = dict(finding.evidence)
    for key, value in wanted.get("evidence", {}).items():
        assert seen[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    for action in wanted.get("actions", ()):
        assert action in finding.actions


@pytest.mark.parametrize("rule", RULES)
def test_rule_has_a_case_that_fires_and_one_that_does_not(rule: str) -> None:
    mine = [case for name, _, case in cases() if name == rule]
    assert any("finding" in case for case in mine), f"tests/data/rules/{rule}.toml: no case with a finding"
    assert any("finding" not in case for case in mine), f"tests/data/rules/{rule}.toml: no case without a finding"


@pytest.mark.parametrize("rule", RULES)
def test_rule_says_signal_why_and_what_to_try(rule: str) -> None:
    words = rules.text(rule)
    assert words.signal
    assert words.why
    assert words.advice


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_silent_about_an_ordinary_candidate(rule: str) -> None:
    assert registry.load("rules", rule)(evidence()) is None


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", [ending.__name__ for ending in Outcome.__args__])
def test_rule_copes_with_every_outcome_and_nothing_known(rule: str, kind: str) -> None:
    nothing = {"none": True}
    unknown = dict.fromkeys(("schedule", "time_us", "facts", "agreement", "profile", "gate", "pair_noise"), nothing)
    finding = registry.load("rules", rule)(evidence({**unknown, "outcome": {"kind": kind}}))
    if finding is not None:
        assert 0.0 <= finding.confidence <= 1.0
        assert msgspec.json.encode(finding)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "odd",
    [
        {
            "profile": {
                "memory_throughput_pct": float("nan"),
                "sm_busy_pct": float("nan"),
                "imbalance_pct": float("nan"),
            }
        },
        {"agreement": {"bound_share": float("nan")}, "pair_noise": float("nan")},
        {"facts": {"vector_share": 0.0, "fma_instructions": 0, "vector_bytes": 0}},
        {"device": {"cores": 1, "vector_bytes": 0, "l1_bytes": 0, "line_bytes": 0}},
        {"problem": {"shapes": [{"sizes": [["R", 7]]}], "family": "reduction"}, "schedule": {"knobs": []}},
        {"problem": {"shapes": [{"sizes": [["M", 1], ["N", 1], ["K", 1]]}]}},
        {"schedule": {"structure": "x", "knobs": [["thread_m", 0], ["pad", False], ["vector", "wide"]]}},
    ],
)
def test_rule_copes_with_odd_values(rule: str, odd: dict[str, Any]) -> None:
    finding = registry.load("rules", rule)(evidence(odd))
    assert finding is None or 0.0 <= finding.confidence <= 1.0


@pytest.mark.parametrize("rule", RULES)
def test_labels_are_the_files_name_in_words(rule: str) -> None:
    # Advice that failed is counted by label, so that a label must lead back to its rule.
    for name, _, case in cases():
        if name == rule and "finding" in case:
            assert case["finding"]["label"] == rule.replace("_", " ")


def test_actions_that_rules_name_are_on_the_menu() -> None:
    base = evidence()
    known = {action.name for action in load(None, base.problem, base.device).actions}
    for rule in RULES:
        tree = ast.parse((registry.PACKAGE / "rules" / f"{rule}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "actions":
                named = {one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)} - {None}
                assert named <= known, rule
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and rule == "over_limit":
                named = {one.value for one in node.value.values if isinstance(one, ast.Constant)}
                assert named <= known, rule


@pytest.mark.parametrize(
    ("share", "agrees", "measured", "expected"),
    [
        (0.9, True, True, 0.9),
        (0.9, None, True, 0.54),
        (0.9, False, True, 0.27),
        (0.9, True, False, 0.5),  # static evidence alone
        (7.0, True, True, 1.0),
        (-1.0, True, True, 0.0),
    ],
)
def test_confidence_weighs_the_second_signal_and_caps_static_evidence(
    share: float, agrees: bool | None, measured: bool, expected: float
) -> None:
    assert confidence(share, agrees, measured=measured) == pytest.approx(expected)


def test_users_words_replace_the_docstring_section_by_section(tmp_path: Path) -> None:
    (tmp_path / "spills.md").write_text("# Spills\n\n## Try\n\nhalve thread_m\nfirst [/b]\n", encoding="utf-8")
    words = rules.text("spills", tmp_path)
    assert words.advice == "halve thread_m first [/b]"
    assert words.signal == rules.text("spills").signal


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00Try", b"no section at all"])
def test_useless_words_of_the_user_fall_back_to_the_docstring(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "spills.md").write_bytes(content)
    assert rules.text("spills", tmp_path) == rules.text("spills")


def test_a_folder_in_place_of_the_users_file_falls_back_to_the_docstring(tmp_path: Path) -> None:
    (tmp_path / "spills.md").mkdir()
    assert rules.text("spills", tmp_path) == rules.text("spills")


def test_endless_words_are_cut(tmp_path: Path) -> None:
    (tmp_path / "spills.md").write_text("*Try*: " + "x" * 100_000, encoding="utf-8")
    assert len(rules.text("spills", tmp_path).advice) == 1000
