"""Files of a session: private, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from cake_tui.errors import ENVIRONMENT, UserError

StrPath = str | os.PathLike[str]
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
LEAST_BYTES = 64 * 1024  # with less an engine would stand still at once


def open_private(path: StrPath, flags: int) -> int:
    """Open a file for its owner alone (0600), never through a link, not inherited by children, waiting for nobody."""
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def make_private_folder(path: Path) -> None:
    """Make a folder for its owner alone (0700); parents get the usual mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700)


def sync_folder(path: StrPath) -> None:
    """Make names in a folder survive a power loss; file systems that cannot are left alone."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def write_whole(path: StrPath, content: bytes, *, sync: bool = True, spare: str | None = None) -> None:
    """Replace a file in one step: readers see the old content or the new; a failure leaves the old.

    The content is written under a temporary name, that of the `spare` file where one is given. Raises OSError; the
    temporary file is gone by then.
    """
    folder, name = os.path.split(path)
    temporary = spare or os.path.join(folder, f".{name}.{os.getpid()}.new")  # noqa: PTH118
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(descriptor, left) :]
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.replace(temporary, path)  # noqa: PTH105
        except OSError as error:  # who mends it looks for the file, not for what it was called before
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if sync:
        sync_folder(folder or os.curdir)


def what_the_machine_lacks(error: OSError) -> str | None:
    """Return the line for an error that only its user can mend, room or a permission; None for any other."""
    if error.errno in NO_SPACE:
        return f"{error.strerror}: {error.filename or 'standard output'}; make room"
    if error.errno in NOT_ALLOWED and error.filename is not None:
        return f"{error.filename}: {str(error.strerror).lower()}; ask its owner, or use a folder of your own"
    return None


def free_bytes(folder: Path) -> int:
    """Bytes that we may still write on the folder's file system."""
    return shutil.disk_usage(folder).free


def refuse_without_space(folder: Path) -> None:
    """Raise UserError (ENVIRONMENT) where an engine could not even begin to write; the folder need not exist yet."""
    place = next((path for path in (folder, *folder.parents) if path.is_dir()), None)
    if place is not None and (free := free_bytes(place)) < LEAST_BYTES:
        raise UserError(f"no space in {place}: {free} bytes free; make room and start again", ENVIRONMENT)


def head_and_tail(text: str, limit: int) -> str:
    """Return `text`, or where it is longer than `limit` characters its head and tail with the true size between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    size = len(text.encode("utf-8", "replace"))
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out; {size} bytes in all ...]\n{text[-half:]}"
