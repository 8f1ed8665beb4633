"""An offset behind a convolution without a bias is its bias: the sum that a bias begins or ends is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.onnxruntime.fusions.behind_conv import fold
from trtc.engines.onnxruntime.fusions.graph import is_op

if TYPE_CHECKING:
    import onnx_ir as ir


def run(model: ir.Model) -> int:
    """Fold them; returns how many."""
    return sum(fold(node, offsets_only=True) for node in list(model.graph) if is_op(node, "Conv", "ConvTranspose"))
