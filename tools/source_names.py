"""The two digests of a source as people read them: of the model file, and of all that a bundle was built from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest

CONTENT_DIGEST = "content digest: model file and external data"


def source_digests(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """Name the digests of a bundle's source, the one that ``sha256sum`` prints first.

    Returns:
        Name and digest of each. A bundle that does not hold the digest of the file has the other alone.
    """
    content = (CONTENT_DIGEST, manifest.source.sha256)
    if manifest.original is None:
        return (content,)
    return ("SHA-256 of the model file", manifest.original.file_sha256), content
