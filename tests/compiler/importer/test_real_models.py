"""Trained models load, and answer as before."""

import numpy as np
import onnxruntime
import pytest

FEEDS = {
    "minilm_path": lambda rng: {
        "input_ids": rng.integers(0, 30522, (2, 9)),
        "attention_mask": np.ones((2, 9), np.int64),
    },
    "ppocr_rec_path": lambda rng: {"x": rng.random((1, 3, 48, 64), np.float32)},
    "ppocr_det_path": lambda rng: {"x": rng.random((1, 3, 64, 96), np.float32)},
    "ppocr_cls_path": lambda rng: {"x": rng.random((2, 3, 48, 192), np.float32)},
    "silero_path": lambda rng: {
        "input": rng.random((2, 576), np.float32),
        "state": np.zeros((2, 2, 128), np.float32),
        "sr": np.array(16000),
    },
    "magika_path": lambda rng: {"bytes": rng.integers(0, 257, (2, 2048)).astype(np.int32)},
}


@pytest.mark.parametrize("name", FEEDS)
def test_a_trained_model_answers_as_before(imported, run, request, name):
    path = request.getfixturevalue(name)
    loaded = imported(path)
    feeds = FEEDS[name](np.random.default_rng(0))
    before, after = run(path.read_bytes(), feeds), run(loaded, feeds)
    assert [loaded.public_outputs.get(key, key) for key in after] == list(before)
    for old, new in zip(before.values(), after.values(), strict=True):
        assert np.array_equal(old, new)


def test_metadata_survives(imported, ppocr_rec_path):
    metadata = {entry.key: entry.value for entry in imported(ppocr_rec_path).proto.metadata_props}
    session = onnxruntime.InferenceSession(str(ppocr_rec_path), providers=["CPUExecutionProvider"])
    assert metadata["character"] == session.get_modelmeta().custom_metadata_map["character"]
