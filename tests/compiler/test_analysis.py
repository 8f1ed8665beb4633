"""From declared options to a plan: what is settled before anything is built."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from trtc.compiler.analysis import analyse, read_declarations
from trtc.compiler.importer import load_model
from trtc.compiler.options import BuildOptions, Setting, Silent
from trtc.profiles import ModelError
from trtc.profiles.grammar import ShapeOptions


def analysed(tmp_path, nodes, dims, *texts):
    """Analyse ``x: float dims -> y`` with ``--dim`` texts."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = helper.make_empty_tensor_value_info("y")
    y.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(nodes, "g", [x], [y])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    model = load_model(path, work_folder=tmp_path / "work")
    options = BuildOptions(shapes=ShapeOptions(dim=texts))
    setting = Setting(options, tmp_path, 1, Silent())
    return analyse(model, read_declarations(model, options), setting)


def test_a_range_from_zero_is_kept_where_the_empty_size_runs(tmp_path):
    plan = analysed(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ["batch", 4], "batch=0..3").plan
    assert plan.ladder.profiles[0].ranges["batch"].min == 0


def test_a_range_from_zero_is_refused_where_the_empty_size_does_not_run(tmp_path):
    node = helper.make_node("ArgMax", ["x"], ["i"], axis=0, keepdims=0)
    cast = helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT)
    with pytest.raises(ModelError, match=r"batch: the range starts at 0.*--dim batch=1\.\.3"):
        analysed(tmp_path, [node, cast], ["batch", 4], "batch=0..3")


def test_an_open_range_starts_at_zero_only_where_the_empty_size_runs(tmp_path):
    relu = analysed(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ["batch", 4]).plan
    assert relu.ladder.profiles[0].ranges["batch"].min == 0
    node = helper.make_node("ArgMax", ["x"], ["i"], axis=0, keepdims=0)
    cast = helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT)
    (tmp_path / "other").mkdir()
    argmax = analysed(tmp_path / "other", [node, cast], ["batch", 4]).plan
    assert argmax.ladder.profiles[0].ranges["batch"].min == 1
