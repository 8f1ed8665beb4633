"""What a backend's ``build.py`` takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING

from trtc.engines.builder_options import BuilderOptions
from trtc.engines.manifest import Requirements  # noqa: TC001
from trtc.engines.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.signature import Signature
    from trtc.profiles import Ladder


def _unheard(text: str) -> None:
    """Take what a builder tells, where nobody listens."""
    del text


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One engine to build.

    Attributes:
        model_path: the canonical model; its external data lies beside it.
        folder: an empty private folder for what is built.
        signature: inputs and outputs with their relations.
        ladder: the profiles that the engine must serve.
        threads: that the builder may use.
        options: of the backend, by name.
        target: what it is built for.
        builder: what the builder was told, for backends that have one.
        shape_values: for inputs whose values decide shapes: the lowest, the likely and the highest value.
        tell: told how far the builder is, such as ``profile 3 of 8``.
    """

    model_path: Path
    folder: Path
    signature: Signature
    ladder: Ladder
    threads: int = 1
    options: dict[str, str] = field(default_factory=dict)
    target: Target = Target("cpu", "onnxruntime")
    builder: BuilderOptions = BuilderOptions()
    shape_values: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    tell: Callable[[str], None] = _unheard


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """What a backend built.

    Attributes:
        entry: bundle path of the file that the backend opens; empty when it needs none.
        files: bundle path to the built file, which has the same name and can be opened where it lies. Bundle paths
            are ``blobs/<sha256><suffix>``.
        requirements: what a host must have.
        precision: such as ``float32``.
        options: what was in force, for the manifest.
        scratch_bytes: memory that the library needs beside the slot, by profile, where it could tell without running.
        notes: what a person should know.
    """

    entry: str
    files: dict[str, Path]
    requirements: Requirements
    precision: str
    options: dict[str, str] = field(default_factory=dict)
    scratch_bytes: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
