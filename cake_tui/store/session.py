"""A session's folder: made in one step, candidates' files, ``best/`` swapped in one step, ``session.toml``."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from cake_tui.errors import DAMAGED, ENVIRONMENT, UserError
from cake_tui.model import layout
from cake_tui.model.event import SessionCreated
from cake_tui.store.clock import Clocks, utc_text
from cake_tui.store.disk import DiskBound
from cake_tui.store.files import (
    NO_SPACE,
    head_and_tail,
    make_private_folder,
    sync_folder,
    what_the_machine_lacks,
    write_whole,
)  # fmt: skip
from cake_tui.store.journal import Journal, OnFull
from cake_tui.store.lock import Lock, busy, engine_of
from cake_tui.store.spares import Spares
from cake_tui.toml import Document, parse_document, read_text

LOG_CHARACTERS = 40 * 1024  # head and tail of a candidate's log; an executor keeps less, so its own cut stands alone
TEXT_CHARACTERS = 256 * 1024  # of prompts and replies
_CUT = {".log": LOG_CHARACTERS, ".prompt": TEXT_CHARACTERS, ".reply": TEXT_CHARACTERS}
_SPARES = ".spares.new"  # `mend` clears what has such a name
_STALE_S = 3600.0


class Session:
    """The folder of one session, as its engine sees it. Readers need `cake_tui.store.snapshot.fold` alone."""

    def __init__(self, path: Path, lock: Lock, on_full: OnFull | None = None) -> None:
        self.path = path
        self.lock = lock
        self.on_full = on_full
        self.disk: DiskBound | None = None
        self._spares: Spares | None = None  # from the first candidate's file on
        self._made: set[int] = set()  # candidates whose folders are there, as far as we know

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    @property
    def journal_path(self) -> Path:
        """The record."""
        return self.path / layout.JOURNAL

    @property
    def build_store(self) -> Path:
        """Where an executor keeps what it built, by content hash: a cache."""
        return self.path / layout.BUILDS

    # -- candidates ------------------------------------------------------------------------------------

    def candidate(self, number: int) -> Path:
        """Folder of a candidate; it may not be there (nothing written yet, or pruned)."""
        return self.path / layout.CANDIDATES / str(number)

    def write(self, candidate: int, name: str, text: str) -> None:
        """Keep one file of a candidate, in UTF-8; logs and prompts keep head and tail with their true size.

        Without space it waits (`on_full`) and writes it then; the candidate's other files are not touched.
        """
        if "/" in name or name.startswith("."):
            raise ValueError(f"file name of a candidate: {name!r}")
        kept = head_and_tail(text, _CUT.get(os.path.splitext(name)[1], len(text)))  # noqa: PTH122
        content = kept.encode("utf-8", "replace")
        # Strings, not paths: some files are written of every candidate.
        folder = f"{self.path}/{layout.CANDIDATES}/{candidate}"
        file = f"{folder}/{name}"

        spares = self._spares = self._spares or Spares(f"{self.path}/{_SPARES}")

        def attempt() -> None:
            if candidate not in self._made:
                _make_folder(folder, spares)
                self._made.add(candidate)
            try:
                write_whole(file, content, sync=False, spare=spares.file())
            except (FileNotFoundError, NotADirectoryError):  # it was pruned, or somebody took it away, or the stock
                _make_folder(folder, spares)
                write_whole(file, content, sync=False)

        self._with_space(file, len(content), attempt)
        if self.disk is not None:
            self.disk.wrote(len(content))

    def close(self) -> None:
        """End what goes on beside the writing of candidates."""
        if self._spares is not None:
            self._spares.close()
            self._spares = None

    def publish(self, candidate: int, files: Mapping[str, str]) -> None:
        """Replace ``best/`` by these files of `candidate` in one step; readers see all old ones or all new ones."""
        best = self.path / layout.BEST
        fresh, old = self.path / ".best-new", self.path / ".best-old"
        total = sum(len(text) for text in files.values())

        def attempt() -> None:
            _clear(fresh)
            fresh.mkdir(mode=0o700)
            write_whole(fresh / "candidate", f"{candidate}\n".encode())
            for name, text in files.items():
                write_whole(fresh / name, text.encode("utf-8", "replace"))
            if not best.exists():
                fresh.rename(best)
            elif not _exchange(fresh, best):
                _clear(old)
                best.rename(old)
                fresh.rename(best)
            sync_folder(self.path)

        self._with_space(best, total, attempt)
        for left in (fresh, old):
            _clear(left)

    def published(self) -> int | None:
        """Number of the candidate in ``best/``; None where there is none."""
        try:
            return int((self.path / layout.BEST / "candidate").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def mend(self) -> None:
        """Clear what a killed engine left half-way: a fallback swap of ``best/``, temporary files."""
        best, old = self.path / layout.BEST, self.path / ".best-old"
        if not best.exists() and old.exists():
            old.rename(best)
        for left in (*self.path.glob(".best-*"), *self.path.glob(".*.new")):
            _clear(left)

    def _with_space(self, path: str | Path, size: int, attempt: Callable[[], None]) -> None:
        while True:
            try:
                attempt()
                return
            except OSError as error:
                if error.errno not in NO_SPACE or self.on_full is None:
                    raise
                self.on_full(Path(path), size, error)

    # -- session.toml ----------------------------------------------------------------------------------

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Put changed settings into ``session.toml``, so that a resume finds them there."""
        path = self.path / layout.SETTINGS
        document = {**read_document(self.path).value, "settings": dict(settings)}
        content = tomli_w.dumps(document).encode("utf-8")
        self._with_space(path, len(content), lambda: write_whole(path, content))


