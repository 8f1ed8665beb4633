"""A build of one blob for tests of the build cache, and what a cache and a bundle then hold."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace
from tiny_bundle import tiny_manifest

from trtc.compiler.cache import BuildCache, Built, key_of
from trtc.engines.blobs import blob_path
from trtc.engines.bundle import open_engine
from trtc.engines.manifest import BlobFile

if TYPE_CHECKING:
    from pathlib import Path


MODEL = "0" * 64


class Builder:
    """Builds a bundle of one blob, and counts how often it was asked to."""

    def __init__(self, content: bytes = b"engine", model_sha256: str = MODEL) -> None:
        self.content = content
        self.folders: list[Path] = []
        sha256 = hashlib.sha256(content).hexdigest()
        file = BlobFile(path=blob_path(sha256, ".bin"), size_bytes=len(content), sha256=sha256)
        tiny = tiny_manifest("tiny", (file,))
        self.manifest = replace(tiny, source=replace(tiny.source, sha256=model_sha256))

    def __call__(self, folder: Path) -> Built:
        self.folders.append(folder)
        source = folder / "engine.bin"
        source.write_bytes(self.content)
        return Built(self.manifest, {self.manifest.engines[0].files[0].path: source})


def contents(bundle: Path) -> list[bytes]:
    with open_engine(bundle, lambda manifest: manifest.engines[0]) as reader:
        return [file.read_bytes() for file in reader.files.values()]


def key(name: str) -> str:
    return key_of({"name of this test's content": name})


def entries(cache: BuildCache) -> set[str]:
    return {path.name for path in (cache.folder / "entries").iterdir()}


def used_at(cache: BuildCache, name: str, seconds: int) -> None:
    os.utime(cache.folder / "records" / f"{key(name)}.json", (seconds, seconds))
