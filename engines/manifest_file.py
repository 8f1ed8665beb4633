"""The manifest on disk: where it lies in a bundle, how it is read, what its absence means."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from trtc.engines.blobs import BLOBS, blobs_of
from trtc.engines.consistency import contradictions
from trtc.engines.errors import BundleError
from trtc.engines.files import open_regular
from trtc.engines.manifest_json import MAX_MANIFEST_BYTES, decode_manifest
from trtc.profiles import HostError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.manifest import Manifest

MANIFEST = "manifest.json"
WRITER_LOCK = ".trtc-writer"
READERS_LOCK = ".trtc-readers"


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a bundle; no blob is opened.

    Raises:
        UsageError: when nothing is there, or something else than a bundle.
        BundleError: for a bundle that is not whole, or not of a schema that this version reads.
        HostError: when reading is not allowed.
    """
    return manifest_from_bytes(path, read_manifest_bytes(path))


def manifest_from_bytes(path: Path, data: bytes) -> Manifest:
    """Decode the manifest of the bundle at ``path``, check what it says about files, and that its parts fit together.

    Raises:
        BundleError: for anything that is not a manifest of a schema that this version reads, or contradicts itself.
    """
    manifest = decode_manifest(data, str(path / MANIFEST))
    try:
        blobs_of(manifest)
    except BundleError as error:
        raise BundleError(f"{path / MANIFEST}: {error}") from error
    if wrong := next(contradictions(manifest), ""):
        raise BundleError(f"{path / MANIFEST}: {wrong}; rebuild the bundle")
    return manifest


def read_manifest_bytes(path: Path) -> bytes:
    """Read the bytes of a bundle's manifest, bounded and from a regular file.

    Raises:
        UsageError: when nothing is there, or something else than a bundle.
        BundleError: when the bundle there is not whole.
        HostError: when reading is not allowed.
    """
    where = path / MANIFEST
    try:
        with open(open_regular(where), "rb") as stream:  # noqa: PTH123 (a descriptor has no path)
            data = stream.read(MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(data) > MAX_MANIFEST_BYTES:
        raise BundleError(f"{where} has more than {MAX_MANIFEST_BYTES} bytes, so it is no manifest; rebuild the bundle")
    return data


def _unreadable(path: Path, error: OSError) -> UsageError | BundleError | HostError:
    """Say why a manifest could not be read."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return HostError(f"{path}: reading {MANIFEST} is not allowed; give this user the right to read the bundle")
    if not os.path.exists(path):  # noqa: PTH110 (Path.exists raises for names that are too long)
        return UsageError(f"{path}: there is nothing; give the folder of a bundle, or make one with trtc build")
    if not path.is_dir():
        return UsageError(f"{path} is a file, a bundle is a folder; make one with trtc build MODEL.onnx -o NAME.trtc")
    if error.errno == errno.ENOENT:
        if (path / WRITER_LOCK).exists() or (path / BLOBS).exists():
            return BundleError(f"{path} is half-written: {MANIFEST} is not there (yet); build it again")
        return UsageError(
            f"{path} is no bundle: it has no {MANIFEST}; make one with trtc build MODEL.onnx -o NAME.trtc"
        )
    kind = {errno.ELOOP: "a symlink", errno.EINVAL: "not a regular file"}.get(error.errno or 0, str(error.strerror))
    return BundleError(f"{path / MANIFEST}: {kind}; copy the bundle with real files (cp -rL) or rebuild it")
