"""One request through an engine: what is compared is what later calls of a prepared route will give."""

from __future__ import annotations

import numpy as np

from trtc.compiler.execute import run_call
from trtc.engines.memory import array_at
from trtc.engines.route import plan_route
from trtc.engines.signature import Signature, TensorSpec

SIGNATURE = Signature((TensorSpec("x", "float", ("N",)),), (TensorSpec("y", "float", ("N",)),))


class Forgetful:
    """An engine that answers right once for each prepared call, and writes nothing afterwards."""

    def prepare(self, bucket, slot):
        self.runs = 0
        self.x, self.y = array_at(slot.buffer, bucket.inputs["x"]), array_at(slot.buffer, bucket.outputs["y"])
        return self

    def enqueue(self):
        self.runs += 1
        if self.runs == 1:
            self.y[...] = -self.x

    def wait(self):
        return {}


def test_an_engine_whose_later_runs_write_nothing_does_not_look_right():
    sizes = {"N": 3}
    engine = Forgetful()
    got = run_call(engine, plan_route(SIGNATURE, [], sizes, sizes), {"x": np.ones(3, np.float32)})
    assert engine.runs == 2
    assert not np.any(got["y"] == -1)
