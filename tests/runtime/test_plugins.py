"""Libraries of plug-ins at load: code that runs only where the caller allows it, after its digest was checked.

On the simulator, with engines that TensorRT for RTX really built. A file stands for the library; the simulator opens
those that a test put into its store. What real registries say to real libraries is in ``tests/engines/tensorrt``.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from onnx import TensorProto

from trtc.engines.bundle import open_engine, read_manifest, write_bundle
from trtc.engines.manifest import BlobFile
from trtc.engines.opening import Opening
from trtc.engines.tensorrt import load as backend
from trtc.runtime import Arena, BundleError, EngineError, HostError, load

ENGINE_KINDS = ["rtx"]
CODE = b"a library of plug-ins"
DIGEST = hashlib.sha256(CODE).hexdigest()
BLOB = f"blobs/{DIGEST}.so"


@pytest.fixture
def bundle(make_bundle, graphs, engine_store, tmp_path):
    """A bundle whose engine needs a library, which the simulator would open."""
    value = graphs.value
    model = graphs.model([graphs.node("Add", ["x", "x"], ["y"])], [value("x", ("n", 5))], [value("y", ("n", 5))])
    path = make_bundle(model, profiles=({"n": (1, 4)},))
    manifest = read_manifest(path)
    (record,) = manifest.engines
    engine = (path / record.entry).read_bytes()
    engine_store.add(engine, replace(engine_store.find(engine), plugins=frozenset([DIGEST])))
    engine_store.libraries.add(DIGEST)
    (tmp_path / "library").write_bytes(CODE)
    files = (*record.files, BlobFile(path=BLOB, size_bytes=len(CODE), sha256=DIGEST))
    changed = msgspec.structs.replace(record, files=files, plugins=(BLOB,))
    write_bundle(path, msgspec.structs.replace(manifest, engines=(changed,)), {BLOB: tmp_path / "library"})
    return path


@pytest.fixture
def opened(monkeypatch):
    """The libraries that were handed to TensorRT."""
    seen = []
    real = backend.load_plugins

    def note(registry, libraries):
        paths = list(libraries)
        seen.extend(path.name for path in paths)
        return real(registry, paths)

    monkeypatch.setattr(backend, "load_plugins", note)
    return seen


def session(path, **options):
    return load(path, slots=1, arena=Arena(), **options)


def test_an_engine_with_plugins_runs_where_they_are_allowed(bundle, opened):
    with session(bundle, allow_plugins=True) as loaded:
        assert (loaded.run({"x": np.ones((3, 5), np.float32)})["y"] == 2).all()
    assert opened == [f"{DIGEST}.so"]


def test_without_a_word_nothing_of_a_bundle_is_run_as_code(bundle, opened):
    with pytest.raises(HostError) as caught:
        session(bundle)
    assert f"it brings libraries of plug-ins (SHA-256 {DIGEST}), which are code" in str(caught.value)
    assert "load(..., allow_plugins=True), or --allow-plugins" in str(caught.value)
    assert opened == []


def test_the_backend_refuses_as_well(bundle, opened):
    with open_engine(bundle, lambda manifest: manifest.engines[0]) as reader:
        manifest = reader.manifest
        wanted = Opening(files=reader.files, record=reader.record, signature=manifest.signature, ladder=manifest.ladder)
        with pytest.raises(HostError, match="it brings libraries of plug-ins"):
            backend.load_engine(wanted)
    assert opened == []


@pytest.mark.parametrize("verify", [True, False], ids=["checked", "digests-skipped"])
def test_an_altered_library_is_refused_before_it_is_opened(bundle, opened, verify):
    (bundle / BLOB).write_bytes(CODE[::-1])
    with pytest.raises(BundleError, match=rf"{DIGEST}\.so has SHA-256 .*, the manifest says {DIGEST}"):
        session(bundle, allow_plugins=True, verify=verify)
    assert opened == []


def test_a_missing_library_is_refused(bundle, opened):
    (bundle / BLOB).unlink()
    with pytest.raises(BundleError, match=rf"{DIGEST}\.so is missing"):
        session(bundle, allow_plugins=True)
    assert opened == []


def test_a_link_in_place_of_the_library_is_refused(bundle, opened, tmp_path):
    (bundle / BLOB).unlink()
    (bundle / BLOB).symlink_to(tmp_path / "library")
    with pytest.raises(BundleError, match=rf"{DIGEST}\.so is a symlink"):
        session(bundle, allow_plugins=True)
    assert opened == []


def test_a_library_that_tensorrt_refuses_is_an_error_with_its_words(bundle, engine_store):
    engine_store.libraries.discard(DIGEST)
    with pytest.raises(EngineError, match=rf"loading the plug-in library {DIGEST}\.so: TensorRT refuses: getCreators"):
        session(bundle, allow_plugins=True)


def test_two_sessions_open_a_library_each_for_itself(bundle, opened):
    with session(bundle, allow_plugins=True), session(bundle, allow_plugins=True):
        assert opened == [f"{DIGEST}.so"] * 2


def test_a_pickled_session_remembers_that_they_were_allowed(bundle):
    with session(bundle, allow_plugins=True) as loaded, pickle.loads(pickle.dumps(loaded)) as again:  # noqa: S301
        assert again.run({"x": np.ones((1, 5), np.float32)})["y"].dtype == np.float32


def test_an_engine_without_plugins_needs_no_word(open_bundle, identity_model):
    loaded = open_bundle(identity_model(TensorProto.FLOAT), profiles=({"n": (1, 4)},))
    assert loaded.run({"x": np.ones((2, 2), np.float32)})["y"].shape == (2, 2)
