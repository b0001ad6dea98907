"""The one table of keys that hold everywhere; panes add their own. Footer, help and bindings are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True)
class Key:
    """A key, the action it starts, its words; `where` is live, replay or both; `rank` its place in the footer."""

    id: str
    keys: str
    action: str
    word: str
    help: str
    where: str = "both"
    rank: int = 0

    @property
    def shown(self) -> str:
        """The first of its keys as people write it."""
        first = self.keys.split(",")[0]
        named = {"question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]", "colon": ":"}
        return named.get(first, first)


KEYS: tuple[Key, ...] = (
    Key("run.pause", "p", "pause", "pause", "pause or resume the run, between two of its steps", "live", 1),
    Key(
        "run.inject",
        "i",
        "inject",
        "inject",
        "inject a move: completed, checked, queued first in the next round",
        "live",
        2,
    ),
    Key("run.undo", "u", "undo", "", "take back your last injected move, while it waits", "live"),
    Key("run.mark", "m", "mark", "", "put a note into the journal", "live"),
    Key("run.export", "e", "export", "export", "export the best kernel to a file", "both", 4),
    Key("replay.back", "left_square_bracket", "step(-1)", "back", "one candidate back", "replay", 1),
    Key("replay.forward", "right_square_bracket", "step(1)", "forward", "one candidate forward", "replay", 2),
    Key("screen.next", "tab", "next_pane(1)", "pane", "next pane", "both", 5),
    Key("screen.previous", "shift+tab", "next_pane(-1)", "", "previous pane"),
    Key("screen.zoom", "z", "zoom", "zoom", "one pane over the whole screen, and back", "both", 6),
    Key("screen.freeze", "space", "freeze", "freeze", "freeze this screen only; the run goes on", "both", 8),
    Key("feedback.exact", "J", "exact", "JSON", "the exact feedback JSON of the chosen candidate", "both", 9),
    Key("screen.slow", "s", "slow", "", "slow link: repaint every ten seconds"),
    Key("screen.redraw", "ctrl+l", "redraw", "", "draw the whole screen again"),
    Key("screen.palette", "ctrl+p,colon", "app.command_palette", "", "every command by name"),
    Key("screen.help", "question_mark,f1", "help", "help", "keys and glyphs", "both", 7),
    Key("screen.detach", "q", "app.detach", "detach", "leave; the run goes on (ctrl+c and ctrl+q too)", "both", 3),
)


def bindings(replay: bool) -> list[Binding]:
    """The table as Textual's bindings."""
    where = "replay" if replay else "live"
    return [
        Binding(key.keys, key.action, key.word or key.help, id=key.id, show=False)
        for key in KEYS
        if key.where in (where, "both")
    ]


def footer(replay: bool) -> list[Key]:
    """Keys of the footer, in order."""
    where = "replay" if replay else "live"
    return sorted((key for key in KEYS if key.rank and key.where in (where, "both")), key=lambda key: key.rank)
