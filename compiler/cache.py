"""The build cache: finished bundles by the content that they were declared from.

An entry is a bundle folder, written and checked by the same code as any bundle. Beside it lies a small record: the
digest of its manifest, and how long the build took. ``cache_entries.py`` says where they lie.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trtc.compiler.cache_entries import Entries, Record, read_record
from trtc.compiler.cache_folder import prepare_folder
from trtc.compiler.cache_key import key_of
from trtc.engines.blobs import SHA256_TEXT, blobs_of
from trtc.engines.bundle import bundle_size_bytes, write_bundle
from trtc.engines.cachedir import CACHE_VARIABLE, cache_dir
from trtc.engines.errors import BundleError
from trtc.engines.files import lock, sync_folder, unlock, write_file
from trtc.engines.manifest_file import manifest_from_bytes, read_manifest_bytes
from trtc.profiles import HostError, TrtcError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trtc.engines.files import Access
    from trtc.engines.manifest import Manifest

__all__ = ["BuildCache", "Built", "CacheOutcome", "key_of"]

DEFAULT_MAX_BYTES = 20 * 2**30
SIZE_VARIABLE = "TRTC_CACHE_MAX_BYTES"


@dataclass(frozen=True, slots=True)
class Built:
    """What a build made.

    Attributes:
        manifest: of the bundle.
        sources: the file of each of its blobs, by the blob's path.
        notes: what was found on the way; kept with the entry, so that a hit tells them too.
        begun_s: when the work for it began, by ``time.monotonic``; None where that is when the cache asked for it.
    """

    manifest: Manifest
    sources: Mapping[str, Path]
    notes: tuple[str, ...] = ()
    begun_s: float | None = None


@dataclass(frozen=True, slots=True)
class CacheOutcome:
    """How a bundle came to be.

    Attributes:
        manifest: of the bundle that now lies at the destination.
        hit: whether it came from the cache.
        build_s: seconds that the build took until its bundle was written, now or when the entry was made.
        notes: what a person should know, such as why the cache was not used.
    """

    manifest: Manifest
    hit: bool
    build_s: float
    notes: tuple[str, ...] = ()


class BuildCache:
    """Builds each key once, and copies it to where it is wanted.

    Threads and processes may share a folder; they find each other by locks in it. One of 0 bytes keeps nothing.
    """

    def __init__(self, folder: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._entries = Entries(folder)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> BuildCache:
        """Return the user's cache: ``TRTC_CACHE_DIR``, or ``trtc`` in the user's cache folder.

        Raises:
            UsageError: when ``TRTC_CACHE_MAX_BYTES`` is no number of bytes.
        """
        size = environ.get(SIZE_VARIABLE, "")
        if size and not (size.isascii() and size.isdigit()):
            raise UsageError(f"{SIZE_VARIABLE}={size!r} is no number of bytes; write digits only, such as 20000000000")
        return cls(cache_dir(environ), int(size) if size else DEFAULT_MAX_BYTES)

    def get_or_build(
        self,
        key: str,
        destination: Path,
        build: Callable[[Path], Built],
        *,
        on_wait: Callable[[], None] | None = None,
    ) -> CacheOutcome:
        """Put the bundle of a key at a path: from the cache, or by building it.

        Of several processes that ask for one key, one builds and the others wait for it. Every blob and the
        manifest of an entry are checked while they are copied; an entry that fails is discarded and built again.

        Args:
            key: from ``key_of``.
            destination: path of the bundle.
            build: called with an empty private folder, which is removed afterwards.
            on_wait: called before waiting for another process that is building this key.

        Raises:
            HostError: when other users could have written to the cache folder, or the destination cannot be
                written. A cache that cannot be written is no error: a note says so.
            TrtcError: whatever ``build`` or writing the destination raises.
        """
        if SHA256_TEXT.match(key) is None:
            raise UsageError(f"cache key {key!r}; give 64 lower-case hexadecimal digits, as key_of returns")
        problem = prepare_folder(self.folder)
        notes = [] if problem is None else [f"the build cache is not used for new builds: {problem}"]
        with self._locked(key, "shared", on_wait), contextlib.suppress(BundleError):
            if found := self._copy_hit(key, destination, notes):
                return found
        with self._locked(key, "alone", on_wait) as locked:
            try:
                if found := self._copy_hit(key, destination, notes):
                    return found
            except BundleError as error:
                notes.append(f"a cache entry was damaged and is built again: {error}")
                self._entries.discard(key)
            if problem is None and not locked:
                notes.append(f"the build cache is not used for new builds: {self.folder} has no file locks")
            return self._build(key, destination, build, notes, store=problem is None and locked)

    def last_duration_s(self, key: str) -> float | None:
        """Return how many seconds the build of this key took, or None when it is not known."""
        record = read_record(self._entries.record(key))
        return None if record is None else record.build_s

    def like_duration_s(self, model_sha256: str, target: str) -> float | None:
        """Return how many seconds the last build of this model for this target took, whatever its flags."""
        for path in reversed(self._entries.by_use()):
            record = read_record(path)
            if record is not None and record.model_sha256 == model_sha256 and target in record.targets:
                return record.build_s
        return None

    @contextlib.contextmanager
    def _locked(self, key: str, access: Access, on_wait: Callable[[], None] | None) -> Iterator[bool]:
        """Hold the lock of a key; yields False where there are no locks (such as on a read-only file system)."""
        held = None
        with contextlib.suppress(OSError):
            path = self._entries.lock_file(key)
            held = lock(path, access, wait=False)
            if held is None:
                if on_wait is not None:
                    on_wait()
                held = lock(path, access)
        try:
            yield held is not None
        finally:
            unlock(held)

    def _copy_hit(self, key: str, destination: Path, notes: list[str]) -> CacheOutcome | None:
        """Copy an entry to its destination; None when there is none.

        Raises:
            BundleError: when the entry is damaged.
        """
        entry = self._entries.entry(key)
        if not os.path.lexists(entry):
            return None
        record = read_record(self._entries.record(key))
        if record is None:
            raise BundleError(f"{entry} has no record; its builder was stopped")
        try:
            data = read_manifest_bytes(entry)
        except (UsageError, HostError) as error:
            raise BundleError(str(error)) from error
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 != record.manifest_sha256:
            raise BundleError(f"the manifest of {entry} has SHA-256 {sha256}, its record says {record.manifest_sha256}")
        manifest = manifest_from_bytes(entry, data)
        write_bundle(destination, manifest, {path: entry / path for path in blobs_of(manifest)})
        with contextlib.suppress(OSError):
            os.utime(self._entries.record(key))
        return CacheOutcome(manifest, hit=True, build_s=record.build_s, notes=(*record.notes, *notes))

    def _build(
        self, key: str, destination: Path, build: Callable[[Path], Built], notes: list[str], *, store: bool
    ) -> CacheOutcome:
        """Build into a private folder, write the bundle, then keep a copy."""
        with self._scratch(key, in_cache=store) as folder:
            start_s = time.monotonic()
            built = build(folder)
            write_bundle(destination, built.manifest, built.sources)
            build_s = time.monotonic() - (start_s if built.begun_s is None else built.begun_s)
            if store and (problem := self._store(key, built, build_s)) is not None:
                notes.append(f"the build was not kept in the cache: {problem}")
        return CacheOutcome(built.manifest, hit=False, build_s=build_s, notes=(*built.notes, *notes))

    @contextlib.contextmanager
    def _scratch(self, key: str, *, in_cache: bool) -> Iterator[Path]:
        """Give an empty folder: in the cache (one file system with the entry) where that can be written."""
        folder = self._entries.scratch(key)
        try:
            if in_cache:
                shutil.rmtree(folder, ignore_errors=True)  # A killed builder left it; we hold its lock.
                folder.mkdir(mode=0o700)
            else:
                folder = Path(tempfile.mkdtemp(prefix="trtc-build-"))
        except OSError as error:
            raise HostError(
                f"a build needs a temporary folder, and {folder.parent} gives none ({error.strerror}); "
                f"free space, or set {CACHE_VARIABLE if in_cache else 'TMPDIR'} to a folder that can be written"
            ) from error
        try:
            yield folder
        except Exception as error:
            if folder.is_dir():
                raise
            raise HostError(
                f"{folder}, where this build worked, was removed meanwhile; build again, and leave {folder.parent} "
                f"alone while builds run (or set {CACHE_VARIABLE if in_cache else 'TMPDIR'} to another folder)"
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _store(self, key: str, built: Built, build_s: float) -> str | None:
        """Keep a build; return why it was not kept, if so."""
        if not self.max_bytes:
            return None
        size_bytes = bundle_size_bytes(built.manifest)
        if size_bytes > self.max_bytes:
            return f"it has {size_bytes} bytes, the cache may hold {self.max_bytes} ({SIZE_VARIABLE})"
        entry = self._entries.entry(key)
        try:
            write_bundle(entry, built.manifest, built.sources)
            record = Record(
                manifest_sha256=hashlib.sha256(read_manifest_bytes(entry)).hexdigest(),
                model_sha256=built.manifest.source.sha256,
                targets=tuple(engine.target for engine in built.manifest.engines),
                build_s=build_s,
                notes=built.notes,
            )
            # By way of the scratch folder: what a killed builder leaves there is found and removed.
            written = self._entries.scratch(key) / ".record"
            write_file(written, msgspec.json.encode(record))
            written.replace(self._entries.record(key))
            sync_folder(self.folder / "records")
        except (TrtcError, OSError) as error:
            self._entries.discard(key)
            return str(error)
        with contextlib.suppress(OSError):
            self._entries.evict(self.max_bytes)
        return None
