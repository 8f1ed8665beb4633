"""What lies in a cache folder: entries, their records, and which of them go when there is no room.

Layout of the folder::

    entries/<key>/          a bundle
    records/<key>.json      its record; modified at the time of the last use
    locks/<key>             held alone by a builder, shared by whoever copies the entry
    scratch/<key>/          what the builder is making
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import msgspec

from trtc.compiler.cache_folder import keys_in, size_on_disk_bytes
from trtc.engines.files import lock, unlock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What lies beside an entry."""

    manifest_sha256: str
    model_sha256: str
    targets: tuple[str, ...]
    build_s: float
    notes: tuple[str, ...] = ()


class Entries:
    """The entries of a cache folder. The caller holds the lock of a key; ``evict`` takes those of what it removes.

    Attributes:
        folder: of the cache.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entry(self, key: str) -> Path:
        """Return where the bundle of a key lies."""
        return self.folder / "entries" / key

    def record(self, key: str) -> Path:
        """Return where its record lies."""
        return self.folder / "records" / f"{key}.json"

    def lock_file(self, key: str) -> Path:
        """Return the file to lock."""
        return self.folder / "locks" / key

    def scratch(self, key: str) -> Path:
        """Return the folder that its builder works in."""
        return self.folder / "scratch" / key

    def discard(self, key: str) -> None:
        """Remove an entry; its record first, so that a half-removed entry is never used."""
        with contextlib.suppress(OSError):
            self.record(key).unlink(missing_ok=True)
            entry = self.entry(key)
            if entry.is_symlink() or entry.is_file():
                entry.unlink()
            else:
                shutil.rmtree(entry, ignore_errors=True)

    def evict(self, max_bytes: int) -> None:
        """Remove the entries that were not used for the longest time until the rest fits. Held ones stay.

        The caller holds the entry that it just wrote, so that one stays too.
        """
        sizes = {name: size_on_disk_bytes(self.folder / "entries" / name) for name in keys_in(self.folder / "entries")}
        scratch = frozenset(keys_in(self.folder / "scratch"))
        leftovers = {key for key in scratch.union(sizes) if not self.record(key).exists()}
        self._remove_scratch(scratch - leftovers)
        excess = sum(sizes.values()) - max_bytes
        for key in (*leftovers, *(path.stem for path in self.by_use())):
            if excess <= 0 and key not in leftovers:
                break
            held = lock(self.lock_file(key), "alone", wait=False)
            if held is None:
                continue
            try:
                if key in leftovers and self.record(key).exists():
                    continue  # Its builder has finished since.
                self.discard(key)
                shutil.rmtree(self.scratch(key), ignore_errors=True)
                self.lock_file(key).unlink()
                excess -= sizes.pop(key, 0)
            finally:
                unlock(held)

    def by_use(self) -> list[Path]:
        """Return the records, the one that was not used for the longest time first."""
        used: list[tuple[int, Path]] = []
        for name in keys_in(self.folder / "records"):
            with contextlib.suppress(OSError):
                path = self.folder / "records" / name
                used.append((path.stat().st_mtime_ns, path))
        return [path for _, path in sorted(used)]

    def _remove_scratch(self, keys: Iterable[str]) -> None:
        """Remove what builders left that were killed after their entry was finished."""
        for key in keys:
            held = lock(self.lock_file(key), "alone", wait=False)
            if held is not None:
                shutil.rmtree(self.scratch(key), ignore_errors=True)
                unlock(held)


def read_record(path: Path) -> Record | None:
    """Read a record; None when there is none, or none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
