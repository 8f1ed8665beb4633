"""The folder of the build cache: where it is, and whether it may be trusted."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.blobs import SHA256_TEXT
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER_VARIABLE = "TRTC_CACHE_DIR"
PARTS = ("entries", "records", "locks", "scratch")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the user's build cache is.

    ``TRTC_CACHE_DIR``, else ``$XDG_CACHE_HOME/trtc`` (ignored when relative, as the XDG base directory
    specification demands), else ``~/.cache/trtc``; that path stays as it is for a user without a home.
    """
    if chosen := environ.get(FOLDER_VARIABLE):
        return Path(os.path.abspath(chosen))  # noqa: PTH100 (resolve would follow a symlink that must be refused)
    base = environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = environ.get("HOME", "")
        base = f"{home}/.cache" if home.startswith("/") else os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(base) / "trtc"


def prepare_folder(folder: Path) -> str | None:
    """Make the cache folder; return why nothing can be written there, if so.

    Raises:
        HostError: when others could have put entries there: engines are run as this user.
    """
    if not folder.is_absolute():
        return f"no home folder is known for {folder}; set {FOLDER_VARIABLE} to a folder that can be written"
    try:
        if not os.path.lexists(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_unsafe(folder)
        for name in PARTS:
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        if not os.access(folder / "locks", os.W_OK):
            return f"{folder} cannot be written; set {FOLDER_VARIABLE} to a folder that can"
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}); set {FOLDER_VARIABLE} to a folder that can"
    return None


def _refuse_unsafe(folder: Path) -> None:
    status = folder.lstat()
    fault = ""
    if stat.S_ISLNK(status.st_mode):
        fault = "is a symlink"
    elif not stat.S_ISDIR(status.st_mode):
        fault = "is not a folder"
    elif status.st_uid != os.geteuid():
        fault = f"belongs to user {status.st_uid}, not to this user ({os.geteuid()})"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        fault = (
            f"can be written by others (mode {stat.S_IMODE(status.st_mode):04o}); run chmod go-w on it if it is yours"
        )
    if fault:
        raise HostError(
            f"cache folder {folder} {fault}; engines from it run as this user, so only this user may write it: "
            f"set {FOLDER_VARIABLE} to a folder of your own with mode 0700"
        )


def keys_in(folder: Path) -> list[str]:
    """List the names in a folder that are keys, whatever their suffix; empty when it cannot be read."""
    try:
        return sorted(name for name in os.listdir(folder) if SHA256_TEXT.match(name.partition(".")[0]))  # noqa: PTH208
    except OSError:
        return []


def size_on_disk_bytes(folder: Path) -> int:
    """Sum the sizes of the files below a folder, in bytes; what vanishes meanwhile counts nothing."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(base) / name).lstat().st_size
    return total
