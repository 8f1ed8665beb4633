"""Which model is this: by the bytes of its file, and of the files beside it that a bundle names."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.source_digest import source_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtc.engines.manifest import ExternalPiece
    from trtc.runtime.compat.settings import KnownBundle

_MAX_MODEL_BYTES = 2**31 - 1
"""A protobuf is no larger."""
_CHUNK_BYTES = 2**20


def file_digest_of(model: object) -> str:
    """Return the SHA-256 of a model given as path or bytes; empty for anything that is no model file."""
    if isinstance(model, bytes):
        return hashlib.sha256(model).hexdigest()
    try:
        path = os.fspath(model)  # type: ignore[call-overload]
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 (bytes are paths as well)
            return ""
        with open(path, "rb") as file:  # noqa: PTH123 (as above)
            if os.fstat(file.fileno()).st_size > _MAX_MODEL_BYTES:
                return ""
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, TypeError, ValueError):
        return ""


def bundle_for(file_sha256: str, bundles: Iterable[KnownBundle]) -> KnownBundle | None:
    """Find the first bundle of a model file; one that does not name the file is found where the file is all."""
    alone = source_digest(bytes.fromhex(file_sha256), b"") if file_sha256 else ""
    for bundle in bundles:
        if file_sha256 and (bundle.file_sha256 == file_sha256 or bundle.source_sha256 == alone):
            return bundle
    return None


def has_external_data(model: object, file_sha256: str, source_sha256: str, pieces: Iterable[ExternalPiece]) -> bool:
    """Tell whether the files beside a model hold what a bundle was built from.

    Args:
        model: path or bytes of the model file.
        file_sha256: its digest.
        source_sha256: digest of the whole model.
        pieces: that the digest covers.
    """
    whole = hashlib.sha256()
    found = False
    folder = None if isinstance(model, bytes) else Path(os.fspath(model)).parent  # type: ignore[call-overload]
    try:
        for piece in pieces:
            if folder is None:
                return False
            whole.update(_digest_of_piece(folder / piece.location, piece))
            found = True
    except OSError:
        return False
    return source_digest(bytes.fromhex(file_sha256), whole.digest() if found else b"") == source_sha256


def _digest_of_piece(path: Path, piece: ExternalPiece) -> bytes:
    digest = hashlib.sha256()
    left = piece.stop - piece.start
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "no regular file")
        file.seek(piece.start)
        while left > 0 and (data := file.read(min(left, _CHUNK_BYTES))):
            digest.update(data)
            left -= len(data)
    return digest.digest()
