"""Which inputs reach which output."""

from __future__ import annotations

from onnx import TensorProto, helper

from trtc.compiler.probes.reach import trace_reach

node = helper.make_node


def value(name: str, dtype: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, None)


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs])


def test_outputs_are_reached_by_what_they_are_computed_from():
    reach = trace_reach(
        graph(
            [node("Add", ["a", "b"], ["t"]), node("Relu", ["t"], ["y"]), node("Neg", ["c"], ["z"])],
            ["a", "b", "c"],
            ["y", "z"],
        )
    )
    assert reach.inputs == {"y": {"a", "b"}, "z": {"c"}}
    assert reach.reached_from(["b"]) == {"y"}


def test_constants_are_reached_by_nothing():
    assert trace_reach(graph([node("Constant", [], ["y"], value_float=1.0)], ["x"], ["y"])).inputs == {"y": set()}


def test_the_order_of_nodes_does_not_matter():
    nodes = [node("Relu", ["u"], ["y"]), node("Neg", ["t"], ["u"]), node("Exp", ["a"], ["t"])]
    assert trace_reach(graph(nodes, ["a"], ["y"])).inputs == {"y": {"a"}}


def test_values_that_only_a_subgraph_reads_reach_the_output():
    inner = helper.make_graph([node("Mul", ["outer", "outer"], ["r"])], "inner", [], [value("r")])
    branch = helper.make_graph(
        [node("If", ["second"], ["s"], then_branch=inner, else_branch=inner)], "branch", [], [value("s")]
    )
    direct = helper.make_graph([], "direct", [], [value("other")])
    nodes = [
        node("Neg", ["a"], ["outer"]),
        node("Neg", ["b"], ["other"]),
        node("If", ["first"], ["y"], then_branch=branch, else_branch=direct),
        node("Neg", ["unread"], ["z"]),
    ]
    reach = trace_reach(graph(nodes, ["a", "b", "first", "second", "unread"], ["y", "z"]))
    assert reach.inputs == {"y": {"a", "b", "first", "second"}, "z": {"unread"}}


def test_names_of_a_loop_body_hide_nothing_of_the_graph_around_it():
    body = helper.make_graph(
        [node("Add", ["state", "step"], ["next"]), node("Identity", ["go"], ["more"])],
        "body",
        [value("turn", TensorProto.INT64), value("go", TensorProto.BOOL), value("state")],
        [value("more", TensorProto.BOOL), value("next")],
    )
    nodes = [node("Loop", ["count", "", "start"], ["y"], body=body)]
    reach = trace_reach(graph(nodes, ["count", "start", "step", "state"], ["y"]))
    assert reach.inputs == {"y": {"count", "start", "step"}}
