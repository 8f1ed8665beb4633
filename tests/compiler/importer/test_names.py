"""Names: every value once, every node its own, every reader behind its maker, in subgraphs too."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.passes.walk import walk_nodes
from trtc.profiles import ModelError

X = np.array([[1, -2, 3, -4]], np.float32)


@pytest.fixture
def condition(value):
    return value("c", [], TensorProto.BOOL)


@pytest.fixture
def branch(value):
    """Build a subgraph that returns its last node's value."""

    def make(*nodes, returns=None, initializers=()):
        output = returns or nodes[-1].output[0]
        return helper.make_graph(list(nodes), f"branch-{output}", [], [value(output)], list(initializers))

    return make


@pytest.fixture
def choose(model, condition):
    """Build a model whose If picks between two subgraphs; other nodes stand before it."""

    def make(then_branch, else_branch, *before, **rest):
        node = helper.make_node("If", ["c"], ["y"], "if", then_branch=then_branch, else_branch=else_branch)
        return model([*before, node], ["x", condition], **rest)

    return make


def both(run, loaded, x=X):
    return [run(loaded, {"x": x, "c": np.array(c)})["y"].tolist() for c in (True, False)]


@pytest.mark.parametrize(
    ("nodes", "initializers", "words"),
    [
        pytest.param([], ["w", "w"], ["'w'", "initializer 'w' and by initializer 'w'"], id="two-initializers"),
        pytest.param([("Neg", "x", "t"), ("Abs", "x", "t")], [], ["'t'", "(Neg)", "(Abs)"], id="two-nodes"),
        pytest.param([("Neg", "x", "w")], ["w"], ["initializer 'w'", "(Neg)"], id="initializer-and-node"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_two_definitions_of_one_value_are_refused_naming_both(
    *, imported, model, choose, branch, weight, nodes, initializers, words, inside
):
    made = [helper.make_node(op, [a], [b], f"{op}-node") for op, a, b in nodes]
    tensors = [weight(name, [float(i)]) for i, name in enumerate(initializers)]
    relu = helper.make_node("Relu", ["x"], ["r"])
    if inside:
        sub = branch(*made, relu, returns="r", initializers=tensors)
        proto = choose(sub, branch(helper.make_node("Abs", ["x"], ["e"])))
    else:
        proto = model([*made, relu], outputs=["r"], initializers=tensors)
    with pytest.raises(ModelError) as caught:
        imported(proto)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert ("in subgraph" in str(caught.value)) == inside


def test_an_input_that_a_node_makes_again_is_refused_naming_both(imported, model):
    nodes = [helper.make_node("Neg", ["y"], ["x"], "again"), helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(ModelError, match=r"by input 'x' and by node 'again' \(Neg\)"):
        imported(model(nodes))


def test_an_input_listed_twice_is_refused(imported, model):
    with pytest.raises(ModelError, match="input 'x' and by input 'x'"):
        imported(model([helper.make_node("Relu", ["x"], ["y"])], inputs=["x", "x"]))


def test_a_subgraph_that_hides_a_visible_value_is_refused_naming_both(imported, choose, branch):
    hiding = branch(helper.make_node("Neg", ["x"], ["t"], "inner"))
    other = branch(helper.make_node("Relu", ["t"], ["e"]))
    with pytest.raises(ModelError, match=r"'t' is defined by node 'outer' \(Abs\) and, .*node 'inner' \(Neg\)"):
        imported(choose(hiding, other, helper.make_node("Abs", ["x"], ["t"], "outer")))


def test_branches_that_share_names_with_each_other_and_with_the_result_are_fine(imported, run, choose, branch):
    loaded = imported(
        choose(branch(helper.make_node("Neg", ["x"], ["y"])), branch(helper.make_node("Relu", ["x"], ["y"])))
    )
    assert both(run, loaded) == [(-X).tolist(), np.maximum(X, 0).tolist()]
    inner = [sub.g.output[0].name for sub in loaded.proto.graph.node[0].attribute]
    assert "y" not in inner
    assert any("'y'" in note for note in loaded.notes)


def test_unnamed_and_doubly_named_nodes_get_names_of_their_own(imported, choose, branch):
    loaded = imported(
        choose(
            branch(helper.make_node("Neg", ["t"], ["a"], "n")),
            branch(helper.make_node("Relu", ["t"], ["b"])),
            helper.make_node("Abs", ["x"], ["s"], "n"),
            helper.make_node("Abs", ["s"], ["t"], "n"),
        )
    )
    names = [node.name for node in walk_nodes(loaded.proto.graph.node)]
    assert len(set(names)) == len(names) == 5
    assert all(names)
    assert names[0] == "n"
    assert any("shared a name" in note for note in loaded.notes)


def test_reversed_nodes_are_sorted(imported, model, run):
    nodes = [
        helper.make_node("Neg", ["b"], ["y"]),
        helper.make_node("Abs", ["a"], ["b"]),
        helper.make_node("Relu", ["x"], ["a"]),
    ]
    loaded = imported(model(nodes))
    assert [node.op_type for node in loaded.proto.graph.node] == ["Relu", "Abs", "Neg"]
    assert run(loaded, {"x": X})["y"].tolist() == [[-1, 0, -3, 0]]
    assert any("sorted" in note for note in loaded.notes)


def test_an_order_that_is_right_is_kept(imported, model):
    nodes = [
        helper.make_node("Neg", ["x"], ["b"]),
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    assert [node.op_type for node in imported(model(nodes)).proto.graph.node] == ["Neg", "Abs", "Add"]


def test_what_a_subgraph_reads_outside_counts_when_nodes_are_sorted(imported, run, model, condition, branch):
    inner = branch(helper.make_node("Neg", ["late"], ["i"]))
    nested = helper.make_node(
        "If", ["c"], ["n"], then_branch=inner, else_branch=branch(helper.make_node("Abs", ["x"], ["j"]))
    )
    choice = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch(nested), else_branch=branch(helper.make_node("Relu", ["x"], ["e"]))
    )
    loaded = imported(model([choice, helper.make_node("Abs", ["x"], ["late"])], ["x", condition]))
    assert [node.op_type for node in loaded.proto.graph.node] == ["Abs", "If"]
    assert both(run, loaded) == [(-np.abs(X)).tolist(), np.maximum(X, 0).tolist()]


def test_nodes_inside_a_subgraph_are_sorted(imported, run, choose, branch):
    unsorted = branch(helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Abs", ["x"], ["a"]), returns="b")
    loaded = imported(choose(unsorted, branch(helper.make_node("Relu", ["x"], ["e"]))))
    assert both(run, loaded)[0] == (-np.abs(X)).tolist()
    sorted_branch = next(a.g for a in loaded.proto.graph.node[0].attribute if a.name == "then_branch")
    assert [n.op_type for n in sorted_branch.node] == ["Abs", "Neg"]


def test_a_cycle_is_refused_naming_node_and_tensor(imported, model):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"], "first"), helper.make_node("Neg", ["a"], ["b"], "second")]
    with pytest.raises(ModelError, match=r"cycle through tensor '[ab]'.*'(first|second)'"):
        imported(model(nodes, outputs=["b"]))


@pytest.mark.parametrize("inside", [False, True])
def test_a_name_that_nothing_defines_is_refused_naming_node_and_tensor(imported, model, choose, branch, inside):
    lost = helper.make_node("Add", ["x", "ghost"], ["y" if not inside else "b"], "reader")
    proto = choose(branch(lost), branch(helper.make_node("Abs", ["x"], ["e"]))) if inside else model([lost])
    with pytest.raises(ModelError, match=r"'(reader|if)'.* reads 'ghost'"):
        imported(proto)


def test_a_value_of_one_branch_is_not_visible_in_the_other(imported, choose, branch):
    first = branch(helper.make_node("Neg", ["x"], ["mine"]))
    with pytest.raises(ModelError, match="reads 'mine'"):
        imported(choose(first, branch(helper.make_node("Abs", ["mine"], ["e"]))))


def test_an_output_that_nothing_makes_is_refused(imported, model):
    with pytest.raises(ModelError, match="output 'z'"):
        imported(model([helper.make_node("Relu", ["x"], ["y"])], outputs=["y", "z"]))


@pytest.mark.parametrize(("ir", "inputs"), [(3, ["x"]), (8, ["x", "w"])])
def test_an_initializer_that_is_an_input_is_a_constant_before_ir_4_and_optional_since(
    *, imported, run, model, weight, value, ir, inputs
):
    node = helper.make_node("Add", ["x", "w"], ["y"])
    loaded = imported(model([node], ["x", value("w", [1])], initializers=[weight("w", [5])], ir=ir))
    assert [i.name for i in loaded.proto.graph.input] == inputs
    assert run(loaded, {"x": X})["y"].tolist() == (X + 5).tolist()
    if ir == 8:
        nine = np.array([9], np.float32)
        assert run(loaded, {"x": X, "w": nine})["y"].tolist() == (X + 9).tolist()


def test_wrong_types_of_inner_values_are_dropped(imported, run, model, value):
    proto = model([helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])])
    proto.graph.value_info.extend([value("t", ["B", 7], TensorProto.INT64), value("x", ["B", 4], TensorProto.INT64)])
    loaded = imported(proto)
    assert not loaded.proto.graph.value_info
    assert run(loaded, {"x": X})["y"].tolist() == (-np.maximum(X, 0)).tolist()
    assert any("'x' as int64" in note for note in loaded.notes)
