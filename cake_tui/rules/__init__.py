"""Rules turn what was measured into findings. One file a rule; its docstring says Signal, Why it matters, Try."""

from __future__ import annotations

import ast
import contextlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import msgspec

from cake_tui import registry
from cake_tui.model.device import Device
from cake_tui.model.facts import Agreement, Profile, StaticFacts
from cake_tui.model.finding import Finding
from cake_tui.model.measure import GateResult
from cake_tui.model.outcome import Outcome
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import Schedule


class Evidence(msgspec.Struct, frozen=True):
    """All that a rule may look at; None is unknown. `terms` are the cost model's named terms (us, bytes...)."""

    problem: Problem
    device: Device
    schedule: Schedule | None
    outcome: Outcome
    time_us: float | None = None
    facts: StaticFacts | None = None
    agreement: Agreement | None = None
    profile: Profile | None = None
    gate: GateResult | None = None
    pair_noise: float | None = None
    terms: dict[str, float] = {}
    # rule -> how often its advice was followed on this kernel without a win
    failed_advice: dict[str, int] = {}


class Rule(Protocol):
    """What `PLUGIN` is."""

    def __call__(self, evidence: Evidence) -> Finding | None:
        """Return a finding, or None where the signal is not there."""


STATIC_CAP = 0.5  # of a finding that rests on the source, the assembly or the schedule alone
ALONE, CONTRADICTED = 0.6, 0.3  # what a signal is worth without a second one, and against one


def confidence(share: float, agrees: bool | None, *, measured: bool) -> float:
    """Return a finding's confidence, 0..1: the signal's strength times what a second signal says of it.

    `share` is how much of the whole the signal is; `agrees` whether another figure says the same, None where
    there is none; `measured` False where nothing that ran supports it, which caps the result at 0.5.
    """
    weight = ALONE if agrees is None else 1.0 if agrees else CONTRADICTED
    found = min(max(share, 0.0), 1.0) * weight
    return round(found if measured else min(found, STATIC_CAP), 3)


class Text(msgspec.Struct, frozen=True):
    """A rule's words for people and agents: what it sees, why that matters, what to try."""

    signal: str
    why: str
    advice: str


_SECTION = re.compile(r"^[#*\s]*(Signal|Why it matters|Try)\b[*:.\s]*", re.IGNORECASE | re.MULTILINE)
_LONGEST = 1000  # characters of a section


def text(name: str, folder: Path | None = None) -> Text:
    """Return a rule's words: from ``<folder>/<name>.md`` where the user has one, else from its docstring.

    Sections begin with Signal, Why it matters and Try, as headings or in asterisks; what the user's file
    leaves out, and a file that cannot be read, falls back to the docstring. Imports nothing.
    """
    found = dict(_own_words(name))
    if folder is not None:
        with contextlib.suppress(OSError):  # no file of the user's is the usual case
            found.update(_sections((folder / f"{name}.md").read_text(encoding="utf-8", errors="replace")))
    return Text(found.get("signal", ""), found.get("why it matters", ""), found.get("try", ""))


@lru_cache(maxsize=256)
def _own_words(name: str) -> dict[str, str]:
    """Sections of the rule's docstring."""
    path = Path(registry.PACKAGE) / "rules" / f"{name}.py"
    return _sections(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")


def _sections(words: str) -> dict[str, str]:
    """Split at the section names; each section becomes one line."""
    marks = list(_SECTION.finditer(words))
    ends = [mark.start() for mark in marks[1:]] + [len(words)]
    out = {}
    for mark, end in zip(marks, ends):
        content = " ".join(words[mark.end() : end].split())
        if content:
            out[mark[1].lower()] = content[:_LONGEST]
    return out
