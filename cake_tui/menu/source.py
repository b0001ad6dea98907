"""Finds actions.toml and reads it into actions; every mistake in the file is reported in one go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cake_tui import ir, registry
from cake_tui.errors import did_you_mean, printable
from cake_tui.menu.action import REVERT, Action, EditCall, Parameter
from cake_tui.menu.space import Menu
from cake_tui.model.device import TARGETS, Device, Target
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import KnobValue
from cake_tui.toml import Document, Mistakes, Table, read_document

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_MOST_MOVES = 4096
_MOST_ACTIONS = 200
_ELSEWHERE = {"values": 'a parameter: parameters.c.NAME = { values = [...], about = "..." }', "about": "a parameter"}
_OTHERS = "other_structures"
_OF_ACTIONS = ("name", "level", "summary", "edits", "parameters", "targets", "hints", "enabled")


def find() -> Path:
    """Return the actions.toml of the working folder, else the packaged one (wheel or source tree)."""
    here = Path("actions.toml")
    if here.exists() or here.is_symlink():
        return here
    return registry.packaged("actions.toml")


def refuse_mistakes() -> None:
    """Read the file that a session would read, for every target; raises UserError, one line a mistake."""
    document = read_document(find())
    for target in TARGETS:
        read_actions(document, target)


def load(path: Path | None, problem: Problem, device: Device) -> Menu:
    """Read the action space for a problem and a device; raises UserError, one line a mistake."""
    document = read_document(path or find())
    return menu_of(document, problem, device)


def menu_of(document: Document, problem: Problem, device: Device) -> Menu:
    """Bind a parsed actions.toml to a problem and a device; raises UserError, one line a mistake."""
    return Menu(bound_actions(document, problem, device.target), problem, device, document.label)


def bound_actions(document: Document, problem: Problem, target: Target) -> tuple[Action, ...]:
    """Return the actions there are for a problem; a user's own kernel file has those of its knobs alone."""
    actions = read_actions(document, target)
    if problem.template is not None:
        return (*_knob_actions(problem), *(_without_meaning(action) for action in actions))
    if document.value.get(_OTHERS) is not True:
        return actions
    return (*actions, *_structure_actions(problem, target, actions))


def read_actions(document: Document, target: str) -> tuple[Action, ...]:
    """Read all actions as they are on `target`; raises UserError, one line a mistake."""
    mistakes = Mistakes(document)
    top = Table(mistakes, (), document.value)
    tables = top.tables("action", required=True, form="an array of tables: write [[action]]")
    if len(tables) > _MOST_ACTIONS:
        top.mistake(("action",), f"{len(tables)} actions; at most {_MOST_ACTIONS}")
    top.flag(_OTHERS, False)
    top.close(dict.fromkeys(_OF_ACTIONS, "[[action]]") | _ELSEWHERE)
    first_lines: dict[str, int] = {}
    actions = [_read_action(table, first_lines, target) for table in tables[:_MOST_ACTIONS]]
    mistakes.raise_if_any()
    return tuple(action for action in actions if action is not None)


def _read_action(plain: Table, first_lines: dict[str, int], target: str) -> Action | None:
    """Read one [[action]]; None where its name is no name."""
    name = plain.value.get("name")
    about = (
        f'action "{name}"' if isinstance(name, str) and _NAME.fullmatch(name) else f"action {int(plain.path[-1]) + 1}"
    )
    table = plain.inner((), plain.value, about)
    name = table.text("name", required=True)
    if name is not None and not _NAME.fullmatch(name):
        table.wrong("name", name, "lower-case letters, digits and _, beginning with a letter, at most 60")
        name = None
    line = table.mistakes.document.line(table.path)
    if name is not None and first_lines.setdefault(name, line) != line:
        (here, _), (there, first) = map(table.mistakes.document.origin, (line, first_lines[name]))
        of = f" of {there}" if there != here else ""
        table.mistake(("name",), f"a second action of this name; the first is in line {first}{of}")
    level = table.choice("level", ("macro", "micro"), required=True) or "micro"
    summary = printable(table.text("summary", required=True) or "")
    edits = tuple(_read_edit(edit) for edit in table.tables("edits", required=True, form="an array of { do = ... }"))
    if table.value.get("edits") == []:
        table.wrong("edits", [], "at least one edit: { do = ... }")
    by_target = _read_parameters(table, edits)
    targets = table.texts("targets", allowed=TARGETS) or (tuple(by_target) or TARGETS)
    hints = table.texts("hints", allowed=registry.names("rules"))
    enabled = table.flag("enabled", True)
    table.close(_ELSEWHERE)
    if name is None:
        return None
    refused = "" if target in targets else f"it is made for {', '.join(targets)}, not for {target}"
    parameters = by_target.get(target, ())
    return Action(name, "macro" if level == "macro" else "micro", summary, edits, parameters, hints, enabled, refused)


# --- edits --------------------------------------------------------------------------------------------


def _read_edit(table: Table) -> EditCall:
    do = table.choice("do", (*ir.edit_names(), REVERT), required=True)
    arguments: list[tuple[str, KnobValue]] = []
    for key in table.value:
        if key == "do":
            continue
        value = table.raw(key)
        if isinstance(value, int | bool | str):
            arguments.append((key, value))
        else:
            table.wrong(key, value, "a whole number, true, false, a text, or $PARAMETER")
    if do is not None:
        _check_arguments(table, do, [key for key, _ in arguments])
    return EditCall(do or "", tuple(arguments))


