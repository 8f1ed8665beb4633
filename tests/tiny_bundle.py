"""The least manifest that is whole: one input, one output, one profile, one engine of the null backend."""

from __future__ import annotations

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
