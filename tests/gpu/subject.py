"""What is run on the GPU: a sentence encoder with three lengths and two batch ranges, for the GPU that is there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler import BuildOptions, build
from trtc.engines.target import RTX_CAPABILITIES
from trtc.profiles.grammar import ShapeOptions

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.gpu import Gpu

LENGTHS = (32, 64, 128)
BATCH = 8
TOLERANCE = 1e-3
"""Of the largest value: float32 stays float32, but kernels sum in another order."""


def targets_for(gpu: Gpu) -> dict[str, str]:
    """Return the targets of this GPU, each with the reason why it cannot be built here; empty where it can."""
    capability, rtx = gpu.compute_capability, ""
    if capability not in RTX_CAPABILITIES:
        rtx = (
            f"TensorRT for RTX builds no kernels for {capability} ({gpu.name}), only for {', '.join(RTX_CAPABILITIES)}"
        )
    elif find_spec("tensorrt_rtx") is None:
        rtx = "tensorrt_rtx is not installed: pip install 'trtc[rtx]'"
    full = "" if find_spec("tensorrt") else "tensorrt is not installed: pip install 'trtc[tensorrt]'"
    return {f"rtx:{capability}": rtx, "tensorrt": full}


def build_bundle(model: Path, output: Path, targets: tuple[str, ...]) -> Path:
    """Build the encoder for the targets; every engine that can run here is compared with the model."""
    options = BuildOptions(
        shapes=ShapeOptions(
            dim=(f"batch_size=1..{BATCH}",), buckets=(f"sequence_length={','.join(map(str, LENGTHS))}",)
        ),
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        targets=targets,
        mode="bucket",
        measure_s=0.0,
        verify_s=20.0,
        atol=TOLERANCE,
        rtol=TOLERANCE,
    )
    return build(model, output, options).path


def feeds(batch: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Token numbers that every vocabulary has, and a mask."""
    ids = np.random.default_rng(seed).integers(1000, 2000, (batch, length))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def mixed_sizes(count: int, seed: int = 0) -> list[tuple[int, int]]:
    """Batches and lengths that a service could see, over all buckets."""
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(1, BATCH + 1)), int(rng.integers(5, LENGTHS[-1] + 1))) for _ in range(count)]
