"""Weights and bias of a convolution, with factors and offsets before and behind it worked in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.onnxruntime.fusions.graph import array, constant, is_op, user

if TYPE_CHECKING:
    import onnx_ir as ir
    from numpy.typing import NDArray

_BIAS = 2


@dataclass(frozen=True, slots=True)
class Weights:
    """Constants of one convolution.

    Attributes:
        kernel: float32 [outputs, inputs of a group, ...]; of a transposed convolution [inputs, outputs, ...].
        bias: float32 [outputs].
        axis: of the kernel that counts outputs.
    """

    kernel: NDArray[np.float32]
    bias: NDArray[np.float32]
    axis: int = 0

    @property
    def is_finite(self) -> bool:
        """Whether no product overflowed."""
        return bool(np.isfinite(self.kernel).all() and np.isfinite(self.bias).all())

    def then(self, factor: NDArray[np.float32], offset: NDArray[np.float32]) -> Weights:
        """Return those whose results are multiplied, and added to, channel by channel."""
        wide = factor.reshape([-1 if axis == self.axis else 1 for axis in range(self.kernel.ndim)])
        with np.errstate(over="ignore", invalid="ignore"):
            return Weights(self.kernel * wide, self.bias * factor + offset, self.axis)

    def after(self, factor: float, offset: float) -> Weights:
        """Return those that read an input before it was multiplied, and added to; none of it is padding."""
        axes = tuple(range(1, self.kernel.ndim))
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.kernel.sum(axis=axes, dtype=np.float64) * offset
            return Weights(self.kernel * np.float32(factor), (self.bias + sums).astype(np.float32))


def weights_of(conv: ir.Node) -> Weights | None:
    """Return the weights of a convolution that nobody shares; None for another node, and for other weights."""
    transposed = is_op(conv, "ConvTranspose") and conv.attributes.get_int("group", 1) == 1
    if not transposed and not is_op(conv, "Conv"):
        return None
    axis = 1 if transposed else 0
    kernel = array(conv.inputs[1])
    if kernel is None or kernel.dtype != np.float32 or user(conv.inputs[1]) is not conv:
        return None
    if len(conv.inputs) <= _BIAS or conv.inputs[_BIAS] is None:
        return Weights(kernel, np.zeros(kernel.shape[axis], np.float32), axis)
    bias = array(conv.inputs[_BIAS])
    return None if bias is None or bias.dtype != np.float32 else Weights(kernel, bias, axis)


def set_weights(conv: ir.Node, weights: Weights) -> None:
    """Give a convolution other weights."""
    conv.replace_input_with(1, constant(conv, "kernel", weights.kernel))
    if len(conv.inputs) <= _BIAS:
        conv.resize_inputs(_BIAS + 1)
    conv.replace_input_with(_BIAS, constant(conv, "bias", weights.bias))
