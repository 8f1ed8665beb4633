"""Appending whole lines to a file that several processes share and that any of them may be killed at."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def locked(path: Path, *, make: bool = True) -> Iterator[int]:
    """Open the file that lies at the path now, with its lock.

    Args:
        path: of the file.
        make: whether a missing file is made.

    Raises:
        OSError: when it cannot be opened.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _lies_at(path, fd):
                yield fd
                return
        finally:
            os.close(fd)


def cut_to_whole_lines(fd: int) -> int:
    """Cut off a last line without an end; return the bytes that are left."""
    size = os.fstat(fd).st_size
    end = size
    while end:
        start = max(0, end - 4096)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        end = start + at + 1 if at >= 0 else start
        if at >= 0:
            break
    if end < size:
        os.ftruncate(fd, end)
    return end


def write_all(fd: int, data: bytes) -> None:
    """Append all of it, or nothing.

    Raises:
        OSError: when it does not fit; the file is as before.
    """
    start = os.fstat(fd).st_size
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        os.ftruncate(fd, start)  # half of the lines now and all of them later would count some twice
        raise


def _lies_at(path: Path, fd: int) -> bool:
    """Tell whether nobody replaced or removed the file since it was opened."""
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False
