"""Tiny bundles: everything that a manifest needs, and blobs of any bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import pytest

from trtc.engines.blobs import blob_path
from trtc.engines.manifest import (
    BlobFile,
    BuildRecord,
    EngineRecord,
    Execution,
    Manifest,
    Requirements,
    Source,
)
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Ladder, Profile, Range

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Parts: TypeAlias = "tuple[Manifest, dict[str, Path]]"


def tiny_manifest(name: str, files: tuple[BlobFile, ...]) -> Manifest:
    return Manifest(
        schema="1.0",
        source=Source(sha256="0" * 64, size_bytes=10, ir_version=10, opsets={"": 17}),
        build=BuildRecord(key="1" * 64, trtc="0.1.0", libraries={}, machine={}, options={}),
        signature=Signature((TensorSpec("x", "float", ("batch", 4)),), (TensorSpec("y", "float", ("batch", 4)),)),
        ladder=Ladder((Profile("p0", {"batch": Range(0, None, None)}),)),
        execution=Execution(),
        engines=(
            EngineRecord(
                name="e0",
                backend="null",
                target="null",
                precision="none",
                entry=files[0].path if files else "",
                files=files,
                requirements=Requirements(),
                verified=False,
            ),
        ),
        metadata={"name": name},
    )


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
