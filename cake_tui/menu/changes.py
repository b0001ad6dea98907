"""Notices that actions.toml changed while a run goes on: a new menu and what is new, or why the old one stays."""

from __future__ import annotations

from pathlib import Path

from cake_tui.errors import UserError
from cake_tui.menu.action import Action, spelled
from cake_tui.menu.source import find, load
from cake_tui.menu.space import Menu
from cake_tui.model.device import Device
from cake_tui.model.event import MenuChanged
from cake_tui.model.history import History
from cake_tui.model.problem import Problem


class LiveMenu:
    """The menu of a running session; `poll` looks at the file, which costs one stat while nothing changes."""

    def __init__(self, path: Path | None, problem: Problem, device: Device) -> None:
        """Read the file for the first time; raises UserError, one line a mistake."""
        self._path = path
        self._problem = problem
        self._device = device
        self._seen = self._look()
        self.menu = load(self._seen[0], problem, device)

    def current(self, history: History) -> Menu:
        """Return the menu without the actions that people disabled in this session."""
        return self.menu.without(history.disabled_actions)

    def poll(self) -> MenuChanged | None:
        """Return what changed since the last look, None where nothing did.

        A file that cannot be read or has mistakes is refused once, until it changes again; the old menu stays.
        """
        seen = self._look()
        if seen == self._seen:
            return None
        self._seen = seen
        try:
            menu = load(seen[0], self._problem, self._device)
        except UserError as error:
            return MenuChanged(changes=(), refused=str(error))
        changes = diff(self.menu, menu)
        self.menu = menu
        return MenuChanged(changes=changes) if changes else None

    def _look(self) -> tuple[Path, int, int, int]:
        path = self._path or find()
        try:
            found = path.stat()
        except OSError:
            return (path, 0, 0, 0)
        return (path, found.st_mtime_ns, found.st_size, found.st_ino)


def diff(old: Menu, new: Menu) -> tuple[str, ...]:
    """Say what changed between two menus, one line a change, by name."""
    before = {action.name: action for action in old.actions}
    after = {action.name: action for action in new.actions}
    lines = [f"{name}: removed" for name in before if name not in after]
    for name, action in after.items():
        if name not in before:
            lines.append(f"{action.signature}: added{'' if action.enabled else ', disabled'}: {action.summary}")
        elif before[name] != action:
            lines += _differences(before[name], action)
    return tuple(lines)


def _differences(old: Action, new: Action) -> list[str]:
    lines = []
    if old.enabled != new.enabled:
        lines.append(f"{new.name}: {'enabled' if new.enabled else 'disabled'}")
    values = {p.name: p.values for p in old.parameters}
    for parameter in new.parameters:
        known = values.pop(parameter.name, ())
        if known != parameter.values:
            was = ", ".join(map(spelled, known)) or "nothing"
            lines.append(f"{new.name}: {parameter.name}: {was} -> {', '.join(map(spelled, parameter.values))}")
    lines += [f"{new.name}: {name}: removed" for name in values]
    for field in ("level", "edits", "hints", "refused", "summary"):
        if getattr(old, field) != getattr(new, field):
            lines.append(f"{new.name}: {field} changed")
    return lines
