"""Where in a record something happened: candidates, times, wins and what people did, by the number of events before."""

from __future__ import annotations

import bisect
import re
from array import array
from datetime import datetime

from cake_tui import figures
from cake_tui.model.event import CandidateEnded, Event
from cake_tui.model.outcome import Measured
from cake_tui.tui.words import GROUPS

LONGEST_GAP_S = 60.0  # what a pause or a night without an engine takes when the record plays
_DURATION = re.compile(r"(?=\d)(?:(\d+(?:\.\d*)?)h)?\s*(?:(\d+(?:\.\d*)?)m)?\s*(?:(\d+(?:\.\d*)?)s?)?\Z")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?\Z")
_DAY_S = 86400.0


class Moments:
    """Filled event by event; cursors are counts of events, so that a cursor right behind event i is i + 1."""

    def __init__(self) -> None:
        self.ends: list[int] = []  # right behind each candidate's end
        self.wins: list[int] = []
        self.people: list[int] = []
        self._of: dict[int, int] = {}  # candidate -> cursor
        self._played = array("d")
        self._elapsed = array("d")
        self._wall = array("d")
        self._last: tuple[str, float] = ("", 0.0)

    def add(self, event: Event, elapsed_s: float | None) -> None:
        """Note an event; `elapsed_s` is the session's running time after it where that is known."""
        cursor = len(self._played) + 1
        boot, mono = self._last
        passed = max(0.0, event.mono - mono) if self._played and event.boot == boot else 0.0
        self._last = (event.boot, event.mono)
        self._played.append((self._played[-1] if self._played else 0.0) + min(passed, LONGEST_GAP_S))
        known = self._elapsed[-1] + passed if self._elapsed else 0.0
        self._elapsed.append(known if elapsed_s is None else elapsed_s)
        self._wall.append(_wall(event.t, self._wall[-1] if self._wall else 0.0))
        if isinstance(event, CandidateEnded):
            self.ends.append(cursor)
            self._of[event.candidate] = cursor
            if isinstance(event.outcome, Measured) and event.outcome.verdict == "accepted":
                self.wins.append(cursor)
        if type(event).__name__ in GROUPS["people"]:
            self.people.append(cursor)

    def __len__(self) -> int:
        return len(self._played)

    def played_s(self, cursor: int) -> float:
        """Seconds of playing until a cursor; long gaps count a minute."""
        return self._played[cursor - 1] if 0 < cursor <= len(self._played) else 0.0

    def at_played(self, seconds: float) -> int:
        """The cursor behind all that happened within so many seconds of playing."""
        return bisect.bisect_right(self._played, seconds)

    def person(self, cursor: int, by: int) -> int | None:
        """The cursor behind the next (or previous) thing that a person did."""
        at = bisect.bisect_right(self.people, cursor) if by > 0 else bisect.bisect_left(self.people, cursor) - 1
        return self.people[at] if 0 <= at < len(self.people) else None

    def find(self, text: str) -> int | None:
        """The cursor of ``#137`` or ``137``, ``event 700``, ``start``, ``end``, ``1h12m30s`` or ``14:31:07`` UTC."""
        words = text.strip().lower()
        if words in ("start", "end"):
            return 0 if words == "start" else len(self)
        kind, _, count = words.rpartition(" ")
        if count.isdecimal() and kind.strip() == "event":
            return int(count) if int(count) <= len(self) else None
        number = self.candidate(words)
        if number is not None:
            return self._of.get(number)
        clock, duration = _CLOCK.match(words), _DURATION.match(words)
        if clock is not None:
            return self._at_clock(*(int(part or 0) for part in clock.groups()))
        if duration is not None and any(duration.groups()):
            hours, minutes, seconds = (float(part or 0) for part in duration.groups())
            return self._first(self._elapsed, 3600 * hours + 60 * minutes + seconds)
        return None

    @staticmethod
    def candidate(text: str) -> int | None:
        """The number that ``#137`` or ``137`` asks for; None for other places."""
        digits = text.strip().removeprefix("#")
        return int(digits) if digits.isdecimal() else None

    def extent(self) -> str:
        """What can be asked for, in words."""
        last = max(self._of, default=0)
        span = figures.duration(self._elapsed[-1] if self._elapsed else 0.0)
        return (
            f"has #0 to #{last}, {len(self)} events, {span}; say #{last}, event {len(self)}, 90s, 12m30s or 14:31 UTC"
        )

    def _at_clock(self, hour: int, minute: int, second: int) -> int | None:
        if not self._wall or hour > 23 or minute > 59 or second > 59:
            return None
        begin = self._wall[0]
        wanted = begin - begin % _DAY_S + 3600 * hour + 60 * minute + second
        return self._first(self._wall, wanted if wanted >= begin - begin % 60 else wanted + _DAY_S)

    def _first(self, times: array[float], wanted: float) -> int | None:
        """The cursor behind the first event at or after a time."""
        return next((index + 1 for index, time in enumerate(times) if time >= wanted), None)


def _wall(stamp: str, before: float) -> float:
    """Seconds since 1970 of an event's time; of a damaged one, the time of the event before."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return before
