"""ONNX Runtime's GPU providers on a real GPU: right in every bucket, captured or not, from several callers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import onnxruntime
import pytest

from gpu.subject import BATCH, LENGTHS, TOLERANCE, build_bundle, feeds, mixed_sizes
from trtc.engines.bundle import write_bundle
from trtc.engines.distributions import find_distribution
from trtc.engines.manifest import Execution
from trtc.engines.manifest_file import read_manifest
from trtc.engines.onnxruntime.providers import PROVIDERS
from trtc.runtime import Arena, load


@pytest.fixture(scope="module", params=["cuda", "ort-tensorrt"])
def path(request, gpu, minilm_path, tmp_path_factory):
    """A bundle with an engine for one provider; its name is that of the target."""
    del gpu
    if find_distribution("onnxruntime-gpu") is None:
        pytest.skip("onnxruntime-gpu is not installed: pip install 'trtc[gpu]'")
    provider = PROVIDERS[{"cuda": "cuda", "ort-tensorrt": "tensorrt"}[request.param]]
    if provider not in onnxruntime.get_available_providers():
        pytest.skip(f"this build of ONNX Runtime has no {provider}")
    if request.param == "ort-tensorrt" and find_distribution("tensorrt") is None:
        pytest.skip("the TensorRT provider needs TensorRT: pip install tensorrt")
    return build_bundle(minilm_path, tmp_path_factory.mktemp("ort") / f"{request.param}.trtc", (request.param,))


@pytest.fixture(params=["bucket", "exact"], ids=["captured", "not-captured"])
def session(request, path):
    """The engine with CUDA graphs, which buckets get, or without them."""
    manifest = read_manifest(path)
    (record,) = manifest.engines
    record = msgspec.structs.replace(record, execution=Execution(mode=request.param, slots=4, threads=1))
    write_bundle(path, msgspec.structs.replace(manifest, engines=(record,)), {})
    with load(path, arena=Arena()) as opened:
        yield opened


def assert_near(found, expected):
    for name, right in expected.items():
        assert found[name].shape == right.shape
        assert float(np.abs(found[name] - right).max()) <= TOLERANCE * (1 + float(np.abs(right).max())), name


@pytest.mark.parametrize("length", [5, *LENGTHS, *(size - 7 for size in LENGTHS)])
def test_every_bucket_equals_the_cpu_call_after_call(session, reference, length):
    for batch in (1, 3, BATCH):
        for seed in range(4):  # the first runs plain, the second captures, the others replay
            given = feeds(batch, length, seed)
            assert_near(session.run(given), reference(given))


def test_callers_on_several_slots_get_their_own_answers(session, reference):
    requests = [feeds(batch, length, i) for i, (batch, length) in enumerate(mixed_sizes(40))]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(session.run, requests * 2))
    for given, outputs in zip(requests * 2, found, strict=True):
        assert_near(outputs, reference(given))


def test_the_engine_was_verified_where_it_was_built(path):
    (record,) = read_manifest(path).engines
    assert record.verified
    assert record.requirements.library_version == onnxruntime.__version__
