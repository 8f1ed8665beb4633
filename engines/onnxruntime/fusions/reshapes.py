"""A Reshape to a computed shape of which all but one size are known needs no computing: that one is -1.

The nodes that computed the shape then have no reader. Sizes of 0 keep their meaning: the one size that may be 0 makes
the tensor empty, and -1 finds it again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.onnxruntime.fusions.graph import array, constant, dims, is_op

if TYPE_CHECKING:
    import onnx_ir as ir

    from trtc.engines.onnxruntime.fusions.graph import Dims


def run(model: ir.Model) -> int:
    """Replace the shapes; returns how many."""
    found = 0
    for node in list(model.graph):
        if is_op(node, "Reshape") and array(node.inputs[1]) is None and not node.attributes.get_int("allowzero", 0):
            shape = dims(node.outputs[0])
            if shape is not None and _is_found_by_count(shape):
                sizes = [size if isinstance(size, int) else -1 for size in shape]
                node.replace_input_with(1, constant(node, "shape", np.array(sizes, np.int64)))
                found += 1
    return found


def known_shapes(model: ir.Model) -> dict[ir.Value, Dims]:
    """Return shapes that shape inference misses: the -1 of a Reshape whose other sizes multiply to those that it reads.

    Only symbols of inputs are told: those have the same name after the next inference.
    """
    symbols = {size for value in model.graph.inputs for size in dims(value) or () if isinstance(size, str)}
    found: dict[ir.Value, Dims] = {}
    for node in model.graph:
        target = array(node.inputs[1]) if is_op(node, "Reshape") else None
        source = dims(node.inputs[0]) if target is not None else None
        if target is None or source is None or (target == 0).any() or (target == -1).sum() != 1:
            continue
        unknown = [size for size in source if not isinstance(size, int)]
        rest = math.prod(size for size in source if isinstance(size, int))
        if len(unknown) == 1 and unknown[0] in symbols and rest == math.prod(int(size) for size in target if size > 0):
            found[node.outputs[0]] = tuple(unknown[0] if size == -1 else int(size) for size in target)
    return found


def _is_found_by_count(shape: Dims) -> bool:
    unknown = [size for size in shape if not isinstance(size, int)]
    return len(unknown) == 1 and 0 not in shape
