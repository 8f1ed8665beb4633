"""Local functions are inlined, under names of their own."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

from trtc.profiles import ModelError

X = np.array([[1, -2, 3, -4]], np.float32)
OPSET = helper.make_opsetid("", 17)
MINE = helper.make_opsetid("my.dom", 1)
BOTH = {"": 17, "my.dom": 1}


def call(name, source, target, **attributes):
    return helper.make_node(name, [source], [target], domain="my.dom", **attributes)


def define(name, nodes, inputs=("a",), outputs=("b",), imports=(OPSET,), **rest):
    return helper.make_function("my.dom", name, list(inputs), list(outputs), list(nodes), list(imports), **rest)


TWICE = define("Twice", [helper.make_node("Add", ["a", "a"], ["b"])])


def test_a_function_is_inlined(imported, run, model):
    loaded = imported(model([call("Twice", "x", "y")], opsets=BOTH, functions=[TWICE]))
    assert run(loaded, {"x": X})["y"].tolist() == (2 * X).tolist()
    assert not loaded.proto.functions
    assert [o.domain for o in loaded.proto.opset_import] == [""]


def test_two_functions_that_each_hold_a_constant_of_one_name_keep_both(imported, run, model, weight):
    functions = [
        define(
            f"Plus{n}",
            [
                helper.make_node("Constant", [], ["c"], "c", value=weight("c", [float(n)])),
                helper.make_node("Add", ["a", "c"], ["b"]),
            ],
        )
        for n in (1, 2)
    ]
    loaded = imported(model([call("Plus1", "x", "t"), call("Plus2", "t", "y")], opsets=BOTH, functions=functions))
    assert run(loaded, {"x": X})["y"].tolist() == (X + 3).tolist()


def test_a_missing_import_is_refused_naming_the_domain(imported, model):
    with pytest.raises(ModelError, match=r"'my\.dom', which the model does not import"):
        imported(model([call("Twice", "x", "y")], functions=[TWICE]))


def test_a_function_that_lacks_an_import_is_refused_naming_both(imported, model):
    function = define("F", [helper.make_node("Relu", ["a"], ["b"])], imports=[helper.make_opsetid("other", 1)])
    with pytest.raises(ModelError, match=r"'ai.onnx', which local function my.dom::F does not import"):
        imported(model([call("F", "x", "y")], opsets=BOTH, functions=[function]))


def test_calls_inside_functions_and_subgraphs_are_inlined(imported, run, model, value):
    imports = [OPSET, MINE]
    four = define("Four", [call("Twice", "a", "t"), call("Twice", "t", "b")], imports=imports)
    then = helper.make_graph([call("Four", "x", "y")], "then", [], [value("y")])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "else", [], [value("t")])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    proto = model(nodes, ["x", value("c", [], TensorProto.BOOL)], opsets=BOTH, functions=[four, TWICE])
    loaded = imported(proto)
    assert run(loaded, {"x": X, "c": np.bool_(1)})["y"].tolist() == (4 * X).tolist()
    assert run(loaded, {"x": X, "c": np.bool_(0)})["y"].tolist() == (-X).tolist()


def test_a_subgraph_in_a_function_captures_no_name_of_the_caller(imported, run, model, value):
    """The branch makes ``x``, which is also what the caller passes in: reading ``a`` must still mean the caller's."""
    then = helper.make_graph(
        [helper.make_node("Neg", ["a"], ["x"]), helper.make_node("Add", ["x", "a"], ["s"])], "then", [], [value("s")]
    )
    other = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "else", [], [value("b")])
    choice = helper.make_node("If", ["c"], ["b"], then_branch=then, else_branch=other)
    function = define("F", [choice], inputs=["a", "c"])
    proto = model(
        [helper.make_node("F", ["x", "c"], ["y"], domain="my.dom")],
        ["x", value("c", [], TensorProto.BOOL)],
        opsets=BOTH,
        functions=[function],
    )
    loaded = imported(proto)
    assert run(loaded, {"x": X, "c": np.bool_(1)})["y"].tolist() == [[0, 0, 0, 0]]
    assert run(loaded, {"x": X, "c": np.bool_(0)})["y"].tolist() == X.tolist()


def leaky(default):
    node = helper.make_node("LeakyRelu", ["a"], ["b"])
    node.attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    if default is None:
        return define("Leaky", [node], attributes=["slope"])
    return define("Leaky", [node], attribute_protos=[helper.make_attribute("slope", default)])


