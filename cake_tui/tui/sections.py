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
            seen = ", ".join(f"{fmt.visible(k, 40)} {scalar(v)}" for k, v in evidence.items())
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


def entries(values: Mapping[str, Any], indent: str, depth: int = 0) -> list[Line]:
    """Names and values aligned; tables inside are indented, three deep."""
    size = min(NAME, max((len(str(key)) for key in values), default=0))
    lines: list[Line] = []
    for key, value in values.items():
        name = fmt.visible(key, 60)
        if isinstance(value, dict) and value and depth < 3:
            lines.append(((f"{indent}{name}", "dim"),))
            lines += entries(value, indent + "  ", depth + 1)
        elif isinstance(value, list) and value and depth < 3 and isinstance(value[0], (dict, list)):
            lines.append(((f"{indent}{name}", "dim"),))
            lines += items(value, indent + "  ")
        else:
            tone = "bad" if value is False else "dim" if value is None else ""
            lines.append(((f"{indent}{fmt.pad(name, size)}  ", "dim"), (scalar(value), tone)))
    return lines


def items(values: Sequence[Any], indent: str) -> list[Line]:
    """A line for each of the first hundred values."""
    lines: list[Line] = []
    for value in values[:100]:
        text = (
            ", ".join(f"{fmt.visible(k, 40)} {scalar(v)}" for k, v in value.items())
            if isinstance(value, dict)
            else scalar(value)
        )
        lines.append(((f"{indent}· {text}", ""),))
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
