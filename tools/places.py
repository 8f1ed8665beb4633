"""Where commands write: looked at before work begins, because what fails after minutes of it has lost them."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def require_file_place(path: Path | None, option: str) -> None:
    """Refuse a path that no file can be written to; what is there already is left alone.

    Args:
        path: None is never refused.
        option: that it was given to, for the message; empty for none.

    Raises:
        UsageError: for anything there but a regular file, or a path in a folder that is not there.
        HostError: when no file can be made there.
    """
    if path is None:
        return
    folder, what = path.absolute().parent, f"{option} {path}".strip()
    if path.is_dir():
        raise UsageError(f"{what}: that is a folder; give the name of a file")
    if not folder.is_dir():
        raise UsageError(f"{what}: there is no folder {folder}; make it, or write elsewhere")
    if path.exists() and not path.is_file():
        raise UsageError(f"{what}: that is no regular file; give the name of a file")
    require_files_in(folder, what, "change its rights, or write elsewhere")


def is_same_place(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to the same place, which need not be there; links that go in circles lead nowhere."""
    return os.path.realpath(one) == os.path.realpath(other)


def require_files_in(folder: Path, what: str, advice: str) -> None:
    """Refuse a folder that takes no new file.

    Args:
        folder: that is there.
        what: that is to be written, for the message.
        advice: what to do instead, likewise.

    Raises:
        HostError: when no file can be made there.
    """
    try:  # rights do not tell it all: a file system may be read-only, or take no files, as /proc
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HostError(f"{what}: {folder} may not be written ({error.strerror}); {advice}") from error
