"""What a builder of GPU engines can be told. Each default is written here, once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import Literal, TypeAlias

HardwareCompatibility: TypeAlias = Literal["none", "ampere+", "same-compute-capability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderOptions:
    """Options of TensorRT's builder; None and False leave its own defaults.

    Attributes:
        workspace_bytes: most memory that one layer may take for scratch.
        optimization_level: 0 (fast build) to 5 (long search); None for the builder's default, 3.
        version_compatible: the engine runs with other versions of TensorRT, through its lean runtime.
        hardware_compatibility: the engine runs on other GPUs than the one that builds.
        strip_weights: leave weights out of the engine.
        tf32: let float32 products keep 10 bits of mantissa, which is the builder's default and not ours.
        timing_cache: file with measured kernels, so that builds choose alike; it is read, and never written.
    """

    workspace_bytes: int | None = None
    optimization_level: int | None = None
    version_compatible: bool = False
    hardware_compatibility: HardwareCompatibility = "none"
    strip_weights: bool = False
    tf32: bool = False
    timing_cache: Path | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Flags of the command that were given, as they are typed."""
        return tuple(FLAGS[f.name] for f in fields(self) if getattr(self, f.name) != f.default)


FLAGS = {
    "workspace_bytes": "--workspace",
    "optimization_level": "--optimization-level",
    "version_compatible": "--version-compatible",
    "hardware_compatibility": "--hardware-compatibility",
    "strip_weights": "--strip-weights",
    "tf32": "--tf32",
    "timing_cache": "--timing-cache",
}
"""How each option is typed."""
