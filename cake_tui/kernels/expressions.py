"""Expressions in kernel.toml: parsed by the IR's parser, evaluated at a shape, each mistake noted at its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_tui.errors import did_you_mean
from cake_tui.ir.expr import EvaluationError, Expr, ParseError, Value, evaluate, names_in, parse, refs_in
from cake_tui.toml import Key, Table, shown


def read_expression(
    table: Table, tail: Key, text: str, names: Iterable[str], buffers: Mapping[str, int] | None = None
) -> Expr | None:
    """Parse `text` over `names` (and references into `buffers`, name -> rank); None after noting the mistake."""
    ranks = buffers or {}
    known = tuple(names)
    try:
        found = parse(text, ranks)
    except ParseError as error:
        table.mistake(tail, f"{shown(text)}: column {error.column}: found {error.found}, expected {error.expected}")
        return None
    for name in sorted(names_in(found)):
        if name not in known:
            near = did_you_mean(name, (*known, *ranks))
            allowed = ", ".join((*known, *ranks)) or "numbers only"
            table.mistake(tail, f"{shown(text)}: unknown name {name}; allowed: {allowed}{near}")
            return None
    for ref in refs_in(found):
        if ref.buffer not in ranks:
            near = did_you_mean(ref.buffer, ranks)
            table.mistake(
                tail, f"{shown(text)}: unknown buffer {ref.buffer}; allowed: {', '.join(ranks) or 'none'}{near}"
            )
            return None
        if ref.indices and len(ref.indices) != ranks[ref.buffer]:
            table.mistake(tail, f"{shown(text)}: {ref.buffer} has {ranks[ref.buffer]} axes, not {len(ref.indices)}")
            return None
    return found


def value_at(table: Table, tail: Key, text: str, names: Mapping[str, Value]) -> Value | None:
    """Evaluate `text`; None after noting the mistake, with the values that it had."""
    expression = read_expression(table, tail, text, names)
    if expression is None:
        return None
    try:
        return evaluate(expression, names)
    except (EvaluationError, OverflowError) as error:
        used = ", ".join(f"{name} = {names[name]}" for name in sorted(names_in(expression)))
        table.mistake(tail, f"{shown(text)}: {error}" + (f" with {used}" if used else ""))
        return None