@pytest.mark.parametrize(
    ("default", "given", "slope"),
    [
        pytest.param(None, {"slope": 0.5}, 0.5, id="given"),
        pytest.param(0.25, {}, 0.25, id="default"),
        pytest.param(0.25, {"slope": 0.5}, 0.5, id="given-over-default"),
        pytest.param(None, {}, 0.01, id="neither-so-the-operators-own"),
    ],
)
def test_attributes_of_a_call_reach_the_body(*, imported, run, model, default, given, slope):
    loaded = imported(model([call("Leaky", "x", "y", **given)], opsets=BOTH, functions=[leaky(default)]))
    expected = np.where(X < 0, X * np.float32(slope), X)
    assert np.allclose(run(loaded, {"x": X})["y"], expected)


def test_an_output_that_is_an_input_and_one_listed_twice_are_kept_apart(imported, run, model):
    function = define("F", [helper.make_node("Neg", ["a"], ["b"])], outputs=["a", "b", "b"])
    node = helper.make_node("F", ["x"], ["p", "q", "r"], domain="my.dom")
    loaded = imported(model([node], outputs=["p", "q", "r"], opsets=BOTH, functions=[function]))
    results = run(loaded, {"x": X})
    assert [results[name].tolist() for name in "pqr"] == [X.tolist(), (-X).tolist(), (-X).tolist()]


def test_an_input_that_the_call_leaves_out_is_left_out_inside(imported, run, model):
    function = define("F", [helper.make_node("Clip", ["a", "low", "high"], ["b"])], inputs=["a", "low", "high"])
    loaded = imported(model([call("F", "x", "y")], opsets=BOTH, functions=[function]))
    assert run(loaded, {"x": X})["y"].tolist() == X.tolist()


OLD = helper.make_opsetid("", 11)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        pytest.param(define("F", [call("F", "a", "b")], imports=[OPSET, MINE]), "call themselves", id="recursion"),
        pytest.param(define("F", [helper.make_node("Add", ["a", "x"], ["b"])]), "reads 'x', which the", id="leak"),
        pytest.param(define("F", [helper.make_node("Neg", ["a"], ["t"])]), "'b' is made by none", id="no-output"),
        pytest.param(define("F", [helper.make_node("Neg", ["a"], ["b"])] * 2), "'b' is made twice", id="made-twice"),
        pytest.param(
            define("F", [helper.make_node("Constant", [], ["b"], value_float=1.0)], inputs=[]), "takes 0", id="inputs"
        ),
        pytest.param(
            define("F", [helper.make_node("ReduceSum", ["a"], ["b"])], imports=[OLD]),
            "written for opset 11 and the model for 17, and ReduceSum differs",
            id="opsets-differ",
        ),
    ],
)
def test_a_function_that_cannot_be_inlined_is_refused(imported, model, function, words):
    with pytest.raises(ModelError, match=words):
        imported(model([call("F", "x", "y")], opsets=BOTH, functions=[function]))


def test_a_function_defined_twice_is_refused(imported, model):
    with pytest.raises(ModelError, match=r"my\.dom::Twice is defined twice"):
        imported(model([call("Twice", "x", "y")], opsets=BOTH, functions=[TWICE, TWICE]))


def test_a_function_named_like_a_built_in_operator_is_refused(imported, model):
    function = helper.make_function("", "Relu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [OPSET])
    with pytest.raises(ModelError, match="name of a built-in operator"):
        imported(model([helper.make_node("Relu", ["x"], ["y"])], functions=[function]))


def test_a_chain_of_functions_that_doubles_at_each_step_is_refused_before_it_grows(imported, model):
    imports = [OPSET, MINE]
    functions = [define("F0", [helper.make_node("Neg", ["a"], ["b"])])]
    functions += [
        define(f"F{i}", [call(f"F{i - 1}", "a", "t"), call(f"F{i - 1}", "t", "b")], imports=imports)
        for i in range(1, 100)
    ]
    with pytest.raises(ModelError, match=f"{2**99} nodes"):
        imported(model([call("F99", "x", "y")], opsets=BOTH, functions=functions))


def test_an_attribute_reference_outside_a_function_is_refused(imported, model):
    node = helper.make_node("LeakyRelu", ["x"], ["y"])
    node.attribute.append(AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT))
    with pytest.raises(ModelError, match="refers to 'slope' of a function"):
        imported(model([node]))
