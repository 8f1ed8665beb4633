"""Real models through bindings, as programs use them: state that stays bound, and outputs in memory of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime.compat import session_class_for

RATE, CHUNK, CONTEXT = 16000, 512, 64


def both(model: Any, bundle: Any, options: BuildOptions) -> tuple[Any, Any]:
    """Open a model on its bundle, and plain."""
    build(model, bundle, options)
    return session_class_for(bundle)(str(model)), onnxruntime.InferenceSession(str(model))


def listen(session: Any, samples: np.ndarray) -> np.ndarray:
    """Tell how likely each chunk is speech; the state goes around in values that the binding made."""
    chunk = np.zeros((1, CONTEXT + CHUNK), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("input", chunk)
    binding.bind_cpu_input("sr", np.array(RATE))
    state = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((2, 1, 128), np.float32))
    heard = []
    for start in range(0, samples.size - CHUNK + 1, CHUNK):
        chunk[:, :CONTEXT] = chunk[:, -CONTEXT:]
        chunk[:, CONTEXT:] = samples[start : start + CHUNK]
        binding.bind_ortvalue_input("state", state)
        for name in ("output", "stateN"):
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        output, state = binding.get_outputs()
        heard.append(output.numpy().copy())
    return np.concatenate(heard)


def test_a_voice_detector_whose_state_goes_around(silero_path, tmp_path, through):
    session, plain = both(silero_path, tmp_path / "s.trtc", BuildOptions(measure_s=0, verify_s=1))
    t = np.arange(2 * RATE) / RATE
    samples = (np.sin(2 * np.pi * 220 * t) * (t > 0.5) + 0.01 * np.cos(1.0 + 5000 * t)).astype(np.float32)
    found, wanted = listen(session, samples), listen(plain, samples)
    assert found.shape == (62, 1)
    assert np.ptp(wanted) > 1e-4
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    assert through(session) == []


PADDED = BuildOptions(
    shapes=ShapeOptions(dim=("batch_size=1..4",), buckets=("sequence_length=16,64",)),
    pads=("sequence_length", "batch_size"),
    fills=("input_ids=0", "attention_mask=0"),
    mode="bucket",
    measure_s=0,
    verify_s=1,
)
TOKENS, WHOLE = "onnx::Shape_422", "461"
"""Outputs of the encoder: one vector for each token, and one for the text."""


@pytest.mark.parametrize("options", [
    pytest.param(BuildOptions(measure_s=0, verify_s=1), id="exact"), pytest.param(PADDED, id="padded"),
])  # fmt: skip
def test_a_sentence_encoder_that_writes_to_the_callers_memory(minilm_path, tmp_path, through, options):
    session, plain = both(minilm_path, tmp_path / "m.trtc", options)
    rng = np.random.default_rng(3)
    for rows, length in [(1, 5), (2, 16), (1, 33), (1, 5)]:
        ids = rng.integers(1, 1000, (rows, length))
        mask = np.ones_like(ids)
        found = []
        for one in (session, plain):
            written = np.zeros((rows, length, 384), np.float32)
            binding = one.io_binding()
            for name, array in (("input_ids", ids), ("attention_mask", mask)):
                binding.bind_input(name, "cpu", 0, np.int64, array.shape, array.ctypes.data)
            binding.bind_output(WHOLE)
            binding.bind_output(TOKENS, "cpu", 0, np.float32, written.shape, written.ctypes.data)
            one.run_with_iobinding(binding)
            found.append([written, binding.copy_outputs_to_cpu()[0]])
        for ours, wanted in zip(*found, strict=True):
            assert np.abs(wanted).max() > 0.1
            np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-5 + 1e-4 * np.abs(wanted).max())
    assert through(session) == []
