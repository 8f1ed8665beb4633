"""Where files that may be written, and lost, live: never in a bundle. And whether that folder may be trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_VARIABLE = "TRTC_CACHE_DIR"
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder; it need not exist.

    ``TRTC_CACHE_DIR`` if set, else ``trtc`` under ``XDG_CACHE_HOME`` (an absolute path, or it is ignored, as the XDG
    base directory specification asks), else ``~/.cache/trtc``; that path stays as it is for a user without a home.
    """
    if chosen := environ.get(CACHE_VARIABLE):
        return Path(os.path.abspath(chosen))  # noqa: PTH100 (resolve would follow a symlink that must be refused)
    base = environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = environ.get("HOME", "")
        base = f"{home}/.cache" if home.startswith("/") else os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(base) / "trtc"


def cache_fault(folder: Path) -> str:
    """Say why a folder must not be trusted with engines that run as this user; empty when it may be.

    Raises:
        OSError: the folder is not there or cannot be looked at.
    """
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "is a symlink"
    if not stat.S_ISDIR(status.st_mode):
        return "is not a folder"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}, not to this user ({os.geteuid()})"
    if status.st_mode & _OTHERS_MAY_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        return f"can be written by others (mode {mode:04o}); run chmod go-w on it if it is yours"
    return ""
