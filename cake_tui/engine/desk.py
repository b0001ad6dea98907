"""The desk: what each request does, or why it is refused; pure but for the settings file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cake_tui.config import FIXED, Settings
from cake_tui.errors import UserError, did_you_mean, printable
from cake_tui.menu import Menu, editing
from cake_tui.menu import find as menu_file
from cake_tui.model.event import Event, RequestRefused, RequestTaken, RequestUndone, SettingsChanged
from cake_tui.model.history import History
from cake_tui.model.move import Move
from cake_tui.steps.context import MenuSource
from cake_tui.store.inbox import KINDS, Refusal, Request

LONGEST_NOTE = 500
LONGEST_ACTION = 16_000
LONGEST_LABEL = 200


class Desk:
    """Answers requests with the events that carry them out."""

    def __init__(self, menu: MenuSource, write_settings: Callable[[Mapping[str, Any]], None]) -> None:
        self._menu = menu
        self._write_settings = write_settings

    def answer(self, request: Request | Refusal, history: History, *, stale: bool = False) -> tuple[Event, ...]:
        """Return the events to journal: none where the id has acted before.

        `stale` requests were sent to an earlier engine: what steers a running one is refused then.
        """
        if request.id in history.request_ids:
            return ()
        if isinstance(request, Refusal):
            return (RequestRefused(id=request.id, who="unknown", what="unknown", reason=request.reason),)
        if stale and request.what in ("pause", "resume", "stop"):
            return (_refused(request, "it was meant for an engine that has ended"),)
        try:
            return _ACTS[request.what](self, request, history)
        except UserError as error:
            return (_refused(request, str(error)),)

    # -- kinds -----------------------------------------------------------------------------------------

    def _pause(self, request: Request, history: History) -> tuple[Event, ...]:
        if history.state == "paused":
            raise UserError(f"it is paused already, by {history.paused_by}")
        return (_taken(request),)

    def _resume(self, request: Request, history: History) -> tuple[Event, ...]:
        if history.state != "paused":
            raise UserError(f"it is not paused but {history.state}")
        return (_taken(request),)

    def _stop(self, request: Request, history: History) -> tuple[Event, ...]:
        return (_taken(request),)

    def _inject(self, request: Request, history: History) -> tuple[Event, ...]:
        text = _text(request, "text")
        moves = self._current(history).parse_moves(text)
        reason = str(request.body.get("reason", ""))[:LONGEST_NOTE]
        return (_queued(request, moves, reason),)

    def _revert(self, request: Request, history: History) -> tuple[Event, ...]:
        return (_queued(request, self._current(history).parse_moves("revert_last()"), ""),)

    def _undo(self, request: Request, history: History) -> tuple[Event, ...]:
        queued = list(history.queue)
        wanted = request.body.get("request") or (queued[-1] if queued else None)
        if wanted is None:
            raise UserError("nothing is queued")
        if not isinstance(wanted, str) or wanted not in history.queue:
            known = history.request_ids.get(str(wanted))
            why = "it has been taken up already" if known == "taken" else f"it is {known or 'not known here'}"
            raise UserError(f"request {str(wanted)[:80]} is not queued: {why}")
        return (RequestUndone(id=request.id, who=request.who, undoes=wanted),)

    def _enable(self, request: Request, history: History) -> tuple[Event, ...]:
        names = self._actions(request, history)
        not_off = [name for name in names if name not in history.disabled_actions]
        if not_off:
            whole = self._current(history)
            off = [name for name in not_off if not getattr(whole.action(name), "enabled", True)]
            if off:
                raise UserError(
                    f"{', '.join(off)}: disabled in {whole.source}; enable it there, the run reads it again"
                )
            raise UserError(f"{', '.join(not_off)}: enabled already")
        return (_taken(request, actions=names),)

    def _disable(self, request: Request, history: History) -> tuple[Event, ...]:
        names = self._actions(request, history)
        off = [name for name in names if name in history.disabled_actions]
        if off:
            raise UserError(f"{', '.join(off)}: disabled already")
        return (_taken(request, actions=names),)

    def _set(self, request: Request, history: History) -> tuple[Event, ...]:
        values = request.body.get("values")
        if not isinstance(values, dict) or not values:
            raise UserError('its body has no "values"')
        settings, changes = changed_settings(history.settings, values)
        if not changes:
            return (_taken(request, text="nothing changed"),)
        # The file first: after a crash between the two, the resume finds the change in it.
        self._write_settings(settings)
        text = ", ".join(f"{name}: {old} → {new}" for name, old, new in changes)
        return (_taken(request, text=text), SettingsChanged(changes=changes, settings=settings))

    def _mark(self, request: Request, history: History) -> tuple[Event, ...]:
        return (_taken(request, note=_text(request, "note")),)

    def _profile(self, request: Request, history: History) -> tuple[Event, ...]:
        if history.device.target != "cuda":
            raise UserError("profiles are taken on a GPU; this session runs on the CPU")
        number = request.body.get("candidate", history.incumbent)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(history.rows):
            raise UserError(f"candidate {str(number)[:40]}: found no such one, there are 0 to {len(history.rows) - 1}")
        if history.rows[number].time_us is None:
            raise UserError(f"candidate {number} has no time: only what was measured is looked at")
        sanitize = request.body.get("sanitize") is True
        text = f"#{number} for races and bad accesses" if sanitize else f"#{number}"
        return (_taken(request, candidate=number, sanitize=sanitize, text=text),)

    def _change_actions(self, request: Request, history: History) -> tuple[Event, ...]:
        """Change actions.toml; the loop reads it again before the next round and journals what changed."""
        body, path = request.body, menu_file()
        if "add" in body:
            label = printable(str(body.get("file") or "the added text"))[:LONGEST_LABEL]
            editing.add_action(path, _text(request, "add", LONGEST_ACTION), label)
            return (_taken(request, text="an action was added"),)
        name, parameter = _text(request, "action"), _text(request, "parameter")
        values = body.get("values")
        if not isinstance(values, list) or not values or not all(isinstance(one, int | str) for one in values):
            raise UserError('its "values" are no list of numbers, truth values or texts')
        editing.set_values(path, name, history.device.target, parameter, values)
        return (_taken(request, text=f"{name}: {parameter}: {', '.join(map(str, values))}"),)

    def _actions(self, request: Request, history: History) -> list[str]:
        names = request.body.get("actions")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise UserError('its body has no "actions"')
        known = [action.name for action in self._current(history).actions]
        for name in names:
            if name not in known:
                raise UserError(f'no action "{name[:80]}"{did_you_mean(name, known)}')
        return names

    def _current(self, history: History) -> Menu:
        return self._menu.current(history)


def changed_settings(
    settings: Mapping[str, Any], values: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[tuple[str, str, str], ...]]:
    """Return the flat settings with `values` laid over, and what differs as (name, old, new); raises UserError."""
    old = Settings.from_flat(dict(settings))
    new = old.changed(**{str(name): value for name, value in values.items()})
    before, after = old.flat(), new.flat()
    changes = tuple((name, str(before[name]), str(after[name])) for name in after if before[name] != after[name])
    for name, was, wanted in changes:
        if name in FIXED:
            raise UserError(f'setting "{name}": found {wanted}, but the session began with {was}; start a new one')
    return after, changes


def _text(request: Request, field: str, longest: int = LONGEST_NOTE) -> str:
    found = request.body.get(field)
    if not isinstance(found, str) or not found.strip():
        raise UserError(f"{field}: found no text, allowed: 1 to {longest} characters")
    if len(found) > longest:
        raise UserError(f"{field}: found {len(found)} characters, allowed: at most {longest}")
    return found


def _queued(request: Request, moves: tuple[Move, ...], reason: str) -> RequestTaken:
    body = {"text": " + ".join(move.text for move in moves), "moves": msgspec.to_builtins(moves), "reason": reason}
    return RequestTaken(id=request.id, who=request.who, what="inject", body=body)


def _taken(request: Request, **body: Any) -> RequestTaken:
    return RequestTaken(id=request.id, who=request.who, what=request.what, body=body)


def _refused(request: Request, reason: str) -> RequestRefused:
    return RequestRefused(id=request.id, who=request.who, what=request.what, reason=reason)


_ACTS: dict[str, Callable[[Desk, Request, History], tuple[Event, ...]]] = {
    kind: getattr(Desk, "_change_actions" if kind == "actions" else f"_{kind}") for kind in KINDS
}
