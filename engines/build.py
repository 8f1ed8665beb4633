"""What a backend's ``build.py`` takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING

from trtc.engines.manifest import Requirements  # noqa: TC001

if TYPE_CHECKING:
    from trtc.engines.signature import Signature
    from trtc.engines.target import Target
    from trtc.profiles import Ladder


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One engine to build.

    Attributes:
        target: what it is built for.
        model_path: the canonical model; its external data lies beside it.
        folder: an empty private folder for what is built.
        signature: inputs and outputs with their relations.
        ladder: the profiles that the engine must serve.
        threads: that the builder may use.
        options: of the backend, by name.
    """

    target: Target
    model_path: Path
    folder: Path
    signature: Signature
    ladder: Ladder
    threads: int = 1
    options: dict[str, str] = field(default_factory=dict)


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
    """

    entry: str
    files: dict[str, Path]
    requirements: Requirements
    precision: str
    options: dict[str, str] = field(default_factory=dict)
