"""Recorded samples in small files: problem, device, and what each candidate measured, in its order.

    python -m tests.agents.samples SESSION [SESSION …]

writes each recorded session to ``tests/data/samples/<its name>.json``. Those there are of ``cake-tui run KERNEL --shape
SIZES --backend cpu --agent random --seed 1 --candidates 250 --set screen=false --set gate_series=16 --set gate_top=1
--headless``, each alone on the machine and each run once.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.model.device import Device
from cake_tui.model.history import History
from cake_tui.model.problem import Problem
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.store.reading import decode

FOLDER = Path(__file__).parents[1] / "data" / "samples"
STORED = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


class Entry(msgspec.Struct, frozen=True):
    """One measured candidate: its time by pairs, and what the run had predicted for it."""

    schedule: Schedule
    time_us: float
    predicted_us: float | None = None


class Sample(msgspec.Struct, frozen=True):
    """What a session measured, candidate 0 first."""

    problem: Problem
    device: Device
    entries: tuple[Entry, ...]
    agent: str = "random"
    screened: bool = False

    @classmethod
    def of(cls, history: History) -> Sample:
        """Take a session's times as candidate 0's, divided by how much faster each stood in pairs.

        A machine that slows down during the session slows both sides of a pair. Raises ValueError for a session
        whose candidate 0 has no time.
        """
        first_us = history.rows[0].time_us if history.rows else None
        if history.session is None or first_us is None:
            raise ValueError("candidate 0 of the session has no time")
        entries = tuple(
            Entry(row.schedule, first_us * math.exp(-row.standing), row.predicted_us)
            for row in history.rows
            if row.schedule is not None and row.standing is not None
        )
        screened = bool(history.settings["screen"])
        return cls(history.problem, history.device, entries, history.session.agent, screened)

    @classmethod
    def stored(cls, name: str) -> Sample:
        """Read one of `STORED`."""
        data = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        entries = tuple(
            Entry(Schedule.of(structure, dict(zip(data["knobs"][structure], values))), time_us, predicted_us)
            for structure, values, time_us, predicted_us in data.pop("entries")
        )
        del data["knobs"]
        return msgspec.convert({**data, "entries": entries}, cls)

    def text(self) -> str:
        """Return the file's text: a line a candidate, knobs in the order that is given once a structure."""
        knobs: dict[str, list[str]] = {}
        rows = []
        for one in self.entries:
            names = knobs.setdefault(one.schedule.structure, [name for name, _ in one.schedule.knobs])
            values = [_value(one.schedule, name) for name in names]
            predicted_us = None if one.predicted_us is None else _short(one.predicted_us)
            rows.append(_json([one.schedule.structure, values, _short(one.time_us), predicted_us]))
        head = {**msgspec.to_builtins(self), "knobs": knobs}
        del head["entries"]
        lines = [f'"{name}": {_json(value)},' for name, value in head.items()]
        return "\n".join(["{", *lines, '"entries": [', ",\n".join(rows), "]}", ""])


def read_history(journal: Path) -> History:
    """Fold a journal; what cannot be read is passed over."""
    history = History()
    for line in journal.read_bytes().splitlines():
        for event in decode(line):
            history.apply(event)
    return history


def _value(schedule: Schedule, name: str) -> KnobValue:
    return dict(schedule.knobs)[name]


def _short(time_us: float) -> float:
    return float(f"{time_us:.5g}")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(folders: list[str]) -> None:
    """Write the samples of session folders."""
    FOLDER.mkdir(exist_ok=True)
    for folder in map(Path, folders):
        sample = Sample.of(read_history(folder / "journal.jsonl"))
        (FOLDER / f"{folder.name}.json").write_text(sample.text(), encoding="utf-8")
        print(f"{folder.name}: {len(sample.entries)} times")


if __name__ == "__main__":
    main(sys.argv[1:])
