"""Reads a move as a person types it, ``apply_register_block(4, 8)``, against the actions there are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cake_tui.errors import UserError, did_you_mean
from cake_tui.ir.refusal import nearest_value
from cake_tui.menu.action import Action, Parameter, spelled
from cake_tui.model.move import Move
from cake_tui.model.schedule import KnobValue, is_legal
from cake_tui.toml import shown

_MOVE = re.compile(r"\s*(?P<name>[^\s(),+]+)\s*(?:\(\s*(?P<arguments>[^()]*?)\s*\))?\s*")
_LONGEST = 500


def parse_moves(text: str, actions: Sequence[Action], target: str) -> tuple[Move, ...]:
    """Parse one move or several joined by ``+``; raises UserError for the first mistake."""
    if len(text) > _LONGEST:
        raise UserError(f"a move of {len(text)} characters; at most {_LONGEST}")
    return tuple(parse(part, actions, target) for part in text.split("+"))


def parse(text: str, actions: Sequence[Action], target: str) -> Move:
    """Parse one move; raises UserError saying what was found, what is allowed and the nearest name or value."""
    found = _MOVE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise UserError(
            f"not a move: {shown(text[:60])}; a move is an action with its values: apply_register_block(4, 8)"
        )
    action = _usable(found["name"], actions, target)
    words = [word.strip() for word in found["arguments"].split(",")] if found["arguments"] else []
    return Move(action.name, tuple(zip([p.name for p in action.parameters], _values(action, words))))


def _usable(name: str, actions: Sequence[Action], target: str) -> Action:
    known = [action.name for action in actions if action.usable]
    action = next((action for action in actions if action.name == name), None)
    if action is None:
        near = did_you_mean(name, known)
        raise UserError(f"no action {shown(name[:80])}{near}; known on {target}: {', '.join(known) or 'none'}")
    if action.refused:
        raise UserError(f"{name} has no meaning here: {action.refused}")
    if not action.enabled:
        raise UserError(f"{name} is disabled; enable it first")
    return action


def _values(action: Action, words: Sequence[str]) -> list[KnobValue]:
    """Read positional and ``name=value`` arguments in the parameters' order."""
    given: dict[str, str] = {}
    names = [parameter.name for parameter in action.parameters]
    for place, word in enumerate(words):
        name, sign, value = word.partition("=")
        name = name.strip()
        if not sign:
            if place >= len(names):
                raise UserError(_takes(action, f"{len(words)} values were given"))
            if any("=" in before for before in words[:place]):
                raise UserError(_takes(action, "values without a name come first"))
            given[names[place]] = word
        elif name not in names:
            raise UserError(f"{_takes(action, f'it has no parameter {shown(name[:40])}')}{did_you_mean(name, names)}")
        elif name in given:
            raise UserError(_takes(action, f"{name} was given twice"))
        else:
            given[name] = value.strip()
    missing = [name for name in names if name not in given]
    if missing:
        raise UserError(_takes(action, f"{', '.join(missing)} is missing"))
    return [_value(action, parameter, given[parameter.name]) for parameter in action.parameters]


def _takes(action: Action, what: str) -> str:
    each = [f"{p.name} in {', '.join(map(spelled, p.values))}" for p in action.parameters]
    return f"{action.name}: {what}; it is {action.signature}" + (f" with {'; '.join(each)}" if each else "")


def _value(action: Action, parameter: Parameter, word: str) -> KnobValue:
    value = _typed(word)
    if is_legal(value, parameter.values):
        return value
    allowed = ", ".join(map(spelled, parameter.values))
    near = spelled(nearest_value(value, parameter.values))
    raise UserError(
        f"{action.name}: {parameter.name}: found {shown(word[:40])}, allowed: {allowed}; nearest: {near}"
        if word
        else f"{action.name}: {parameter.name}: the value is missing, allowed: {allowed}"
    )


def typed_values(text: str) -> tuple[KnobValue, ...]:
    """Read ``1,2,4``: a parameter's values as a person types them."""
    return tuple(_typed(word.strip()) for word in text.split(",") if word.strip())


def _typed(word: str) -> KnobValue:
    if re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        return int(word)
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    return word.strip("'\"")
