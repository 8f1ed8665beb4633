"""Files that a command writes beside its results: looked at before work begins, written in one step at the end."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from typing import TYPE_CHECKING

from trtc.engines.files import host_error, write_file
from trtc.profiles import HostError, UsageError
from trtc.tools.extras import install

if TYPE_CHECKING:
    from pathlib import Path


PLOTS = "pip install 'trtc[report]'"


def require_page(path: Path | None) -> None:
    """Refuse ``--html`` where the page cannot be drawn or written; None is no page.

    Raises:
        HostError: when matplotlib is not installed, or rights are missing.
        UsageError: as ``require_writable``.
    """
    require_writable(path, "--html")
    if path is not None and find_spec("matplotlib") is None:
        raise HostError(f"--html needs matplotlib, which is not installed; {install(PLOTS)}")


def require_writable(path: Path | None, option: str) -> None:
    """Refuse a path that cannot be written.

    Raises:
        UsageError: for anything there but a regular file, or a path in a folder that is not there.
        HostError: when no file can be made there.
    """
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"{option} {path}: that is a folder; give the name of a file")
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {folder}; make it, or write elsewhere")
    if path.exists() and not path.is_file():
        raise UsageError(f"{option} {path}: that is no regular file; give the name of a file")
    try:  # rights do not tell it all: a file system may be read-only, or take no files, as /proc
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise HostError(
            f"{option} {path}: {folder} may not be written ({error.strerror}); change its rights, or write elsewhere"
        ) from error


def write_text(path: Path, data: bytes) -> None:
    """Replace a file in one step.

    Raises:
        HostError: when it cannot be written.
    """
    try:
        write_file(path, data)
    except OSError as error:
        raise host_error(error, path, len(data)) from error