def create(sessions: Path, created: SessionCreated, clocks: Clocks, *, who: str) -> Session:
    """Make a session's folder with its lock held, its first event and ``session.toml``, in one step.

    Raises UserError where the name is taken (BUSY where its engine runs) or the folder cannot be made;
    nothing is left behind then.
    """
    final = sessions / created.name
    refuse_existing(final)
    try:
        sessions.mkdir(parents=True, exist_ok=True)
        _sweep(sessions)
        staging = sessions / f".{created.name}.{os.getpid()}.new"
        shutil.rmtree(staging, ignore_errors=True)
        make_private_folder(staging)
    except OSError as error:
        raise UserError(
            f"sessions folder {sessions}: {error.strerror}; choose another with --sessions", ENVIRONMENT
        ) from None
    try:
        for name in (layout.CANDIDATES, layout.INBOX):
            (staging / name).mkdir(mode=0o700)
        lock = Lock(staging / layout.LOCK)
        lock.take()
        lock.sign(what=created.name, who=who)
        write_whole(staging / layout.SETTINGS, tomli_w.dumps(_document(created, clocks)).encode("utf-8"))
        journal = Journal(staging / layout.JOURNAL, clocks)
        journal.append(created)
        journal.close()
        staging.rename(final)
        sync_folder(sessions)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            refuse_existing(final)
        raise UserError(
            f"session folder {final}: {error.strerror}; make room, or choose another with --sessions", ENVIRONMENT
        ) from None
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    lock.path = final / layout.LOCK
    return Session(final, lock)


def refuse_existing(path: Path) -> None:
    """Raise UserError where a session of this name is there already."""
    if engine_of(path) is not None:
        raise busy(path)
    if path.is_dir() and any(path.iterdir()):
        raise UserError(
            f'session "{path.name}" is there already; go on with it: cake-tui resume {path.name}, '
            f"or choose another --name"
        )
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is in the way: it is no folder")


def open_locked(path: Path, *, who: str) -> Session:
    """Open an existing session for its engine; raises UserError (BUSY) where another engine has it."""
    _refuse_obstacles(path)
    lock = Lock(path / layout.LOCK)
    try:
        taken = lock.take()
    except OSError as error:
        lacks = what_the_machine_lacks(error)
        reason = lacks or f"{path / layout.LOCK}: {error.strerror}; the file system must have locks"
        raise UserError(reason, ENVIRONMENT) from None
    if not taken:
        raise busy(path)
    lock.sign(what=path.name, who=who)
    session = Session(path, lock)
    session.mend()
    (path / layout.INBOX).mkdir(mode=0o700, exist_ok=True)
    return session


def _refuse_obstacles(path: Path) -> None:
    """Raise UserError (DAMAGED) where something else stands in the place of a session's file or folder."""
    for name in (layout.JOURNAL, layout.LOCK):
        file = path / name
        if os.path.lexists(file) and (file.is_symlink() or not file.is_file()):
            raise UserError(f"{file}: no regular file; put back what was there", DAMAGED)
    for name in (layout.CANDIDATES, layout.INBOX, layout.BEST, layout.BUILDS):
        folder = path / name
        if os.path.lexists(folder) and not folder.is_dir():
            raise UserError(f"{folder}: no folder; move it away and resume again", DAMAGED)


def read_document(path: Path) -> Document:
    """Return ``session.toml``, empty where it is missing; raises UserError (DAMAGED) where it is no TOML."""
    file = path / layout.SETTINGS
    if not file.exists():
        return parse_document("", str(file))
    try:
        return parse_document(read_text(file), str(file))
    except UserError as error:
        raise UserError(f"{error}; mend it, or delete it to go on with the journal's settings", DAMAGED) from None


def _document(created: SessionCreated, clocks: Clocks) -> dict[str, Any]:
    plain = {
        "name": created.name,
        "created": utc_text(clocks.wall()),
        "kernel": created.problem.kernel,
        "backend": created.backend,
        "agent": created.agent,
        "goal": created.goal,
        "started_from": created.started_from,
        "settings": created.settings,
        "device": msgspec.to_builtins(created.device),
        "versions": created.versions,
        "problem": msgspec.to_builtins(created.problem),
    }
    document = _without_none(plain)
    if not isinstance(document, dict):
        raise TypeError("a document is a table")
    return document


def _without_none(value: Any) -> Any:
    """TOML has no null: what is unknown is left out."""
    if isinstance(value, Mapping):
        return {str(key): _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value if inner is not None]
    return value


def _make_folder(path: str, spares: Spares) -> None:
    """Have a candidate's folder there, with what it held."""
    spare = spares.folder()
    if spare is not None:
        try:
            os.rename(spare, path)  # noqa: PTH104
            return
        except FileNotFoundError:
            pass
        except OSError:  # it has files already, or something is in the way, which the next call says
            spares.put_back(spare)
    os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103


def _sweep(sessions: Path) -> None:
    """Remove folders that a killed `run` was still making."""
    for left in sessions.glob(".*.new"):
        if left.is_dir() and time.time() - left.stat().st_mtime > _STALE_S:
            shutil.rmtree(left, ignore_errors=True)


def _clear(path: Path) -> None:
    """Remove whatever has this name, if anything has."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step (renameat2); False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    result = rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    if result == 0:
        return True
    code = ctypes.get_errno()
    if code in NO_SPACE:
        raise OSError(code, os.strerror(code), str(second))
    return False
