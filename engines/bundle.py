"""Bundles on disk: read one, check one engine of one, write one.

The manifest is the commit point. A writer puts blobs in place first and replaces ``manifest.json`` last, so that a
reader sees the old bundle or the new one, never a mixture. ``docs/bundle-format.md`` describes the protocol.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtc.engines.blobs import BLOB_NAME, BLOBS, blobs_of, check_blobs, copy_blob, holds_blob
from trtc.engines.errors import BundleError
from trtc.engines.files import (
    Step,
    host_error,
    lock,
    no_step,
    remove_temporaries,
    replacing,
    sync_folder,
    unlock,
    write_file,
)
from trtc.engines.manifest_file import (
    MANIFEST,
    READERS_LOCK,
    WRITER_LOCK,
    manifest_from_bytes,
    read_manifest,
    read_manifest_bytes,
)
from trtc.engines.manifest_json import encode_manifest
from trtc.engines.value import Value
from trtc.profiles import TrtcError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from trtc.engines.manifest import BlobFile, EngineRecord, Manifest

__all__ = ["BundleReader", "bundle_size_bytes", "open_engine", "read_manifest", "write_bundle"]

_OURS = frozenset([MANIFEST, BLOBS, WRITER_LOCK, READERS_LOCK])
_ATTEMPTS = 8
"""Readers that cannot lock lose a race once per replacement; nobody replaces a bundle this often in a row."""


class BundleReader(Value, frozen=True):
    """One engine of a bundle whose files were checked; valid inside the ``open_engine`` block.

    Attributes:
        path: the bundle's folder.
        manifest: as it was when the files were checked.
        record: the engine that was chosen.
        files: the engine's files by their paths in the manifest. Open them inside the block: afterwards a
            replaced bundle may lose them (what is open or mapped by then stays).
    """

    path: Path
    manifest: Manifest
    record: EngineRecord
    files: dict[str, Path]


def bundle_size_bytes(manifest: Manifest) -> int:
    """Return the bytes of a bundle on disk: its manifest and each blob once."""
    return len(encode_manifest(manifest)) + sum(blob.size_bytes for blob in blobs_of(manifest).values())


@contextlib.contextmanager
def open_engine(
    path: Path, choose: Callable[[Manifest], EngineRecord], *, verify: bool = True
) -> Iterator[BundleReader]:
    """Check the files of one engine and keep them there while the block runs.

    No writer removes a file of this bundle inside the block. On a file system that cannot lock (such as one that
    is read-only) the check may meet a bundle that is being replaced; it then starts over with the new manifest.

    Args:
        path: the bundle's folder.
        choose: picks the engine; called again when the manifest was replaced meanwhile.
        verify: False checks sizes only.

    Raises:
        UsageError: when nothing is there, or something else than a bundle.
        BundleError: for a bundle that is not whole, or files that are not what the manifest says.
        HostError: when reading is not allowed.
    """
    held = _lock_for_reading(path)
    try:
        yield _check_engine(path, choose, verify=verify)
    finally:
        unlock(held)


def write_bundle(path: Path, manifest: Manifest, sources: Mapping[str, Path], *, on_step: Step = no_step) -> None:
    """Write a bundle, or replace one, in a single step for whoever reads it.

    Blobs are copied to temporary names, checked against the manifest in the same pass, made durable and renamed;
    blobs that are there already are kept; the manifest is replaced last. Blobs that the new manifest does not
    name are then removed, unless a reader is there: the next writer removes those. Writers wait for each other.

    Args:
        path: the bundle's folder; made, with its parents, where it is missing.
        manifest: of the new bundle.
        sources: the file to copy for each path of a blob; one that the bundle already holds may be left out.
        on_step: told each step just after it was done.

    Raises:
        UsageError: when something that is not a bundle is at ``path`` (it is left as it is), or a source is not
            named by the manifest.
        BundleError: when the manifest is not valid, or a source is missing or is not what the manifest says.
        HostError: when the file system refuses; it says how many bytes were needed. After any error before the
            manifest was replaced, the old bundle is whole and nothing new is left.
    """
    data = encode_manifest(manifest)
    blobs = blobs_of(manifest_from_bytes(path, data))
    if unknown := sorted(sources.keys() - blobs.keys()):
        raise UsageError(f"source {unknown[0]!r} is no file of the manifest (its files: {sorted(blobs)})")
    folder = path.resolve()
    needed_bytes = len(data) + sum(blob.size_bytes for blob in blobs.values())
    try:
        with _writing(folder) as state:
            try:
                on_step("lock")
                _put_blobs(folder, blobs, sources, state.added, on_step)
                write_file(folder / MANIFEST, data, on_step)
            except BaseException:
                if not _committed(folder, data):
                    _undo(folder, state)
                raise
            if state.new:
                sync_folder(folder.parent)
            _collect(folder, frozenset(blobs), on_step)
    except OSError as error:
        raise host_error(error, path, needed_bytes) from error


def _check_engine(path: Path, choose: Callable[[Manifest], EngineRecord], *, verify: bool) -> BundleReader:
    data = read_manifest_bytes(path)
    for _ in range(_ATTEMPTS):
        manifest = manifest_from_bytes(path, data)
        record = choose(manifest)
        try:
            files = check_blobs(path, record.files, digests=verify or bool(record.plugins))
        except BundleError:
            again = read_manifest_bytes(path)
            if again == data:
                raise
            data = again
        else:
            return BundleReader(path, manifest, record, files)
    raise BundleError(f"{path} was replaced {_ATTEMPTS} times while it was read; load it when its writers are done")


def _lock_for_reading(path: Path) -> int | None:
    """Keep writers from removing blobs; None where that is not possible, which is no error."""
    try:
        return lock(path / READERS_LOCK, "shared", create=False)
    except OSError:
        return None


@dataclass(slots=True)
class _Writing:
    """What a writer must take back when it fails: blobs that it added, and a folder that it made."""

    new: bool
    made: bool
    added: list[Path] = field(default_factory=list)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[_Writing]:
    """Be the only writer of a folder. Leftovers of killed writers are gone when the block starts."""
    made = not folder.exists()
    while True:
        _refuse_foreign(folder)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            held = lock(folder / WRITER_LOCK, "alone")
            break
        except FileNotFoundError:
            continue  # A writer that failed has removed the new folder again.
    try:
        blobs = folder / BLOBS
        blobs.mkdir(exist_ok=True)
        if blobs.is_symlink():
            raise UsageError(f"{blobs} is a symlink, a bundle holds its own files; remove it or write elsewhere")
        unlock(lock(folder / READERS_LOCK, "shared"))
        remove_temporaries(folder)
        remove_temporaries(blobs)
        yield _Writing(new=not (folder / MANIFEST).exists(), made=made)
    finally:
        unlock(held)


def _refuse_foreign(folder: Path) -> None:
    """Refuse to write where something else is. A folder is ours with our lock file, a manifest of ours, or empty."""
    try:
        names = set(os.listdir(folder))  # noqa: PTH208 (names are all that is needed)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise UsageError(f"{folder}: a file is in the way, a bundle is a folder; choose another name") from error
    if WRITER_LOCK in names or not names:
        return
    if MANIFEST in names:
        with contextlib.suppress(BundleError):
            read_manifest(folder)
            return
    others = sorted(names - _OURS)[:3] or sorted(names)[:3]
    raise UsageError(
        f"{folder} is not a bundle, it holds {', '.join(map(repr, others))}; nothing was changed: "
        "choose another name or an empty folder"
    )


def _put_blobs(
    folder: Path, blobs: dict[str, BlobFile], sources: Mapping[str, Path], added: list[Path], on_step: Step
) -> None:
    """Bring every blob into place, durably; paths that did not exist before are noted in ``added``."""
    for blob in blobs.values():
        if holds_blob(folder, blob):
            continue
        if blob.path not in sources:
            raise BundleError(f"{blob.path} has no source and is not in {folder}; give the file that it is copied from")
        target = folder / blob.path
        if not os.path.lexists(target):
            added.append(target)
        with replacing(target, on_step) as fd:
            copy_blob(sources[blob.path], fd, blob)
    sync_folder(folder / BLOBS)
    sync_folder(folder)
    on_step("sync blobs")


def _committed(folder: Path, data: bytes) -> bool:
    """Whether the new manifest stands: from then on its blobs must stay, whatever fails later."""
    try:
        return read_manifest_bytes(folder) == data
    except TrtcError:
        return False


def _undo(folder: Path, state: _Writing) -> None:
    """Take back what a failed writer did. Errors here would hide the one that counts."""
    with contextlib.suppress(OSError):
        for path in state.added:
            path.unlink(missing_ok=True)
        if state.new:
            (folder / BLOBS).rmdir()
            (folder / READERS_LOCK).unlink(missing_ok=True)
            (folder / WRITER_LOCK).unlink()
        if state.made:
            folder.rmdir()


def _collect(folder: Path, named: frozenset[str], on_step: Step) -> None:
    """Remove blobs that the manifest does not name, unless a reader may hold them."""
    with contextlib.suppress(OSError):
        held = lock(folder / READERS_LOCK, "alone", wait=False)
        if held is None:
            return
        try:
            for name in sorted(os.listdir(folder / BLOBS)):  # noqa: PTH208 (names are all that is needed)
                if BLOB_NAME.match(name) and f"{BLOBS}/{name}" not in named:
                    (folder / BLOBS / name).unlink()
                    on_step(f"remove {name}")
        finally:
            unlock(held)
