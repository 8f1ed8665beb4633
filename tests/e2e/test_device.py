"""A real model from the machine that builds to the one that has a GPU: build, verify there, load, run.

The engine is really built by TensorRT for RTX; the GPU is the simulator.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
from click.testing import CliRunner

from simulator import BuiltModel, EngineStore, Machine
from trtc.compiler import BuildOptions, build
from trtc.profiles.grammar import ShapeOptions
from trtc.runtime import Arena, HostError, load
from trtc.tools.verify import verify

tensorrt_rtx = pytest.importorskip("tensorrt_rtx", reason="pip install 'trtc[rtx]'")
LENGTHS = (8, 32)


@pytest.fixture
def bundle(minilm_path, tmp_path):
    options = BuildOptions(
        shapes=ShapeOptions(dim=("batch_size=1..4",), buckets=(f"sequence_length={LENGTHS[0]},{LENGTHS[1]}",)),
        pads=("sequence_length", "batch_size"),
        fills=("input_ids=0", "attention_mask=0"),
        targets=("rtx:sm89",),
        measure_s=0.0,
        verify_s=2.0,
    )
    return build(minilm_path, tmp_path / "minilm.trtc", options).path


@pytest.fixture
def gpu(bundle, minilm_path, monkeypatch):
    store = EngineStore()
    (plan,) = (bundle / "blobs").glob("*.plan")
    names = ("input_ids", "attention_mask")
    lows = (1, LENGTHS[0] + 1)
    ends = [dict.fromkeys(names, ((1, low), (4, high))) for low, high in zip(lows, LENGTHS, strict=True)]
    store.add(plan.read_bytes(), BuiltModel(minilm_path.read_bytes(), tuple(ends)))
    machine = Machine(tensorrt_rtx, store)
    yield lambda: machine.install(monkeypatch)
    gc.collect()
    machine.leave()


def test_an_engine_is_verified_where_a_gpu_is_and_serves_there(bundle, gpu, minilm_path):
    with pytest.raises(HostError, match="no NVIDIA driver"):
        load(bundle)
    gpu()
    with pytest.raises(HostError, match="never compared with its model; run `trtc verify` here"):
        load(bundle)
    done = CliRunner().invoke(verify, [str(bundle), "--model", str(minilm_path), "--verify-seconds", "2"])
    assert done.exit_code == 0, done.output
    import onnxruntime

    plain = onnxruntime.InferenceSession(str(minilm_path), providers=["CPUExecutionProvider"])
    names = [output.name for output in plain.get_outputs()]
    rng = np.random.default_rng(0)
    with load(bundle, slots=1, arena=Arena()) as session:
        for batch, length in ((1, 5), (4, 8), (3, 20), (2, 8), (4, 32), (1, 5)):
            ids = rng.integers(1000, 2000, (batch, length))
            feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            found = session.run(feeds)
            for name, right in zip(names, plain.run(names, feeds), strict=True):
                np.testing.assert_allclose(found[name], right, atol=1e-4)
        device = session.stats.device
        assert (device.contexts, device.graphs) == (2, 2), "one of each for both buckets, whatever was asked for"
