"""A model gives the same answer to the same inputs; one that draws random numbers can be compared with nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.compiler.onnx_types import all_nodes
from trtc.compiler.tolerance import Tolerance, compare_outputs
from trtc.engines.errors import EngineError
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.reference import Reference

_REPEATS = 4
"""A draw of few truth values may come out equal by chance; this often it does not."""
_DRAWING = ("RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "Dropout")


def require_repeatable(model: Model, reference: Reference, feeds: Mapping[str, Any], tolerance: Tolerance) -> None:
    """Run one request several times.

    Raises:
        ModelError: when its answers differ, naming the output and the nodes that draw.
    """
    try:
        first = reference.run(feeds)
        repeats = [reference.run(feeds) for _ in range(_REPEATS)]
    except EngineError:
        return  # Values were guessed, and these do not run: verification meets and tells that.
    for again in repeats:
        for name, seen in compare_outputs(again, first, tolerance).items():
            if not seen.passed:
                drawing = [n for n in all_nodes(model.proto.graph) if n.op_type.startswith(_DRAWING)]
                nodes = ", ".join(f"{node.op_type} node {node.name!r}" for node in drawing[:5]) or "an operator"
                raise ModelError(
                    f"output {name!r} differs between two runs of equal inputs, as {nodes} draws random numbers: "
                    "no engine can be compared with such a model; export it with the random part as an input"
                )
