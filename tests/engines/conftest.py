"""Tiny bundles: everything that a manifest needs, and blobs of any bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tiny_bundle import tiny_manifest

from trtc.engines.blobs import blob_path
from trtc.engines.manifest import BlobFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtc.engines.manifest import Manifest

Parts: TypeAlias = "tuple[Manifest, dict[str, Path]]"


@pytest.fixture
def make_parts(tmp_path: Path) -> Callable[..., Parts]:
    """Make a manifest and its source files: ``make_parts(name, *contents)``."""

    def make(name: str, *contents: bytes) -> Parts:
        files: list[BlobFile] = []
        sources: dict[str, Path] = {}
        folder = tmp_path / "sources" / name
        folder.mkdir(parents=True, exist_ok=True)
        for i, content in enumerate(contents):
            sha256 = hashlib.sha256(content).hexdigest()
            source = folder / f"{i}.bin"
            source.write_bytes(content)
            files.append(BlobFile(path=blob_path(sha256, ".bin"), size_bytes=len(content), sha256=sha256))
            sources[files[-1].path] = source
        return tiny_manifest(name, tuple(files)), sources

    return make
