"""The passes that check a model and bring it into the form that ``trtc.compiler.model.Model`` promises.

Order matters: versions before anything that depends on them, checks before work, functions before everything that
walks one graph, sorting before visibility.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes import (
    control,
    definitions,
    functions,
    limits,
    node_names,
    operators,
    order,
    output_types,
    outputs,
    overridable,
    shadowing,
    strip,
    symbols,
    tensors,
    text,
    value_types,
    versions,
)
from trtc.compiler.passes.result import Pass, PassResult

if TYPE_CHECKING:
    import onnx

__all__ = ["PIPELINE", "Pass", "PassResult", "run_passes"]

PIPELINE: tuple[Pass, ...] = (
    text.run,
    limits.run,
    versions.run,
    strip.run,
    tensors.run,
    value_types.run,
    functions.run,
    operators.run,
    overridable.run,
    definitions.run,
    order.run,
    shadowing.run,
    control.run,
    outputs.run,
    output_types.run,
    node_names.run,
    symbols.run,
)


def run_passes(model: onnx.ModelProto, pipeline: tuple[Pass, ...] = PIPELINE) -> PassResult:
    """Run passes one after another.

    Args:
        model: owned by the passes from here on.
        pipeline: in the order to run.

    Raises:
        ModelError: from the first pass that refuses.
    """
    changed = False
    notes: list[str] = []
    for one in pipeline:
        result = one(model)
        model = result.model
        changed = changed or result.changed
        notes += result.notes
    return PassResult(model, changed, tuple(notes))
