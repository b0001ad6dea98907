"""The files of a session that a viewer reads beside the journal: best source, feedback, program text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cake_tui.model import layout
from cake_tui.model.lowered import Lowered

LARGEST = 4 << 20


@dataclass(frozen=True)
class Text:
    """A file's text as it is on disk; `sha256` is of its bytes, `cut` tells that only the beginning is here."""

    path: Path
    text: str
    sha256: str
    cut: bool = False


class SessionFiles:
    """Reads a file again only when its time, size or inode changed; what cannot be read is None."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cache: dict[Path, tuple[tuple[int, int, int], Text]] = {}
        self._identity: tuple[str, str, str] | None = None  # digests of a source and its lowered.json, what they say

    def best_source(self) -> Text | None:
        """The source in ``best/``."""
        return self._source_in(self.folder / layout.BEST)

    def source(self, number: int) -> Text | None:
        """A candidate's source."""
        return self._source_in(self.candidate(number))

    def identity(self, source: Text) -> str | None:
        """The sha256 that exports, ``verify`` and ``show`` give for a source: of the lowered value it is part of.

        None where no lowered value lies beside it; empty where that one holds another source.
        """
        beside = self._read(source.path.with_name(layout.LOWERED))
        if beside is None:
            return None
        if self._identity is None or self._identity[:2] != (source.sha256, beside.sha256):
            try:
                lowered = msgspec.json.decode(beside.text, type=Lowered)
            except (msgspec.MsgspecError, RecursionError):
                return None
            same = lowered.source.encode("utf-8", "replace") == source.text.encode("utf-8", "replace")
            self._identity = source.sha256, beside.sha256, lowered.sha256 if same else ""
        return self._identity[2]

    def program(self, number: int) -> Text | None:
        """A candidate's program text (the IR)."""
        return self.text(number, layout.PROGRAM)

    def text(self, number: int, name: str) -> Text | None:
        """Any file of a candidate, by its name."""
        return self._read(self.candidate(number) / name)

    def feedback_text(self, number: int) -> Text | None:
        """A candidate's feedback JSON, byte for byte."""
        return self.text(number, layout.FEEDBACK)

    def feedback(self, number: int) -> dict[str, Any] | None:
        """A candidate's feedback, decoded; None where there is none or it is damaged."""
        found = self.feedback_text(number)
        if found is None or found.cut:
            return None
        try:
            value = json.loads(found.text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def candidate(self, number: int) -> Path:
        """A candidate's folder."""
        return self.folder / layout.CANDIDATES / str(number)

    def _source_in(self, folder: Path) -> Text | None:
        found = (self._read(folder / name) for name in layout.SOURCES.values())
        return next((text for text in found if text is not None), None)

    def _read(self, path: Path) -> Text | None:
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._cache.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            if not path.is_file():
                return None
            with path.open("rb") as file:
                data = file.read(LARGEST + 1)
        except OSError:
            return None
        cut = len(data) > LARGEST
        text = data[:LARGEST].decode("utf-8", errors="replace")
        read = Text(path, text, hashlib.sha256(data).hexdigest(), cut)
        if len(self._cache) > 32:
            self._cache.clear()
        self._cache[path] = (stamp, read)
        return read
