"""Structured values as lines: findings, entries aligned by name, nested ones indented; outside text is literal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cake_tui import figures
from cake_tui.model.finding import Finding
from cake_tui.tui import format as fmt
from cake_tui.tui.format import Line

NAME = 28  # cells of a name at most
LONG = 48  # characters of a list from which on it takes a line an item


def findings(found: Sequence[Any], width: int) -> list[Line]:
    """Each finding's label with its confidence, then evidence, advice and the actions it suggests."""
    lines: list[Line] = []
    for finding in found:
        if not isinstance(finding, Mapping):
            continue
        share = finding.get("confidence")
        sure = figures.percent(float(share), 0) if isinstance(share, (int, float)) else figures.UNKNOWN
        lines.append((
            (" ▸ ", "warn"),
            (fmt.visible(finding.get("label"), 80), "warnword"),
            (f"  {sure} sure · {fmt.visible(finding.get('kind'), 20)}", "dim"),
        ))  # fmt: skip
        evidence = finding.get("evidence")
        if isinstance(evidence, Mapping) and evidence:
            seen = ", ".join(f"{fmt.visible(k, 40)} {scalar(v)}" for k, v in evidence.items() if v is not None)
            lines += [((f"   {text}", "dim"),) for text in fmt.wrap(seen, max(8, width - 4))[:3]]
        advice = fmt.visible(finding.get("advice") or "", 400)
        lines += [((f"   {text}", ""),) for text in fmt.wrap(advice, max(8, width - 4))[:4] if text.strip()]
        actions = finding.get("actions")
        if isinstance(actions, Sequence) and not isinstance(actions, str) and actions:
            tries = f"→ {', '.join(fmt.visible(a, 40) for a in actions)}"
            lines += [((f"   {text}", "accent"),) for text in fmt.wrap(tries, max(8, width - 4), 2)[:4]]
    return lines


def as_told(finding: Finding) -> dict[str, Any]:
    """A finding of the journal as the feedback file tells it."""
    return {**msgspec.to_builtins(finding), "evidence": dict(finding.evidence)}


def known(value: msgspec.Struct) -> dict[str, Any]:
    """The fields of a fact that say something: unknown and empty ones are left out."""
    return {name: one for name, one in msgspec.to_builtins(value).items() if one not in (None, "", (), [], {})}


def entries(values: Mapping[str, Any], indent: str, width: int, depth: int = 0) -> list[Line]:
    """Names and values aligned and wrapped; tables inside are indented, three deep, long lists take a line an item.

    What is null is left out: the exact JSON has it.
    """
    values = {key: value for key, value in values.items() if value is not None}
    size = min(NAME, max((len(str(key)) for key in values), default=0))
    lines: list[Line] = []
    for key, value in values.items():
        name = fmt.visible(key, 60)
        nested = isinstance(value, dict | list | tuple) and value and depth < 3
        if nested and isinstance(value, dict):
            lines.append(((f"{indent}{name}", "dim"),))
            lines += entries(value, indent + "  ", width, depth + 1)
        elif nested and (any(isinstance(one, dict | list | tuple) for one in value) or len(scalar(value)) > LONG):
            lines.append(((f"{indent}{name}", "dim"),))
            lines += items(value, indent + "  ", width)
        else:
            tone = "bad" if value is False else ""
            head = f"{indent}{fmt.pad(name, size)}  "
            pieces = fmt.wrap(scalar(value), max(12, width - len(head)))
            lines.append(((head, "dim"), (pieces[0], tone)))
            lines += [((" " * len(head) + piece, tone),) for piece in pieces[1:]]
    return lines


def items(values: Sequence[Any], indent: str, width: int) -> list[Line]:
    """Each of the first hundred values, wrapped."""
    lines: list[Line] = []
    for value in values[:100]:
        text = (
            ", ".join(f"{fmt.visible(k, 40)} {scalar(v)}" for k, v in value.items())
            if isinstance(value, dict)
            else scalar(value)
        )
        pieces = fmt.wrap(text, max(12, width - len(indent) - 2))
        lines += [((f"{indent}{'  ' if at else '· '}{piece}", ""),) for at, piece in enumerate(pieces)]
    return lines


def scalar(value: Any) -> str:
    """A value on one line, as JSON writes it, long fractions with five digits."""
    match value:
        case None:
            return "null"
        case True | False:
            return str(value).lower()
        case float():
            if not math.isfinite(value):
                return str(value)
            text = f"{value:.5g}"
            return f"{value:,.0f}" if "e+" in text and abs(value) < 1e15 else text
        case list() | tuple():
            inner = ", ".join(scalar(item) for item in value[:16])
            return f"[{inner}{', …' if len(value) > 16 else ''}]"
        case dict():
            return "{" + ", ".join(f"{fmt.visible(k, 40)}: {scalar(v)}" for k, v in list(value.items())[:16]) + "}"
    return fmt.visible(value, 1000)
