"""The files of a session that a viewer reads beside the journal: best source, feedback, program text, logs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST = 4 << 20
_SOURCES = (".c", ".cu", ".cpp", ".h")


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

    def best_source(self) -> Text | None:
        """The source in ``best/``."""
        return self._source_in(self.folder / "best")

    def source(self, number: int) -> Text | None:
        """A candidate's source."""
        return self._source_in(self.candidate(number))

    def program(self, number: int) -> Text | None:
        """A candidate's program text (the IR)."""
        return self._first(self.candidate(number), ("program.txt", "program.ir", "program.cake", "program"))

    def build_log(self, number: int) -> Text | None:
        """Head and tail of a candidate's build log."""
        return self._first(self.candidate(number), ("build.log", "build_log.txt"))

    def feedback_text(self, number: int) -> Text | None:
        """A candidate's feedback JSON, byte for byte."""
        return self._first(self.candidate(number), ("feedback.json",))

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
        return self.folder / "candidates" / str(number)

    def _source_in(self, folder: Path) -> Text | None:
        try:
            names = sorted(path.name for path in folder.iterdir() if path.suffix in _SOURCES)
        except OSError:
            return None
        # `source.*` and `kernel.*` first: a harness may lie beside them.
        names.sort(key=lambda name: (not name.startswith(("source.", "kernel.")), name))
        return self._first(folder, tuple(names))

    def _first(self, folder: Path, names: tuple[str, ...]) -> Text | None:
        for name in names:
            found = self._read(folder / name)
            if found is not None:
                return found
        return None

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
