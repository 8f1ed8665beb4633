"""Files that are there wholly or not at all, and locks between processes.

Locks are advisory (``flock``): they belong to the open file, so the kernel frees them when a process dies, however
it dies. A lock file may be removed by its holder; whoever waited for it notices and starts over.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Literal, TypeAlias

from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Step: TypeAlias = "Callable[[str], None]"
"""Told the name of each step on disk just after it was done; tests stop a writer there."""

Access: TypeAlias = Literal["shared", "alone"]

TEMPORARY_PREFIX = ".tmp-"
"""Names of files that are being written; nothing that starts like this is ever read."""

_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = frozenset([errno.ENOSPC, errno.EDQUOT])
_DENIED = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])


def no_step(name: str) -> None:
    """Ignore a step: the default observer."""
    del name


def host_error(error: OSError, where: Path, needed_bytes: int) -> HostError:
    """Turn a failed write into an error that says how many bytes were needed, and where."""
    needs = f"{needed_bytes} bytes are needed in {where}"
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return HostError(f"{needs}, but the disk or quota is full ({reason}); free space or write to another disk")
    if error.errno == errno.EFBIG:
        return HostError(
            f"{needs}, but files may not grow that large here ({reason}); raise the limit (ulimit -f) "
            "or write to another file system"
        )
    if error.errno in _DENIED:
        return HostError(f"{needs}, but writing there is not allowed ({reason}); choose a folder that you may write to")
    return HostError(f"{needs}, but writing failed ({reason}: {error.filename or where}); choose another folder")


def open_regular(path: str | Path, folder_fd: int | None = None) -> int:
    """Open a file for reading: a regular file that is no symlink; the caller closes the descriptor.

    Args:
        path: of the file; relative to ``folder_fd`` where that is given.
        folder_fd: an open folder.

    Raises:
        OSError: as the system says; ``ELOOP`` for a symlink, ``EINVAL`` for what is not a regular file.
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer that never comes.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder_fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return fd


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder durable; file systems that cannot sync a folder are left alone."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write every byte; a short write is continued, so that its cause shows as an error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextlib.contextmanager
def replacing(path: Path, on_step: Step = no_step) -> Iterator[int]:
    """Write a file beside ``path`` and rename it over ``path`` when the block ends well.

    Yields a descriptor to write to. The bytes are durable before the name changes; the rename itself is durable
    after ``sync_folder``. When the block raises, the temporary file is removed and ``path`` is as it was.

    Raises:
        OSError: as the system says.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}")
    fd = os.open(temporary, _NEW_FILE | os.O_RDWR, 0o666)
    try:
        on_step(f"open {path.name}")
        yield fd
        on_step(f"write {path.name}")
        os.fsync(fd)
        os.replace(temporary, path)  # noqa: PTH105 (the one call that commits)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(fd)
    on_step(f"rename {path.name}")


def write_file(path: Path, data: bytes, on_step: Step = no_step) -> None:
    """Replace a small file in one step, durably.

    Raises:
        OSError: as the system says.
    """
    with replacing(path, on_step) as fd:
        write_all(fd, data)
    sync_folder(path.parent)
    on_step(f"sync {path.name}")


def remove_temporaries(folder: Path) -> None:
    """Remove what killed writers left; call it only while no writer can be alive in ``folder``."""
    for entry in os.scandir(folder):
        if entry.name.startswith(TEMPORARY_PREFIX) and not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)  # noqa: PTH108 (scandir gives text)


def lock(path: Path, access: Access, *, wait: bool = True, create: bool = True) -> int | None:
    """Lock a file; the caller frees the descriptor with ``unlock``.

    Args:
        path: the lock file.
        access: ``shared`` with others of the kind, or ``alone``.
        wait: wait for others, or return None when it is not free.
        create: make the file where it is missing; its folder must exist.

    Raises:
        OSError: as the system says; ``ENOLCK`` or ``ENOTSUP`` where the file system has no locks.
    """
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_RDWR | os.O_CREAT if create else os.O_RDONLY)
    how = (fcntl.LOCK_SH if access == "shared" else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        fd = os.open(path, flags, 0o666)
        try:
            fcntl.flock(fd, how)
            if _names(path, fd):
                return fd
        except OSError as error:
            os.close(fd)
            if not wait and error.errno == errno.EAGAIN:
                return None
            raise
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # The holder removed the file while we waited for it.


def unlock(fd: int | None) -> None:
    """Free a lock; None is no lock. A forked child that still holds the descriptor does not keep the lock."""
    if fd is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _names(path: Path, fd: int) -> bool:
    """Whether ``path`` still is the file that is open."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(fd))
    except FileNotFoundError:
        return False
