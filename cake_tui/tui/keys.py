"""The one table of keys that hold everywhere; panes add their own. Footer, help and bindings are made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.binding import Binding, BindingsMap

from cake_tui.tui.keymap import Keymap, shown
from cake_tui.tui.pane import Pane

MAIN_KEYS, PANE_KEYS = 5, 3  # of the footer: those that are always there first, then so many of the focused pane


@dataclass(frozen=True)
class Key:
    """A binding by its id: keys, the action it starts, its words; `where` is live, replay or both.

    `rank` is its place in the footer; those that do not fit there are in the help and the palette.
    """

    id: str
    keys: str
    action: str
    word: str
    help: str
    where: str = "both"
    rank: int = 0


KEYS: tuple[Key, ...] = (
    Key("run.pause", "p", "pause", "pause", "pause or resume the run, between two of its steps", "live", 1),
    Key("run.inject", "i", "inject", "inject", "inject a move: completed, checked, queued first", "live", 2),
    Key("run.undo", "u", "undo", "undo", "take back your last injected move, while it waits", "live", 16),
    Key("run.actions", "a", "switch", "actions", "enable or disable actions of the menu", "live", 9),
    Key("run.mark", "m", "mark", "mark", "put a note into the journal", "live", 15),
    Key("run.export", "e", "export", "export", "export the best kernel to a file", "both", 5),
    Key("run.stop", "Q", "stop", "stop", "stop the run in order, after typing its name", "live", 20),
    Key("replay.back", "left_square_bracket", "step(-1)", "back", "one candidate back", "replay", 1),
    Key("replay.forward", "right_square_bracket", "step(1)", "forward", "one candidate forward", "replay", 2),
    Key("replay.play", "space", "play", "play", "play the record, or stand still", "replay", 4),
    Key("replay.goto", "at", "goto", "go to", "go to a candidate, an event or a time", "replay", 5),
    Key("replay.earlier", "left_curly_bracket", "person(-1)", "", "the thing before that a person did", "replay"),
    Key("replay.later", "right_curly_bracket", "person(1)", "person", "the next thing that a person did", "replay", 9),
    Key("replay.slower", "comma", "speed(-1)", "", "play slower", "replay"),
    Key("replay.faster", "full_stop", "speed(1)", "faster", "play faster", "replay", 12),
    Key("candidate.details", "enter", "details", "details", "all on record about the chosen candidate", "both", 8),
    Key("candidate.compare", "c", "compare", "compare", "compare two: hold one, press it on another", "both", 11),
    Key("candidate.exact", "J", "exact", "JSON", "the exact feedback JSON of the chosen candidate", "both", 13),
    Key("candidate.profile", "P", "profile", "profile", "profile the chosen candidate now", "both", 18),
    Key("screen.next", "tab", "next_pane(1)", "pane", "next pane", "both", 6),
    Key("screen.previous", "shift+tab", "next_pane(-1)", "", "previous pane"),
    Key("screen.zoom", "z", "zoom", "zoom", "one pane over the whole screen, and back", "both", 7),
    Key("screen.find", "slash", "find", "find", "filter or search the pane: n and N go on, esc ends it", "both", 10),
    Key("screen.copy", "y", "copy", "copy", "copy what the pane shows; names the file that holds it", "both", 14),
    Key("screen.freeze", "space", "freeze", "freeze", "freeze this screen only; the run goes on", "live", 12),
    Key("screen.hide", "H", "hide", "hide", "hide the pane; its number brings it back", "both", 21),
    Key("screen.earlier", "less_than_sign", "shift_pane(-1)", "", "move the pane one place forward"),
    Key("screen.later", "greater_than_sign", "shift_pane(1)", "", "move the pane one place back"),
    Key("screen.slow", "s", "slow", "slow link", "slow link: repaint every ten seconds", "both", 19),
    Key("screen.read_only", "w", "read_only", "read-only", "send nothing from here, and back", "live", 17),
    Key("screen.redraw", "ctrl+l", "redraw", "", "draw the whole screen again"),
    Key("screen.palette", "ctrl+p,colon", "commands", "", "every command by name"),
    Key("screen.help", "question_mark,f1", "help", "help", "keys and glyphs", "both", 4),
    Key("screen.detach", "q", "app.detach", "detach", "leave; the run goes on (ctrl+c and ctrl+q too)", "both", 3),
)  # fmt: skip

OPPOSITE = {"replay.play": "pause", "run.pause": "resume"}
STEERING = frozenset({"run.pause", "run.inject", "run.undo", "run.actions", "run.mark", "run.stop"})


def here(replay: bool) -> list[Key]:
    """The keys that hold in a live view or in a replay."""
    return [key for key in KEYS if key.where in ("both", "replay" if replay else "live")]


def bindings(replay: bool, panes: Sequence[Pane]) -> BindingsMap:
    """The table and the panes' numbers as Textual's bindings, with their ids, so that the app's keymap moves them.

    Keys of the other kind of view, where nothing else has them, say what they are for.
    """
    held = here(replay)
    found = [Binding(key.keys, key.action, key.word or key.help, id=key.id, show=False) for key in held]
    taken = {name for key in held for name in key.keys.split(",")}
    found += [
        Binding(key.keys, f"elsewhere('{key.id}')", key.help, id=key.id, show=False)
        for key in KEYS
        if key not in held and not taken & set(key.keys.split(","))
    ]
    found += [Binding(str(p.number), f"pane('{p.pane_name}')", p.title, id=f"go.{p.pane_name}") for p in panes]
    return BindingsMap(found)


def own_keys(pane: type[Pane]) -> dict[str, Binding]:
    """A pane's own bindings by id."""
    found = [binding for binding in pane.__dict__.get("BINDINGS", ()) if isinstance(binding, Binding)]
    return {binding.id: binding for binding in found if binding.id}


