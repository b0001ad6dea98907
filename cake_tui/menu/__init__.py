"""actions.toml: the action space of a session, bound to a problem and a device."""

from cake_tui.menu.action import REVERT, Action, EditCall, Parameter
from cake_tui.menu.changes import LiveMenu, diff
from cake_tui.menu.source import bound_actions, find, load, refuse_mistakes
from cake_tui.menu.space import Menu

__all__ = [
    "REVERT", "Action", "EditCall", "LiveMenu", "Menu", "Parameter", "bound_actions", "diff", "find", "load",
    "refuse_mistakes",
]  # fmt: skip
