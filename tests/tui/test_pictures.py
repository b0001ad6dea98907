"""Pictures of the viewer in its states, kept in screenshots/ and compared; drawn from the recorded example session.

``--update-golden`` draws them anew.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from cake_tui.model import event as ev
from cake_tui.tui.app import CakeApp
from cake_tui.tui.bridge import Bridge, Now
from cake_tui.tui.index import JournalIndex
from cake_tui.tui.replay import ReplayBridge
from tests.tui.pilot import picture_after
from tests.tui.pty_terminal import ROOT

SHOTS = ROOT / "screenshots"
RECORDED = ROOT / "sessions" / "example-cpu-512"
SHARE = 0.8  # of the record that is shown: a run in full swing


@dataclass(frozen=True)
class State:
    """What is pressed, what happened last, and how the viewer is opened."""

    keys: tuple[str, ...] = ()
    events: tuple[ev.Event, ...] = ()
    replay: bool = False
    ascii: bool = False
    options: dict[str, object] = field(default_factory=dict)


WIDE, MIDDLE, SMALL = (120, 40), (80, 24), (40, 12)
STATES: dict[str, State] = {
    "running": State(),
    "paused": State(events=(ev.RequestTaken(id="p", who="sam", what="pause"),)),
    "stalled": State(
        events=(
            ev.RoundBegan(round=40, size=4, incumbent=0),
            ev.RoundEnded(round=40, accepted=0, summary={}),
            ev.Stalled(rounds=22),
        )
    ),
    "inject": State(keys=("i", *"apply_register_block(4, 2)")),
    "details": State(keys=("4", "g", "enter")),
    "board": State(keys=("4", "z", "g", "down", "down")),
    "best": State(keys=("1", "z")),
    "feedback": State(keys=("2", "z")),
    "compare": State(keys=("4", "c", "down", "down", "c")),
    "actions": State(keys=("a",)),
    "help": State(keys=("question_mark",)),
    "replay": State(keys=("left_square_bracket",) * 12, replay=True),
    "ascii": State(ascii=True),
}
PICTURES = [(name, size) for name in STATES for size in (WIDE, MIDDLE)] + [("small", SMALL)]


@dataclass(frozen=True)
class Record:
    """A session folder cut to a part of its run, and the moment right after its last event."""

    folder: Path
    last: ev.Event


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The recorded session, cut where it was in full swing."""
    folder = tmp_path_factory.mktemp("pictures") / "example"
    # best/ holds the last winner, not the one at the cut; the candidates' own files serve instead.
    shutil.copytree(RECORDED, folder, ignore=shutil.ignore_patterns("best", "lock", "inbox", "snapshot.json"))
    reader = JournalIndex(folder / "journal.jsonl")
    events = list(reader.poll())
    ended = [index for index, event in enumerate(events) if isinstance(event, ev.RoundEnded)]
    cut = ended[int(len(ended) * SHARE)] + 1
    path = folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:cut]))
    return Record(folder, events[cut - 1])


@pytest.mark.parametrize(("name", "size"), PICTURES, ids=lambda v: v if isinstance(v, str) else f"{v[0]}x{v[1]}")
def test_a_picture_is_as_kept(
    name: str, size: tuple[int, int], record: Record, golden: Callable[[Path, str], None], tmp_path: Path
) -> None:
    state = STATES.get(name, State())
    folder = tmp_path / record.folder.name
    folder.mkdir()
    for path in record.folder.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "journal.jsonl").unlink()
    shutil.copy(record.folder / "journal.jsonl", folder)
    at = _now_after(record.last)
    with (folder / "journal.jsonl").open("ab") as file:
        for number, event in enumerate(state.events, 1):
            stamped = msgspec.structs.replace(
                event, seq=record.last.seq + number, t=record.last.t, mono=record.last.mono, boot=record.last.boot
            )
            file.write(msgspec.json.encode(stamped) + b"\n")
    bridge = (
        ReplayBridge(folder, now=lambda: at) if state.replay else Bridge(folder, now=lambda: at, alive=lambda _: True)
    )
    picture = picture_after(CakeApp(bridge, you="sam", ascii=state.ascii), state.keys, size)
    golden(SHOTS / f"{name}-{size[0]}x{size[1]}.svg", picture)


def test_no_picture_is_kept_that_nobody_draws() -> None:
    drawn = {f"{name}-{size[0]}x{size[1]}.svg" for name, size in PICTURES}
    assert {path.name for path in SHOTS.glob("*.svg")} == drawn


def test_the_readme_shows_pictures_that_are_kept() -> None:
    named = set(re.findall(r"screenshots/([\w-]+\.svg)", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert {"running-120x40.svg", "inject-120x40.svg", "details-120x40.svg", "replay-120x40.svg"} <= named
    assert named <= {path.name for path in SHOTS.glob("*.svg")}


def test_the_same_moment_gives_the_same_bytes(record: Record) -> None:
    at = _now_after(record.last)
    one, two = (
        picture_after(CakeApp(Bridge(record.folder, now=lambda: at, alive=lambda _: True), you="sam")) for _ in range(2)
    )
    assert one == two


def _now_after(event: ev.Event) -> Now:
    wall = datetime.fromisoformat(event.t) if event.t else datetime(2026, 1, 1, tzinfo=UTC)
    return Now(wall, event.mono + 1.0, event.boot)
