"""The null backend: shapes without numbers."""

from __future__ import annotations

import numpy as np

from trtc.engines.layout import plan_layout
from trtc.engines.memory import array_at, host_slot
from trtc.engines.null.build import build_engine
from trtc.engines.null.load import NullEngine
from trtc.engines.signature import Signature, TensorSpec


def test_placed_outputs_become_zero_and_late_ones_are_empty():
    outputs = (
        TensorSpec("y", "float", ("n",)),
        TensorSpec("late", "int64", (2, None)),
        TensorSpec("words", "string", ("n",)),
        TensorSpec("list", "seq(tensor(float))", None),
    )
    signature = Signature((TensorSpec("x", "float", ("n",)),), outputs)
    layout = plan_layout(signature, {"n": 3})
    slot = host_slot(layout.size_bytes)
    y = array_at(slot.buffer, layout.outputs["y"])
    y[...] = 7
    engine = NullEngine(signature)
    call = engine.prepare(layout, slot)
    assert (y == 7).all()
    call.enqueue()
    call.cancel()
    late = call.wait()
    assert (y == 0).all()
    assert (late["late"].shape, late["late"].dtype) == ((0, 0), np.int64)
    assert (late["words"].shape, late["words"].dtype) == ((0,), np.dtype(object))
    assert late["list"] == []
    late.clear()
    assert set(call.wait()) == {"late", "words", "list"}
    engine.close()


def test_nothing_is_built():
    built = build_engine(None)
    assert (built.entry, built.files, built.precision) == ("", {}, "none")
