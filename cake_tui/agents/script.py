"""Proposes what a file says, round by round: for tests and demos in place of a model, and to repeat a session.

``--agent script:FILE``, a TOML file of ``[[step]]`` tables or a JSON list of the same objects:

| key | default | meaning |
| --- | --- | --- |
| moves | | ``"apply_tiling(64)"``, several joined by ``+``, or a list of texts |
| reason | ``step 3 of FILE`` | as the journal shows it |
| base | ``best`` | ``best``, ``last`` (the latest with a time), ``first``, or a candidate's number |
| delay | 0 | seconds that pass before it answers |
| raise | | an exception with this text instead of an answer: a bug of an agent |

Round r takes the steps ``(r-1)·per_round`` to ``r·per_round``; ``per_round`` (default 1) is a key of its own in
the file. A text that is no move of the menu is proposed all the same, so that it is refused and journaled.
"""

from __future__ import annotations

import json
import random
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.agents import Agent, AgentFactory
from cake_tui.errors import UserError
from cake_tui.menu import Menu
from cake_tui.model.history import History
from cake_tui.model.move import Move, Proposal
from cake_tui.model.schedule import KnobValue
from cake_tui.toml import read_text

NAME = "script"
LONGEST_DELAY_S = 86_400.0
LARGEST_BYTES = 64 << 20


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"raised": "raise"}):
    """One proposal of the file."""

    moves: str | list[str] = ""
    reason: str = ""
    base: str | int = "best"
    delay: float = 0.0
    raised: str = ""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    step: list[ScriptStep] = []
    per_round: int = 1


class ScriptAgent:
    """See the module's text; which step is next follows from the round's number alone."""

    def __init__(self, script: Script, label: str) -> None:
        self._script, self._label = script, label

    def propose(self, history: History, menu: Menu, n: int, rng: random.Random) -> Sequence[Proposal]:
        """Return the steps of this round; none once the file is used up. `rng` is not drawn from."""
        steps, size = self._script.step, self._script.per_round
        first = (max(1, history.round) - 1) * size
        proposals = []
        for index in range(first, min(first + size, len(steps))):
            step = steps[index]
            time.sleep(step.delay)
            if step.raised:
                raise RuntimeError(step.raised)
            reason = step.reason or f"step {index + 1} of {self._label}"
            proposals.append(Proposal(_base(step.base, history), _moves(step.moves, menu), reason, "script", NAME))
        return proposals


def _base(base: str | int, history: History) -> int:
    if isinstance(base, int):
        return base
    if base == "first":
        return 0
    if base == "last":
        return max((row.number for row in history.rows[-64:] if row.standing is not None), default=0)
    best = history.incumbent if history.base_override is None else history.base_override
    return best or 0


def _moves(texts: str | list[str], menu: Menu) -> tuple[Move, ...]:
    moves: list[Move] = []
    for text in [texts] if isinstance(texts, str) else texts:
        for part in text.split("+"):
            try:
                moves.append(menu.parse(part.strip()))
            except UserError:
                moves.append(_unknown(part.strip()))
    return tuple(moves)


def _unknown(text: str) -> Move:
    """Take apart a text that the menu does not know, so that the journal shows it as it was written."""
    name, _, inside = text.partition("(")
    words = [word.strip() for word in inside.rstrip(") ").split(",")] if inside.strip(") ") else []
    return Move(name.strip(), tuple((str(place), _value(word)) for place, word in enumerate(words)))


def _value(word: str) -> KnobValue:
    return int(word) if word.lstrip("-").isdecimal() and len(word) < 19 else word


def read(path: Path) -> Script:
    """Read a script; raises UserError with the file and what is wrong in it."""
    try:
        text = read_text(path, LARGEST_BYTES)
    except UserError as error:
        raise UserError(f"script {error}") from None
    try:
        value: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        script = msgspec.convert({"step": value} if isinstance(value, list) else value, Script)
    except (ValueError, RecursionError) as error:
        raise UserError(f"script {path}: {' '.join(str(error).split())}") from None
    for number, step in enumerate(script.step, 1):
        _check(step, f"script {path}: step {number}")
    if script.per_round < 1:
        raise UserError(f"script {path}: per_round: found {script.per_round}, allowed: 1 or more")
    return script


def _check(step: ScriptStep, where: str) -> None:
    if isinstance(step.base, str) and step.base not in ("best", "last", "first"):
        raise UserError(f'{where}: base: found "{step.base}", allowed: best, last, first, or a candidate\'s number')
    if not 0.0 <= step.delay <= LONGEST_DELAY_S:
        raise UserError(f"{where}: delay: found {step.delay:g}, allowed: 0 to {LONGEST_DELAY_S:g} seconds")
    if not step.moves and not step.raised:
        raise UserError(f'{where}: found neither moves nor raise; write moves = "apply_tiling(64)"')


def make(options: dict[str, Any]) -> Agent:
    """Make a script agent of ``{"argument": FILE}``; raises UserError where the file is missing or wrong."""
    argument = str(options.get("argument") or "")
    if not argument:
        raise UserError("--agent script: no file given; write --agent script:FILE (TOML or JSON)")
    path = Path(argument)
    return ScriptAgent(read(path), path.name)


PLUGIN: AgentFactory = make
