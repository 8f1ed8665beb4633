"""Inputs that have a value in the file: before IR 4 they are no inputs, since then they are optional ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import listed

if TYPE_CHECKING:
    import onnx

_FIRST_OPTIONAL_IR = 4
"""ONNX IR specification: from version 4 on, an initializer need not be an input, and one that is has a default."""


def run(model: onnx.ModelProto) -> PassResult:
    """Drop inputs that are initializers where the IR version makes them constants."""
    values = {tensor.name for tensor in model.graph.initializer}
    doubled = [value.name for value in model.graph.input if value.name in values]
    if not doubled:
        return PassResult(model, changed=False)
    if model.ir_version >= _FIRST_OPTIONAL_IR:
        note = f"inputs with a default value, which may be left out: {listed(list(map(repr, doubled)))}"
        return PassResult(model, changed=False, notes=(note,))
    for i in reversed(range(len(model.graph.input))):
        if model.graph.input[i].name in values:
            del model.graph.input[i]
    return PassResult(model, changed=True)
