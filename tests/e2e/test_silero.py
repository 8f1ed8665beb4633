"""A voice detector: recurrent state, a scalar input, nested Ifs, and rows that are not the first axis of the state."""

from __future__ import annotations

import numpy as np
import pytest

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.runtime import load

STREAMS = [pytest.param((16000, 512, 64), id="16kHz"), pytest.param((8000, 256, 32), id="8kHz")]


def recorded(rate, seconds, seed=0):
    """A made-up signal, float32 [samples]: silence, a buzzing voice with three formants, noise, silence."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    voice = sum(
        np.sin(2 * np.pi * 120 * k * t) * np.exp(-(((120 * k - f) / 180) ** 2))
        for k in range(1, 25)
        for f in (500, 1500, 2500)
    )
    loud = ((t > 0.2 * seconds) & (t < 0.6 * seconds)) * (1 + np.sin(2 * np.pi * 4 * t)) / 2
    return (0.2 * voice * loud + 0.01 * rng.standard_normal(t.size)).astype(np.float32)


def streamed(run, rows, rate, samples, context):
    """Feed chunks with the tail of the chunk before, carrying the state; yields the outputs of each chunk."""
    state = np.zeros((2, rows.shape[0], 128), np.float32)
    tail = np.zeros((rows.shape[0], context), np.float32)
    for start in range(0, rows.shape[1] - samples + 1, samples):
        chunk = np.concatenate([tail, rows[:, start : start + samples]], axis=1)
        out = run({"input": chunk, "state": state, "sr": np.array(rate)})
        state, tail = out["stateN"], chunk[:, -context:]
        yield out


@pytest.fixture(scope="module")
def reference(plain, silero_path):
    return plain(silero_path)


@pytest.fixture(scope="module")
def bundle(silero_path, tmp_path_factory):
    """Built without any option but short budgets."""
    path = tmp_path_factory.mktemp("bundles") / "silero.trtc"
    return build(silero_path, path, BuildOptions(measure_s=0.0, verify_s=2.0))


@pytest.fixture(scope="module")
def padded_bundle(silero_path, tmp_path_factory):
    """Rows are padded to 4: axis 0 of the signal, axis 1 of the state."""
    shapes = ShapeOptions(dim=("input_0=1..4", "state_1=1..4", "input_1=576"))
    path = tmp_path_factory.mktemp("bundles") / "silero-rows.trtc"
    options = BuildOptions(shapes=shapes, pads=("input_0:rows",), mode="bucket", measure_s=0.0, verify_s=2.0)
    return build(silero_path, path, options)


def test_symbols_that_must_be_equal_are_one(bundle):
    signature = bundle.manifest.signature
    assert signature.inputs[0].dims == ("input_0", "input_1")
    assert signature.inputs[1].dims == (2, "input_0", 128)
    assert signature.inputs[2].dims == ()
    assert signature.outputs[1].dims == (2, "input_0", 128)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("rows", [1, 3])
def test_a_stream_with_carried_state_equals_the_model_chunk_by_chunk(
    bundle, reference, assert_equal_outputs, stream, rows
):
    rate, samples, context = stream
    signals = np.stack([recorded(rate, 1.5, seed) for seed in range(rows)])
    with load(bundle.path) as session:
        pairs = list(
            zip(
                streamed(session.run, signals, rate, samples, context),
                streamed(reference, signals, rate, samples, context),
                strict=True,
            )
        )
        for got, expected in pairs:
            assert_equal_outputs(session, got, expected)
    heard = [float(got["output"][0, 0]) for got, _ in pairs]
    assert len(heard) > 40
    # The state matters: the answers of one chunk differ along the stream.
    assert max(heard) - min(heard) > 0.01


@pytest.mark.parametrize("rate", [16000, np.int64(16000), [16000], np.array([16000])])
def test_the_scalar_input_is_a_scalar(bundle, rate):
    feeds = {"input": np.zeros((1, 576), np.float32), "state": np.zeros((2, 1, 128), np.float32), "sr": rate}
    with load(bundle.path) as session:
        if np.ndim(rate) == 0:
            assert session.run(feeds)["output"].shape == (1, 1)
        else:
            with pytest.raises(ValueError, match="'sr'"):
                session.run(feeds)


def test_rows_are_padded_along_the_second_axis_of_the_state(padded_bundle, reference, assert_equal_outputs):
    assert [e.accepted for e in padded_bundle.manifest.evidence if e.kind == "rows"] == [True]
    with load(padded_bundle.path) as session:
        for rows in (1, 2, 3, 4):
            assert session.explain({"input_0": rows, "input_1": 576}).run_sizes == {"input_0": 4, "input_1": 576}
            signals = np.stack([recorded(16000, 0.4, seed) for seed in range(rows)])
            ours = streamed(session.run, signals, 16000, 512, 64)
            theirs = streamed(reference, signals, 16000, 512, 64)
            for got, expected in zip(ours, theirs, strict=True):
                assert_equal_outputs(session, got, expected)


def test_an_empty_batch_is_refused_where_the_library_would_end_the_process(bundle):
    assert bundle.manifest.ladder.profiles[0].ranges["input_0"].min == 1  # else the next lines would end this process
    feeds = {"input": np.zeros((0, 576), np.float32), "state": np.zeros((2, 0, 128), np.float32), "sr": 16000}
    with load(bundle.path) as session, pytest.raises(ValueError, match="input_0=0"):
        session.run(feeds)