def defaults(panes: Sequence[Pane]) -> dict[str, dict[str, str]]:
    """The keys of all bindings by group and id, as `read_keymap` asks for them."""
    everywhere = {key.id: key.keys for key in KEYS} | {f"go.{pane.pane_name}": str(pane.number) for pane in panes}
    groups = {pane.pane_name: own_keys(type(pane)) for pane in panes} | {"pane": own_keys(Pane)}
    return {"": everywhere} | {name: {known: b.key for known, b in own.items()} for name, own in groups.items()}


class Command(NamedTuple):
    """A key's action by name, for the list of commands; `pane` is whose it is, None for the screen's."""

    name: str
    help: str
    keys: str
    action: str
    pane: Pane | None = None


def commands(replay: bool, panes: Sequence[Pane], keymap: Keymap) -> list[Command]:
    """Every key of the table by its name, then what each pane can do."""
    found = [
        Command(key.word or key.id.rpartition(".")[2], key.help, shown(keymap.keys(key.id, key.keys)), key.action)
        for key in here(replay)
        if key.id != "screen.palette"
    ]
    for pane in sorted(panes, key=lambda pane: pane.number):
        go = shown(keymap.keys(f"go.{pane.pane_name}", str(pane.number)))
        found.append(Command(f"go to {pane.title}", pane.help, go, f"pane('{pane.pane_name}')"))
        for name, binding in own_keys(type(pane)).items():
            keys = shown(keymap.keys(name, binding.key))
            found.append(
                Command(f"{pane.pane_name}: {name.rpartition('.')[2]}", binding.description, keys, binding.action, pane)
            )
    return found


def footer(
    replay: bool,
    keymap: Keymap,
    pane: Pane | None = None,
    *,
    turned: str = "",
    steered: bool = True,
) -> list[tuple[str, str]]:
    """(key, word) of the footer, in order: the main keys, those of the focused pane, then the others.

    `turned` is the binding that now does the opposite of its word; without `steered`, keys that steer are left out.
    """
    kept = [key for key in here(replay) if key.rank and (steered or key.id not in STEERING)]
    ranked = sorted(kept, key=lambda key: key.rank)
    words = {turned: OPPOSITE[turned]} if turned else {}
    found = [(shown(keymap.keys(key.id, key.keys)).split()[0], words.get(key.id, key.word)) for key in ranked]
    if pane is None:
        return found
    own = [(name, binding) for name, binding in own_keys(type(pane)).items() if binding.show]
    its = [
        (shown(keymap.keys(name, b.key)).split()[0], name.rpartition(".")[2].replace("_", " "))
        for name, b in own[:PANE_KEYS]
    ]
    return [*found[:MAIN_KEYS], *its, *found[MAIN_KEYS:]]