def _check_arguments(table: Table, do: str, given: Sequence[str]) -> None:
    """Hold an edit's arguments against its own list."""
    edit = ir.edits.load(do) if do != REVERT else ir.edits.Edit(lambda schedule, arguments, ground: schedule)
    takes = f"{do} takes {', '.join(edit.parameters) or 'nothing'}"
    for key in given:
        if key not in edit.parameters and not edit.open:
            table.mistake((key,), f"no argument of this edit; {takes}{did_you_mean(key, edit.parameters)}")
    for key in edit.parameters:
        if key not in given:
            table.mistake((), f'the argument "{key}" is missing; {takes}')


# --- parameters ---------------------------------------------------------------------------------------


def _read_parameters(action: Table, edits: tuple[EditCall, ...]) -> dict[str, tuple[Parameter, ...]]:
    """Read the parameters of every target and hold them against what the edits use."""
    used = {
        value[1:]: (edit, key)
        for edit in edits
        for key, value in edit.arguments
        if isinstance(value, str) and value.startswith("$")
    }
    table = action.table("parameters")
    found: dict[str, tuple[Parameter, ...]] = {}
    for target in TARGETS:
        inner = table.table(target) if table is not None else None
        if inner is not None:
            found[target] = _of_target(inner, used)
    if table is not None:
        table.close(dict.fromkeys(_OF_ACTIONS, "[[action]]") | _ELSEWHERE)
    if used and not found and table is None:
        names = ", ".join(f"${name}" for name in used)
        action.mistake(
            ("edits",), f"uses {names}, but there are no parameters; write parameters.{TARGETS[0]} = {{ ... }}"
        )
    return found


def _of_target(table: Table, used: Mapping[str, object]) -> tuple[Parameter, ...]:
    parameters = []
    for name, value in table.value.items():
        table.has(name)
        if name not in used:
            edits = ", ".join(f"${key}" for key in used) or "no parameter"
            table.mistake(
                (name,), f"no edit uses ${name}; the edits use {edits}{did_you_mean(name, (*used, 'values'))}"
            )
        parameter = _read_parameter(table, name, value)
        if parameter is not None:
            parameters.append(parameter)
    for name in used:
        if name not in table.value:
            table.mistake((), f"the edits use ${name}, which has no values here{did_you_mean(name, table.value)}")
    combinations = 1
    for parameter in parameters:
        combinations *= len(parameter.values)
    if combinations > _MOST_MOVES:
        table.mistake((), f"{combinations} combinations of values; at most {_MOST_MOVES}")
    return tuple(parameters)


def _read_parameter(table: Table, name: str, value: Any) -> Parameter | None:
    """Read ``m = [2, 4]`` or ``m = { values = [2, 4], about = "rows" }``."""
    if isinstance(value, dict):
        inner = table.inner((name,), value)
        values = inner.values("values", required=True)
        about = printable(inner.text("about") or "")
        inner.close(dict.fromkeys(_OF_ACTIONS, "[[action]]"))
        return Parameter(name, values, about) if values else None
    values = table.values(name)
    return Parameter(name, values) if values else None


# --- structures that the file does not name -----------------------------------------------------------


def _structure_actions(problem: Problem, target: Target, actions: Sequence[Action]) -> tuple[Action, ...]:
    """One macro action ``use_<structure>`` for each structure that no action of the file leads to.

    So a new structure is a file and no other edit. An action leads to a structure by naming it, or by an edit that
    bears its name; a disabled action counts, since somebody took it out on purpose.
    """
    named: set[KnobValue] = set()
    for action in actions:
        values = {f"${parameter.name}": parameter.values for parameter in action.parameters}
        for edit in action.edits:
            named.add(edit.do)
            for value in (value for name, value in edit.arguments if name == "structure"):
                named.update(values.get(str(value), (value,)))
    taken = {action.name for action in actions}
    return tuple(
        Action(
            f"use_{name}", "macro", registry.docstring(f"ir/build/{problem.family}", name),
            (EditCall("change_structure", (("structure", name),)),),
        )
        for name in ir.structures(problem, target)
        if name not in named and f"use_{name}" not in taken
    )  # fmt: skip


# --- a user's own kernel file -------------------------------------------------------------------------


def _knob_actions(problem: Problem) -> tuple[Action, ...]:
    """One micro action a knob of the template: what a kernel.toml with knobs offers without any actions.toml."""
    knobs = problem.template.knobs if problem.template is not None else ()
    return tuple(
        Action(
            f"set_{knob.name}", "micro", f"Set {knob.name} of the kernel file",
            (EditCall("set_knob", (("knob", knob.name), ("value", "$value"))),),
            (Parameter("value", knob.values),),
        )
        for knob in knobs
    )  # fmt: skip


def _without_meaning(action: Action) -> Action:
    if action.reverts or action.refused:
        return action
    return msgspec.structs.replace(action, refused="the kernel is a file of its own: only its knobs can change")
