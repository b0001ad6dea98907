"""A finding: one piece of feedback with evidence, confidence and the actions it suggests."""

from __future__ import annotations

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What a rule saw. Structural findings come first and apart from numeric ones."""

    rule: str  # the rule's file stem
    label: str
    kind: Literal["structural", "numeric", "trust"]
    confidence: float  # 0..1
    evidence: tuple[tuple[str, float | str | None], ...] = ()
    advice: str = ""
    actions: tuple[str, ...] = ()
