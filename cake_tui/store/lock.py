"""Locks: one engine a session, one session a device; the kernel frees them on any death, the file says who holds."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import stat
import time
from pathlib import Path

import msgspec

from cake_tui.config import lock_dir
from cake_tui.errors import BUSY, ENVIRONMENT, UserError
from cake_tui.model import layout
from cake_tui.model.state import ENDED
from cake_tui.store import name as names
from cake_tui.store.clock import utc_text

_SIZE = 1024  # the file keeps this size, so that its holder can write a line into it when the disk is full
_PATIENCE_S = 1.0  # somebody who only looks holds the lock for an instant


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock; `start` is the process's start in clock ticks since boot, which a reused pid cannot have."""

    pid: int
    start: int
    host: str
    since: str
    what: str = ""  # the session, in a device's lock
    who: str = ""
    note: str = ""  # what the holder wants said where it can write nothing else


class Lock:
    """An advisory lock on a file, held from `take` until `release` or the death of the process."""

    def __init__(self, path: Path, *, shared_by_users: bool = False) -> None:
        self.path = path
        self._everybody = shared_by_users
        self._file: int | None = None
        self._holder: Holder | None = None

    def take(self) -> bool:
        """Take the lock without waiting for a holder that lives; False where somebody holds it.

        Raises OSError where the file cannot be opened or the file system has no locks.
        """
        descriptor = self._open()
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                    os.close(descriptor)
                    raise
            holder = read_holder(self.path)
            if (holder is not None and is_running(holder)) or time.monotonic() >= deadline:
                os.close(descriptor)
                return False
            time.sleep(0.02)
        self._file = descriptor
        return True

    def sign(self, *, what: str = "", who: str = "", note: str = "") -> Holder:
        """Write into the file who holds it: this process."""
        if self._file is None:
            raise RuntimeError(f"{self.path} is not held")
        since = self._holder.since if self._holder else utc_text(time.time())
        self._holder = Holder(os.getpid(), start_ticks(os.getpid()) or 0, socket.gethostname(), since, what, who, note)
        text = msgspec.json.encode(self._holder)
        if len(text) >= _SIZE:
            text = msgspec.json.encode(msgspec.structs.replace(self._holder, note=note[:200], what=what[:200]))
        os.pwrite(self._file, text.ljust(_SIZE - 1)[: _SIZE - 1] + b"\n", 0)
        return self._holder

    def note(self, text: str) -> None:
        """Leave one line in the lock file, in place: it needs no free space."""
        holder = self._holder
        if holder is not None:
            self.sign(what=holder.what, who=holder.who, note=text)

    def release(self) -> None:
        """Let go; the file stays, for its name is what everybody locks, and says that nobody holds it."""
        if self._file is not None:
            if self._holder is not None:
                os.pwrite(self._file, b" " * (_SIZE - 1) + b"\n", 0)
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        mode = 0o666 if self._everybody else 0o600
        try:
            # Without O_CREAT first: a sticky folder forbids creating what another user already has there.
            return os.open(self.path, flags)
        except FileNotFoundError:
            descriptor = os.open(self.path, flags | os.O_CREAT, mode)
            if self._everybody:
                os.fchmod(descriptor, mode)
            return descriptor


def read_holder(path: Path) -> Holder | None:
    """Return who signed the lock file last, alive or not; None where nobody did."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return msgspec.json.decode(os.read(descriptor, _SIZE), type=Holder)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None where it is gone or dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_running(holder: Holder) -> bool:
    """Tell whether the holder's process lives on this host; a pid that another process has now does not count."""
    return holder.host == socket.gethostname() and start_ticks(holder.pid) == holder.start


def living_holder(path: Path) -> Holder | None:
    """Return who holds the lock now, or None where it is free.

    On the holder's own host the process table answers; for another host the lock itself is asked, shared
    and for an instant.
    """
    holder = read_holder(path)
    if holder is None:
        return None
    if holder.host == socket.gethostname():
        return holder if is_running(holder) else None
    return None if _is_free(path) else holder


def engine_of(session: Path) -> Holder | None:
    """Return who runs a session now; None where no engine lives."""
    return living_holder(session / layout.LOCK)


def state_now(state: str, session: Path) -> str:
    """Return the state a person should read: ``gone`` where the record says that an engine runs and none does."""
    return state if state in ENDED or engine_of(session) is not None else "gone"


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def busy(session: Path) -> UserError:
    """Return the refusal for a session that another engine holds."""
    holder = read_holder(session / layout.LOCK)
    said = (
        f"PID {holder.pid} on {holder.host} holds it since {holder.since}"
        if holder is not None
        else "another process holds it"
    )
    name = session.name
    return UserError(f'session "{name}" is running: {said}; look at it with: cake-tui attach {name}', BUSY)


def take_device(uuid: str, session: str, who: str) -> Lock | None:
    """Take a device for this process; None for a simulated one, which needs no lock.

    The lock's file is in a folder that all users share. Raises UserError: BUSY with who holds the device,
    ENVIRONMENT where the folder cannot be used.
    """
    if uuid.startswith("simulated:"):
        return None
    folder = lock_dir()
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', uuid)}.lock"
    try:
        _share_folder(folder)
        lock = Lock(path, shared_by_users=True)
        taken = lock.take()
    except OSError as error:
        raise UserError(
            f"device lock {path}: {error.strerror}; give everybody a folder for it with CAKE_TUI_LOCKS", ENVIRONMENT
        ) from None
    if not taken:
        holder = read_holder(path)
        said, stop = "another session", "stop it"
        if holder is not None:
            # What is no session (verify, doctor) calls itself by words that are no session's name.
            tunes = names.is_one(holder.what)
            said = f'session "{holder.what}"' if tunes else f'"{holder.what}"'
            said += f" of {holder.who} (PID {holder.pid} on {holder.host}, since {holder.since})"
            stop = f"stop it: {f'cake-tui stop {holder.what}' if tunes else f'kill {holder.pid}'}"
        raise UserError(f"device {uuid} is in use by {said}; wait until it ends, or {stop}", BUSY)
    lock.sign(what=session, who=who)
    return lock


def _share_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    folder.chmod(0o777 | stat.S_ISVTX)


_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "lustre", "beegfs")


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """Return the kind of network file system that the folder is on, None for a local one."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        real = folder.resolve()
    except OSError:
        return None
    best, kind = -1, ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[1]))
        if (real == point or point in real.parents) and len(point.parts) > best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in _NETWORK else None
