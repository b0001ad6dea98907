"""A session of thousands of candidates, written fast: events alone, no files of candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from cake_tui.model import event as ev
from cake_tui.tui.bridge import Now
from tests.tui.sample import Sample


class LongSample(Sample):
    """As `Sample`, but events are kept until `flush`, and candidates have no files."""

    def __init__(self, folder: Path, *, began: Now) -> None:
        self._kept: list[bytes] = []
        super().__init__(folder, began=began, candidates=100_000)

    def put(self, *events: ev.Event, after: float = 0.05) -> None:
        """Keep events for the journal."""
        for event in events:
            self.clock += after
            self.seq += 1
            stamped = msgspec.structs.replace(
                event, seq=self.seq, t=self.stamp(), mono=round(self.clock, 3), boot=self.began.boot
            )
            self._kept.append(msgspec.json.encode(stamped))

    def flush(self) -> None:
        """Write what was kept."""
        with (self.folder / "journal.jsonl").open("ab") as file:
            file.write(b"".join(line + b"\n" for line in self._kept))
        self._kept = []

    def _write(self, *_: Any) -> None:
        """No files."""

    def _publish(self, *_: Any) -> None:
        """No best source either."""


def long_session(folder: Path, candidates: int, began: Now) -> LongSample:
    """A running session with so many candidates, all of them over by `began`."""
    sample = LongSample(folder, began=Now(began.wall, began.mono - 4.0 * candidates, began.boot))
    sample.run(candidates)
    sample.clock = began.mono
    sample.flush()
    sample.beat(60)
    return sample
