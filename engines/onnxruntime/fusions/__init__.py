"""Rewrites of a graph that ONNX Runtime's optimizer leaves to do, for engines on the CPU.

Each is a file with ``run(model) -> int``. It matches exact structure, checks every constant, takes float32 only, and
leaves alone what other nodes read, and whatever lies in a branch or a loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from trtc.engines.onnxruntime.fusions import (
    before_conv,
    behind_conv,
    gelu,
    hard_sigmoid,
    layer_norm,
    no_ops,
    offset_behind_conv,
    one_hot,
    reshapes,
    softmax,
    table_rows,
)
from trtc.engines.onnxruntime.fusions.graph import forget, infer, reserve_names

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.engines.build import Fuse

__all__ = ["Fused", "fuse"]

PASSES = {
    "reshapes": reshapes.run,
    "one-hot": one_hot.run,
    "table-rows": table_rows.run,
    "offset-behind-conv": offset_behind_conv.run,
    "gelu": gelu.run,
    "softmax": softmax.run,
    "layer-norm": layer_norm.run,
}
"""Rewrites whose results stay as close to the model's as its operators round."""

FREE_PASSES = {
    "behind-conv": behind_conv.run,
    "hard-sigmoid": hard_sigmoid.run,
    "before-conv": before_conv.run,
    "layer-norm-by-squares": layer_norm.run_by_squares,
}
"""Rewrites that round elsewhere, which some models make large: those, too, stay within the tolerance of a build."""


MAX_INSIDE_BYTES = 2**30
"""New weights lie inside the file, and a protobuf holds 2 GiB at most: a model with more than this is left as it is."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A rewritten model.

    Attributes:
        path: of the model; external data lies where it lay.
        counts: how often each pass rewrote something, by its name.
    """

    path: Path
    counts: dict[str, int]


def fuse(source: Path, level: Fuse = "close") -> Fused | None:
    """Rewrite a model; None when nothing in it is to be rewritten.

    Args:
        source: a canonical model. The new one is written beside it, so that external data is found.
        level: which rewrites.
    """
    model = ir.load(source)
    counts = fuse_model(model, level)
    tensors = [value.const_value for value in model.graph.initializers.values()]
    inside = [t.nbytes for t in tensors if t is not None and not isinstance(t, ir.ExternalTensor)]
    if not counts or sum(inside) > MAX_INSIDE_BYTES:
        return None
    path = source.with_name(f"{source.stem}-fused.onnx")
    ir.save(model, path)
    return Fused(path, counts)


def fuse_model(model: ir.Model, level: Fuse = "close") -> dict[str, int]:
    """Rewrite a model where it is; returns how often each pass did."""
    declared = {value.name: value.shape for value in model.graph.outputs}
    counts: dict[str, int] = {}
    reserve_names(model.graph)
    _infer(model)
    # Without them more shapes are certain, and so more of them.
    while removed := no_ops.run(model):
        counts["no-ops"] = counts.get("no-ops", 0) + removed
        RemoveUnusedNodesPass()(model)
        _infer(model)
    for name, run in (PASSES if level == "close" else PASSES | FREE_PASSES).items():
        if count := run(model):
            counts[name] = count
            RemoveUnusedNodesPass()(model)
    # Values that were merged have other names; what was inferred is for here, not for the library.
    forget(model)
    for value in model.graph.outputs:
        value.shape = declared.get(value.name)
    if any(node.domain == "com.microsoft" for node in model.graph):
        model.opset_imports.setdefault("com.microsoft", 1)
    return counts


def _infer(model: ir.Model) -> None:
    infer(model)
    if known := reshapes.known_shapes(model):
        infer(model, known)
