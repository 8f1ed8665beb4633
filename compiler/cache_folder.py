"""The folder of the build cache: made when it is missing, refused when others could have written to it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from trtc.engines.blobs import SHA256_TEXT
from trtc.engines.cachedir import CACHE_VARIABLE, cache_fault
from trtc.profiles import HostError

PARTS = ("entries", "records", "locks", "scratch")


def prepare_folder(folder: Path) -> str | None:
    """Make the cache folder; return why nothing can be written there, if so.

    Raises:
        HostError: when others could have put entries there: engines are run as this user.
    """
    if not folder.is_absolute():
        return f"no home folder is known for {folder}; set {CACHE_VARIABLE} to a folder that can be written"
    try:
        if not os.path.lexists(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_unsafe(folder)
        for name in PARTS:
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        if not os.access(folder / "locks", os.W_OK):
            return f"{folder} cannot be written; set {CACHE_VARIABLE} to a folder that can"
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror}); set {CACHE_VARIABLE} to a folder that can"
    return None


def _refuse_unsafe(folder: Path) -> None:
    if fault := cache_fault(folder):
        raise HostError(
            f"cache folder {folder} {fault}; engines from it run as this user, so only this user may write it: "
            f"set {CACHE_VARIABLE} to a folder of your own with mode 0700"
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
