"""Hostile text becomes harmless and keeps its place, widths are cells, every event has words."""

from __future__ import annotations

import typing
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from cake_tui.model import event as ev
from cake_tui.model.facts import Agreement, Profile
from cake_tui.model.history import History
from cake_tui.model.measure import GateResult, Stale
from cake_tui.model.move import Proposal
from cake_tui.model.outcome import Measured, Outcome
from cake_tui.model.schedule import Schedule
from cake_tui.tui import format as fmt
from cake_tui.tui.words import toned
from tests.tui.sample import DEVICE, PROBLEM


@pytest.mark.parametrize(
    ("raw", "shown"),
    [("[/bold] [red]", "[/bold] [red]"), ("a\x1b[31mb", "a␛[31mb"), ("a\rb\nc", "a␍b␊c"), ("\x00\x7f", "␀␡"),
     ("\u202egnp.exe", "<202e>gnp.exe"), ("a\tb", "a    b"), ("\ud800x", "<d800>x"),
     ("zero\u200bwidth", "zero<200b>width"),
     ("\x9b31m", "<009b>31m")],
)  # fmt: skip
def test_text_is_shown_literally_and_controls_become_visible(raw: str, shown: str) -> None:
    assert fmt.visible(raw) == shown


@given(st.text(max_size=60))
def test_whatever_is_shown_is_printable_and_as_wide_as_a_terminal_thinks(text: str) -> None:
    shown = fmt.visible(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)
    # Each character alone: terminals do not agree on what joined emoji do, so none are let through.
    mine = sum(fmt.width_of(((char, ""),)) for char in shown)
    assert fmt.width_of(((shown, ""),)) == mine
    old = [char for char in shown if unicodedata.unidata_version and wcwidth(char) >= 0]
    assert len(old) == len(shown)


@given(st.text(max_size=40), st.integers(0, 30))
def test_cutting_and_filling_give_exactly_the_cells_asked_for(text: str, width: int) -> None:
    shown = fmt.visible(text)
    assert fmt.width_of(((fmt.pad(shown, width), ""),)) == width
    assert fmt.width_of(fmt.fit(((shown, ""), ("tail", "dim")), width)) == width


def test_ten_thousand_characters_are_cut() -> None:
    assert len(fmt.visible("x" * 10_000)) == 2001
    assert fmt.clip("x" * 10_000, 5) == "xxxx…"


@given(st.text(max_size=80), st.integers(4, 30))
def test_wrapping_loses_no_word_and_keeps_the_width(text: str, width: int) -> None:
    shown = fmt.visible(text)
    lines = fmt.wrap(shown, width)
    assert all(fmt.width_of(((line, ""),)) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == shown.replace(" ", "")


def test_ascii_keeps_the_width_of_our_symbols() -> None:
    text = "● accepted ─ ╭╯ × µs … ▁▂█ 日本"
    assert fmt.ascii_only(text).isascii()
    assert len(fmt.ascii_only(text)) == fmt.width_of(((text, ""),))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("-7.2 % ± 6.2 %", "-7.2 % +- 6.2 %"), ("#3 → unroll 4 → 8", "#3 -> unroll 4 -> 8"), ("a ≥ 2", "a >= 2"),
        ("first␊second␛[2J", r"first\nsecond^[[2J"), ("a long na…", "a long n.."), ("…", "."), ("▸ bullet", "> bullet"),
    ],
)  # fmt: skip
def test_ascii_says_the_same_and_nothing_else(text: str, plain: str) -> None:
    assert fmt.ascii_only(text) == plain
    assert fmt.ascii_only(plain) == plain


def test_every_kind_of_event_has_words_of_its_own() -> None:
    kinds = typing.get_args(ev.AnyEvent)
    assert len(kinds) > 20
    for kind in kinds:
        with_required = {name: _EXAMPLES[name] for name in _required(kind)}
        for event in (kind(**with_required), *_variants(kind, with_required)):
            _, text = toned(event, History())
            assert text != kind.__name__
            assert len(text) > 3


def _required(kind: type[msgspec.Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind) if field.required]


def _variants(kind: type[msgspec.Struct], given_values: dict[str, object]) -> list[ev.Event]:
    if kind is ev.CandidateEnded:
        outcomes = [found() for found in typing.get_args(Outcome)]
        return [kind(**{**given_values, "outcome": outcome}) for outcome in outcomes]
    return []


_EXAMPLES: dict[str, object] = {
    "name": "s", "problem": PROBLEM, "device": DEVICE, "backend": "cpu", "agent": "bandit", "settings": {},
    "versions": {}, "pid": 1, "host": "h", "state": "done", "reason": "r", "seconds": 1.0, "what": "pause",
    "level": "info", "text": "t", "compiler": "cc", "version": "12", "cases": (), "id": "i", "who": "w", "undoes": "u",
    "changes": (), "guard": "S4", "round": 1, "size": 4, "incumbent": 0, "base": 0, "candidate": 1,
    "proposal": Proposal(0, (), "", "start", ""), "schedule": Schedule("naive"), "predicted_us": 1.0,
    "source_sha256": "", "full_sha256": "", "smoke_sha256": "", "agreement": Agreement(1e-6, 1e-6, 1.0, 0.1),
    "against": 0, "avg_us": 1.0, "runs_us": (1.0,), "gain": 0.1, "profile": Profile(source="static"),
    "result": GateResult("accept", 0.1, 0.09, 1, 4, True, "", 1.0, 1.1), "outcome": Measured(), "step": "build",
    "accepted": 1, "summary": {}, "rounds": 22, "pair_noise": 0.01, "pairs": 16, "peer": "numpy", "ratio": 1.1,
    "stale": Stale("S4", "x", "y"), "candidates": (1,), "tool": "memcheck",
}  # fmt: skip


def test_every_outcome_has_a_glyph_a_word_and_no_two_words_are_equal() -> None:
    words = [word for _, _, word, _ in fmt.OUTCOMES.values()]
    assert len(set(words)) == len(words)
    assert all(plain.isascii() for _, plain, _, _ in fmt.OUTCOMES.values())
    assert fmt.outcome_mark("NewerOutcome")[1] == "NewerOutcome"
