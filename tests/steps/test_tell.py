"""The feedback JSON for every outcome: fixed names, numbers that are numbers, unknown as null."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from cake_tui.model.feedback import BestSoFar, Feedback
from cake_tui.model.finding import Finding
from cake_tui.model.measure import Clock
from cake_tui.model.outcome import Outcome
from cake_tui.steps.tell import Told, compile_status, failure, feedback
from tests.rules.evidence import evidence

NAMES = {
    "iteration", "action_taken", "compile_status", "outcome", "verdict", "correctness", "perf", "profile", "failure",
    "best_so_far", "findings", "round",
}  # fmt: skip
DIAGNOSTIC = {
    "law": "shared-memory", "field": "block_k", "found": "262144 bytes", "needed": "at most 232448",
    "limit": "shared memory", "asked": 262144.0, "available": 232448.0, "unit": "bytes",
}  # fmt: skip
BEST = BestSoFar(None, 1400.0, 12)


def told(outcome: dict[str, Any], *, built: bool = True, **changes: Any) -> Any:
    found = feedback(
        Told(127, "apply_vectorize(4)", BEST, (152.4, 152.1, 153.0), built=built),
        evidence({**changes, "outcome": outcome}),
    )
    return json.loads(msgspec.json.encode(found))


def outcome(**values: Any) -> Any:
    return evidence({"outcome": values}).outcome


def test_measured_candidate_tells_everything() -> None:
    gate = {
        "decision": "reject", "gain": -0.02, "gain_low": -0.03, "looks": 1, "series": 4, "confirmed": False,
        "reason": "", "candidate_us": 1500.0, "holder_us": 1470.0,
    }  # fmt: skip
    found = told({"kind": "Measured", "verdict": "slower", "avg_us": 1500.0}, gate=gate)
    assert set(found) >= NAMES
    assert (found["iteration"], found["action_taken"]) == (127, "apply_vectorize(4)")
    assert (found["compile_status"], found["outcome"], found["verdict"]) == ("ok", "Measured", "slower")
    assert found["correctness"] == {
        "max_abs_err": 1e-6,
        "rel_err": 1e-6,
        "passed": True,
        "worst_unit": 3.0,
        "failure": None,
        "notes": [],
    }
    assert found["perf"]["avg_us"] == 1500.0
    assert found["perf"]["runs_us"] == [152.4, 152.1, 153.0]
    assert found["perf"]["throughput_tflops"] == pytest.approx(2 * 512**3 / 1500e-6 / 1e12)
    assert found["perf"]["gain_pct"] == pytest.approx(100 * (math.exp(-0.02) - 1))
    assert found["perf"]["pair_noise_pct"] == pytest.approx(0.5)
    assert found["profile"]["source"] == "static+model"
    assert found["failure"] is None
    assert found["best_so_far"] == {"rank_est": None, "avg_us": 1400.0, "candidate": 12}


@pytest.mark.parametrize("kind", [ending.__name__ for ending in Outcome.__args__])
def test_every_outcome_has_feedback_with_the_fixed_names(kind: str) -> None:
    nothing = {"none": True}
    unknown = dict.fromkeys(("schedule", "time_us", "facts", "agreement", "profile", "gate", "pair_noise"), nothing)
    found = told({"kind": kind}, built=False, **unknown)
    assert set(found) >= NAMES
    assert found["outcome"] == kind
    assert found["verdict"] is None
    assert found["perf"] is None
    failed = kind not in ("Measured", "Screened", "Repeated", "Interrupted")
    assert (found["failure"] is not None) == failed
    msgspec.json.decode(json.dumps(found).encode(), type=Feedback)


@pytest.mark.parametrize(
    ("ending", "built", "status"),
    [
        ({"kind": "Measured"}, True, "ok"),
        ({"kind": "WrongAnswer", "step": "check"}, True, "ok"),
        ({"kind": "BuildFailed", "step": "build"}, False, "no"),
        ({"kind": "TimedOut", "step": "build"}, False, "timeout"),
        ({"kind": "TimedOut", "step": "check"}, True, "ok"),
        ({"kind": "LaunchFailed", "step": "check"}, True, "ok"),
        ({"kind": "Crashed", "step": "check"}, True, "ok"),
        ({"kind": "Crashed", "step": "planned"}, False, "no"),
        ({"kind": "Interrupted", "step": "measure"}, True, "ok"),
        ({"kind": "Interrupted"}, False, "skipped"),
        ({"kind": "Rejected", "step": "laws"}, False, "skipped"),
        ({"kind": "Screened"}, False, "skipped"),
        ({"kind": "Repeated"}, False, "skipped"),
    ],
)
def test_compile_status_is_how_far_the_compiler_came(ending: dict[str, Any], built: bool, status: str) -> None:
    assert compile_status(outcome(**ending), built=built) == status


def test_refusal_by_a_law_gives_its_limit_as_numbers() -> None:
    found = told({"kind": "Rejected", "reason": "too large", "diagnostics": [DIAGNOSTIC]}, built=False)
    assert found["failure"] == {
        "reason": "too large", "limit": "shared memory", "asked": 262144.0, "available": 232448.0, "unit": "bytes",
    }  # fmt: skip


def test_the_diagnostic_with_numbers_is_told_before_others() -> None:
    plain = {"law": "where", "field": "A", "found": "x", "needed": "y"}
    both = failure(outcome(kind="Rejected", diagnostics=[plain, DIAGNOSTIC]))
    assert both is not None
    assert both.asked == 262144.0
    alone = failure(outcome(kind="Rejected", reason="r", diagnostics=[plain]))
    assert alone is not None
    assert (alone.limit, alone.asked) == ("A", None)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "ptxas error   : Entry function 'k' uses too much shared data (0x14000 bytes, 0xc000 max)",
            ("shared", 81920.0, 49152.0, "bytes"),
        ),
        ("kernel.c:3: error: expected ';'", (None, None, None, None)),
        ("uses too much shared data (many bytes, few max)", (None, None, None, None)),
        ("", (None, None, None, None)),
        ("\x00\xff[/b] too much", (None, None, None, None)),
    ],
)
def test_limit_hidden_in_a_compiler_log_is_found(log: str, expected: tuple[Any, ...]) -> None:
    found = failure(outcome(kind="BuildFailed", reason="ended with 255", log=log))
    assert found is not None
    assert (found.limit, found.asked, found.available, found.unit) == expected
    assert found.reason == "ended with 255"


def test_launch_time_and_answer_have_their_limits_too() -> None:
    launch = failure(outcome(kind="LaunchFailed", limit="threads", asked=1056.0, available=1024.0, unit="threads"))
    assert launch is not None
    assert (launch.limit, launch.asked, launch.available) == ("threads", 1056.0, 1024.0)
    late = failure(outcome(kind="TimedOut", step="build", limit_s=120.0))
    assert late is not None
    assert (late.limit, late.available, late.unit) == ("build time", 120.0, "s")
    wrong = failure(outcome(kind="WrongAnswer", failure="unwritten", bad_elements=3))
    assert wrong is not None
    assert (wrong.limit, wrong.asked, wrong.unit) == ("unwritten", 3.0, "wrong elements")


def test_wrong_answer_did_not_pass_and_says_which_probe() -> None:
    found = told({"kind": "WrongAnswer", "failure": "nan", "max_abs_err": math.nan, "worst_unit": math.inf})
    assert found["correctness"] == {
        "max_abs_err": None,
        "rel_err": None,
        "passed": False,
        "worst_unit": None,
        "failure": "nan",
        "notes": [],
    }


def test_what_the_check_noticed_without_refusing_is_told() -> None:
    note = "NaN inputs do not reach the output"
    found = told({"kind": "Measured", "avg_us": 1500.0}, agreement={"notes": [note]})
    assert found["correctness"]["notes"] == [note]


def test_not_a_number_is_null_everywhere() -> None:
    finding = Finding("noise", "noise", "trust", math.nan, (("x", math.nan), ("y", None), ("z", "text [/b]")), "try")
    base = evidence(
        {"profile": {"sm_busy_pct": math.inf}, "agreement": {"max_abs_err": math.nan}, "pair_noise": math.nan}
    )
    found = feedback(
        Told(1, "a", BestSoFar(None, math.inf), (1.0, math.nan), (finding,), clock=Clock(1.0, rate=2.0)), base
    )
    text = msgspec.json.encode(found).decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert found.profile is not None
    assert found.profile.sm_busy_pct is None
    assert found.findings[0].evidence == {"x": None, "y": None, "z": "text [/b]"}
    assert found.clock == {"rate": 2.0}
    assert found.best_so_far.avg_us is None
