"""Rewritten graphs in bundles: faster forms of the same model, and the model as it is where one would differ."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from trtc.compiler import BuildOptions, EngineDiffersError, ShapeOptions, build, engine_job
from trtc.compiler.options import Silent
from trtc.engines.onnxruntime import build as backend
from trtc.engines.onnxruntime.fusions import Fused
from trtc.runtime import load

QUICK = BuildOptions(measure_s=0.0, verify_s=2.0, use_cache=False)


class Notes(Silent):
    """Keeps what a build notes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def operators_of(report) -> list[str]:
    (record,) = report.manifest.engines
    return [node.op_type for node in onnx.load(report.path / record.entry, load_external_data=False).graph.node]


def test_the_engine_of_magika_looks_up_rows_and_agrees_with_plain_onnx_runtime(magika_path, tmp_path, plain):
    report = build(magika_path, tmp_path / "magika.trtc", QUICK)
    operators = operators_of(report)
    assert operators.count("Gather") == 1
    assert not {"Equal", "Tanh", "Exp", "MatMul"} & set(operators)
    rng = np.random.default_rng(0)
    assert {"Gather", "Clip", "Softmax", "FastGelu"} <= set(operators)
    with load(report.path) as session:
        # 256 stands for no byte; nothing keeps a program from sending ids that have no row at all.
        for low, high in [(0, 257), (0, 128), (-3, 400), (256, 257)]:
            feeds = {"bytes": rng.integers(low, high, (3, 2048), np.int32)}
            (expected,) = plain(magika_path)(feeds).values()
            (got,) = session.run(feeds).values()
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
            assert (got.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_a_bundle_says_what_was_rewritten(ppocr_cls_path, tmp_path):
    for fuse, said in {"none": None, "close": None, "all": "behind-conv 35, hard-sigmoid 18"}.items():
        report = build(ppocr_cls_path, tmp_path / f"{fuse}.trtc", replace(QUICK, fuse=fuse))
        assert report.manifest.engines[0].options.get("fusions") == said


def wrong(source, _level):
    """Rewrite to something else: all weights are larger."""
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if len(tensor.dims) > 1 and tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))
    return saved(model, source)


def refused(source, _level):
    """Rewrite to what ONNX Runtime has no operator for."""
    model = onnx.load(source)
    model.graph.node[0].op_type = "NoSuchOperator"
    return saved(model, source)


def saved(model, source):
    path = source.with_name("other.onnx")
    onnx.save(model, path)
    return Fused(path, {"wrong": 1})


@pytest.mark.parametrize("rewritten", [wrong, refused])
def test_a_rewritten_graph_that_differs_or_is_refused_leaves_the_model_as_it_is(
    magika_path, tmp_path, plain, monkeypatch, rewritten
):
    monkeypatch.setattr(backend, "fuse", rewritten)
    notes = Notes()
    report = build(magika_path, tmp_path / "magika.trtc", QUICK, notes)
    (record,) = report.manifest.engines
    assert "fusions" not in record.options
    assert record.verified
    assert all(v.passed for v in record.verification if v.ran)
    assert any(
        "is built again without rewriting the graph: the engine for target cpu differs" in t for t in notes.texts
    ) == (rewritten is wrong)
    named = {path.name for path in (report.path / "blobs").iterdir()}
    assert named == {file.path.removeprefix("blobs/") for file in record.files}
    feeds = {"bytes": np.zeros((1, 2048), np.int32)}
    with load(report.path) as session:
        np.testing.assert_allclose(session.run(feeds)["target_label"], plain(magika_path)(feeds)["target_label"], 1e-4)


def test_open_shapes_are_served_by_a_rewritten_graph(magika_path, tmp_path):
    options = BuildOptions(shapes=ShapeOptions(dim=("unk__214=0:2:8",)), measure_s=0.0, verify_s=2.0, use_cache=False)
    with load(build(magika_path, tmp_path / "magika.trtc", options).path) as session:
        assert session.run({"bytes": np.empty((0, 2048), np.int32)})["target_label"].shape == (0, 214)


def test_an_engine_that_differs_by_its_layout_is_built_again_without_it(ppocr_cls_path, tmp_path, monkeypatch):
    """A convolution in blocks of channels rounds otherwise; where that is too far off, the blocks are left out."""
    real = engine_job.verify_engine
    efforts = []

    def differs_with_layout(engine, *rest):
        found = real(engine, *rest)
        efforts.append(len(found))
        return tuple(msgspec.structs.replace(v, passed=False) for v in found) if len(efforts) == 1 else found

    monkeypatch.setattr(engine_job, "verify_engine", differs_with_layout)
    notes = Notes()
    report = build(ppocr_cls_path, tmp_path / "cls.trtc", replace(QUICK, fuse="none"), notes)
    (record,) = report.manifest.engines
    assert record.options["optimization"] == "extended"
    assert record.verified
    assert any("is built again without ONNX Runtime's own layouts of tensors" in text for text in notes.texts)
    graph = onnx.load(report.path / record.entry, load_external_data=False).graph
    assert not {node.op_type for node in graph.node} & {"ReorderInput", "ReorderOutput"}
    monkeypatch.undo()
    full = build(ppocr_cls_path, tmp_path / "full.trtc", replace(QUICK, fuse="none"))
    graph = onnx.load(full.path / full.manifest.engines[0].entry, load_external_data=False).graph
    assert {node.op_type for node in graph.node} & {"ReorderInput", "ReorderOutput"}


def test_an_engine_that_differs_however_it_is_built_is_an_error(ppocr_cls_path, tmp_path, monkeypatch):
    real = engine_job.verify_engine
    monkeypatch.setattr(
        engine_job, "verify_engine",
        lambda *given: tuple(msgspec.structs.replace(v, passed=False) for v in real(*given)),
    )  # fmt: skip
    notes = Notes()
    with pytest.raises(EngineDiffersError, match="the engine for target cpu differs"):
        build(ppocr_cls_path, tmp_path / "cls.trtc", replace(QUICK, fuse="all"), notes)
    assert sum("is built again without" in text for text in notes.texts) == 2
    assert not (tmp_path / "cls.trtc").exists()
