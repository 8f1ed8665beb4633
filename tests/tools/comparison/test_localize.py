"""Where two graphs part: the search ends at a node whose inputs agree and whose output does not."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

from trtc.engines import EngineError
from trtc.profiles import HostError
from trtc.tools.comparison.graphs import Graph
from trtc.tools.comparison.localize import Limits, Pair, localize
from trtc.tools.comparison.rules import Rule
from trtc.tools.output import Progress

# A long branch beside a short one, so that order alone tells little; w is changed by the tests.
LONG = """<ir_version: 10, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 1}> {
    a0 = Relu (x)
    b0 = Mul (x, w)
    a1 = Exp (a0)
    b1 = Abs (b0)
    a2 = Sqrt (a1)
    b2 = Sqrt (b1)
    a3 = Neg (a2)
    y = Add (a3, b2)
}"""
FEEDS = {"x": np.array([[1, 2], [3, 4]], np.float32)}
QUIET = Progress(quiet=True)


def graph(name, folder, text=LONG, **edits):
    """Parse a graph; ``edits`` replace words of the text."""
    for old, new in edits.items():
        text = text.replace(old.replace("_", " "), new)
    return Graph(name, folder, onnx.parser.parse_model(text), 1)


def limits(memory_bytes=2**30):
    return Limits(Rule(1e-5, 1e-4), memory_bytes)


@pytest.mark.parametrize(
    ("edit", "tensor", "inputs"),
    [
        pytest.param({"{1,_1}": "{1, 1.5}"}, "b0", (), id="weight-of-a-branch"),
        pytest.param({"Neg": "Ceil"}, "a3", ("a2",), id="late-in-the-other-branch"),
        pytest.param({"Exp": "Softplus"}, "a1", ("a0",), id="in-the-middle"),
        pytest.param({"Add": "Sub"}, "y", ("b2", "a3"), id="the-last-node"),
    ],
)
def test_the_node_is_found_wherever_it_stands(tmp_path, edit, tensor, inputs):
    pair = Pair(graph("ours", tmp_path, **edit), graph("theirs", tmp_path), FEEDS)
    found = localize(pair, "y", limits(), QUIET)
    assert (found.tensor, found.inputs) == (tensor, inputs)
    passed = {result.output: result.passed for result in found.seen}
    assert not passed[tensor]
    assert all(passed[name] for name in inputs)


def test_a_difference_that_order_hides_behind_a_branch_that_agrees_is_followed_to_its_origin(tmp_path):
    """The search meets the agreeing branch in the middle, and finds b1 first, whose input differs already."""
    agreeing = "\n".join(f"a{i + 1} = Neg (a{i})" for i in range(7))
    text = f"""<ir_version: 10, opset_import: ["" : 17]>
g (float[N,2] x) => (float[N,2] y) <float[2] w = {{1, 1}}> {{
    b0 = Mul (x, w)
    a0 = Relu (x)
    {agreeing}
    b1 = Abs (b0)
    y = Add (a7, b1)
}}"""
    pair = Pair(graph("ours", tmp_path, text, **{"{1,_1}": "{1, 1.5}"}), graph("theirs", tmp_path, text), FEEDS)
    found = localize(pair, "y", limits(FEEDS["x"].nbytes * 2), QUIET)
    assert (found.tensor, found.inputs) == ("b0", ())
    assert "b1" in {result.output for result in found.seen}


def test_a_chain_is_searched_and_not_walked(tmp_path):
    text = "\n".join(f"t{i + 1} = Abs (t{i})" for i in range(200))
    head = '<ir_version: 10, opset_import: ["" : 17]>\ng (float[N,2] x) => (float[N,2] t200) {\nt0 = Identity (x)\n'
    theirs = Graph("theirs", tmp_path, onnx.parser.parse_model(f"{head}{text}}}"), 1)
    ours = Graph("ours", tmp_path, onnx.parser.parse_model(f"{head}{text.replace('t71 = Abs', 't71 = Exp')}}}"), 1)
    found = localize(Pair(ours, theirs, FEEDS), "t200", limits(), QUIET)
    assert found.tensor == "t71"
    assert len(found.seen) < 60
    assert found.runs < 10


def test_what_was_fused_away_is_named_as_being_between(tmp_path):
    fused = graph("ours", tmp_path, LONG.replace("b1 = Abs (b0)\n", "").replace("b2 = Sqrt (b1)", "b2 = Sigmoid (b0)"))
    found = localize(Pair(fused, graph("theirs", tmp_path), FEEDS), "y", limits(), QUIET)
    assert (found.tensor, found.inputs, found.beyond) == ("b2", ("b0",), ("b1",))


def test_graphs_that_agree_have_no_such_node(tmp_path):
    assert localize(Pair(graph("a", tmp_path), graph("b", tmp_path), FEEDS), "y", limits(), QUIET) is None


def test_inputs_that_a_graph_refuses_are_told_and_are_no_agreement(tmp_path):
    pair = Pair(graph("a", tmp_path), graph("b", tmp_path), {"x": np.ones((2, 3), np.float32)})
    with pytest.raises(EngineError, match="output 'y' cannot be looked at"):
        localize(pair, "y", limits(), QUIET)


def test_the_memory_limit_makes_runs_smaller_and_refuses_what_cannot_fit(tmp_path, monkeypatch):
    batches = []
    run = Graph.run
    monkeypatch.setattr(
        Graph, "run", lambda self, feeds, wanted: batches.append(len(wanted)) or run(self, feeds, wanted)
    )
    pair = Pair(graph("ours", tmp_path, **{"{1,_1}": "{1, 1.5}"}), graph("theirs", tmp_path), FEEDS)
    assert localize(pair, "y", limits(FEEDS["x"].nbytes * 2), QUIET).tensor == "b0"
    assert set(batches) == {1}
    batches.clear()
    with pytest.raises(HostError, match="raise --localize-memory"):
        localize(pair, "y", limits(10), QUIET)
    assert not batches, "its size is known without a run"


def test_the_command_names_the_node_of_an_altered_weight(trtc, built, encoder, tmp_path):
    from onnx import numpy_helper

    model = onnx.load(encoder)
    table = next(t for t in model.graph.initializer if t.name == "table")
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) * np.float32(1.01), "table"))
    onnx.save(model, tmp_path / "altered.onnx")
    said = trtc("compare", built, tmp_path / "altered.onnx", "--localize", "--profile", "p0")
    assert said.code == 1
    assert "they part at tensor 'embedded'" in said.out
    assert "everything it is made from agrees" in said.out
    said = trtc("compare", built, encoder, "--localize", "--profile", "p0", "--json")
    assert (said.code, said.json["parting"]) == (0, None)
    assert "nothing to find" in said.json["notes"][0]


def test_an_engine_that_is_no_graph_is_wrong_use(trtc, built_open, encoder, tmp_path):
    closed = ["--dim", "batch=1..2", "--dim", "seq=1..4"]
    path = tmp_path / "null.trtc"
    assert trtc("build", encoder, "-o", path, *closed, "--target", "null", "--measure-seconds", "0").code == 0
    said = trtc("compare", path, built_open, "--localize")
    assert said.code == 2
    assert "has no tensors that can be looked at" in said.err
