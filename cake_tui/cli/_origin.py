"""Where a session starts from (``--from SESSION[:N]|FILE``): a schedule, and program texts that it needs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cake_tui.errors import DAMAGED, UserError
from cake_tui.ir.origins import text_structure
from cake_tui.model import layout
from cake_tui.model.schedule import KnobValue, Schedule
from cake_tui.store import name as names
from cake_tui.store.files import write_whole
from cake_tui.store.snapshot import fold_session
from cake_tui.toml import read_text

_SCHEDULE = re.compile(r"(?P<structure>[A-Za-z][\w-]*)\((?P<knobs>[^()]*)\)\s*\Z")
_PROVENANCE = re.compile(r'"schedule"\s*:\s*"((?:[^"\\]|\\.)*)"')
_LARGEST = 4 << 20


@dataclass(frozen=True)
class Origin:
    """Candidate 0 of a session that does not start from the kernel's first schedule."""

    label: str
    schedule: Schedule
    texts: dict[str, str] = field(default_factory=dict)

    def keep(self, session: Path) -> None:
        """Write it into the session's folder, for a resume before candidate 0 was measured."""
        plain = {"label": self.label, "schedule": msgspec.to_builtins(self.schedule), "texts": self.texts}
        write_whole(session / layout.START, msgspec.json.encode(plain))

    @classmethod
    def kept(cls, session: Path) -> Origin | None:
        """Read what `keep` wrote; None where the session started from the kernel's first schedule.

        Raises UserError (DAMAGED) where it cannot be read.
        """
        file = session / layout.START
        if not os.path.lexists(file):
            return None
        try:
            return msgspec.json.decode(read_text(file, _LARGEST), type=Origin)
        except (UserError, msgspec.MsgspecError) as error:
            why = error if isinstance(error, UserError) else f"{file}: {error}"
            raise UserError(f"{why}; put it back, or delete it: candidate 0 is on record", DAMAGED) from None


def origin_of(text: str, folder: Path) -> Origin:
    """Resolve ``SESSION``, ``SESSION:N``, or a file: a schedule, a program text or an export; raises UserError."""
    session, _, number = text.partition(":")
    if (folder / session / layout.JOURNAL).is_file():
        return _of_session(text, folder / session, number)
    path = Path(text)
    if path.is_file():
        return _of_file(text, path)
    known = names.all_names(folder)
    there = f"sessions there: {', '.join(known[:10])}" if known else f"no session in {folder}"
    raise UserError(f'--from: "{text}" is neither a session nor a file; {there}')


def _of_session(text: str, path: Path, number: str) -> Origin:
    history = fold_session(path).history
    if number and not number.isdigit():
        raise UserError(f'--from: found candidate "{number}", allowed: a number from 0 to {len(history.rows) - 1}')
    wanted = int(number) if number else history.incumbent
    if wanted is None:
        raise UserError(f'--from: session "{path.name}" has no measured candidate yet')
    if not 0 <= wanted < len(history.rows) or history.rows[wanted].schedule is None:
        raise UserError(f'--from: session "{path.name}" has no candidate {wanted} with a schedule')
    earlier = Origin.kept(path)
    schedule = history.rows[wanted].schedule
    if schedule is None:
        raise UserError(f"--from: candidate {wanted} has no schedule")
    return Origin(f"{path.name}:{wanted}", schedule, earlier.texts if earlier is not None else {})


def _of_file(text: str, path: Path) -> Origin:
    try:
        content = read_text(path, _LARGEST).replace("\r\n", "\n")
    except UserError as error:
        raise UserError(f"--from: {error}") from None
    schedule = _schedule_of(content.strip())
    if schedule is not None:
        return Origin(text, schedule)
    found = _PROVENANCE.search(content)
    schedule = _schedule_of(msgspec.json.decode(f'"{found[1]}"', type=str)) if found is not None else None
    if schedule is not None:
        return Origin(text, schedule)
    if path.suffix == ".cake":
        structure = text_structure(content)
        return Origin(text, Schedule(structure), {structure: content})
    raise UserError(
        f"--from: {path}: found neither a schedule, as packed(block_k=256), nor an export's provenance, "
        f"nor a program text (.cake)"
    )


def _schedule_of(text: str) -> Schedule | None:
    """Read what ``Schedule.text`` prints; None where the text is no schedule."""
    match = _SCHEDULE.match(text)
    if match is None:
        return None
    knobs: dict[str, KnobValue] = {}
    for part in match["knobs"].split(","):
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier():
            return None
        knobs[key] = _value(value)
    return Schedule.of(match["structure"], knobs)


def _value(text: str) -> KnobValue:
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return text
