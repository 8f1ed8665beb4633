"""Every dynamic axis of an input has a symbol that can be typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from trtc.compiler.symbols import axis_name, is_nameless, is_typable, look_alikes, typable_name
from trtc.profiles.grammar import symbol_ranges


def dims(loaded):
    return {
        value.name: [d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim]
        for value in (*loaded.proto.graph.input, *loaded.proto.graph.output)
    }


@pytest.fixture
def concat(model, value):
    """Build y = Concat(a, b) along axis 0."""

    def make(first, second, result=("N", 2)):
        node = helper.make_node("Concat", ["a", "b"], ["y"], axis=0)
        return model([node], [value("a", first), value("b", second)], [value("y", result)])

    return make


@pytest.mark.parametrize("nameless", [None, "", "-1", "?", -1, -2, " ", "None"])
def test_nameless_axes_become_distinct_symbols(imported, concat, nameless):
    found = dims(imported(concat([nameless, 2], [nameless, 2])))
    assert found["a"] == ["a_0", 2]
    assert found["b"] == ["b_0", 2]


def test_a_shared_name_stays_one_symbol(imported, concat):
    found = dims(imported(concat(["batch", 2], ["batch", "seq"])))
    assert (found["a"], found["b"]) == (["batch", 2], ["batch", "seq"])


def test_a_made_symbol_avoids_names_that_exist(imported, concat):
    found = dims(imported(concat(["?", 2], ["a_0", 2])))
    assert (found["a"][0], found["b"][0]) == ("a_0_2", "a_0")


def test_names_that_differ_in_blanks_or_case_stay_apart_and_are_noted(imported, concat):
    loaded = imported(concat(["batch", 2], ["batch ", "Batch"]))
    found = dims(loaded)
    names = [found["a"][0], *found["b"]]
    assert len(set(names)) == 3
    assert all(is_typable(name) for name in names)
    assert any("'batch', 'batch ', 'Batch' differ only in blanks or case" in note for note in loaded.notes)


def test_a_name_that_cannot_be_typed_is_replaced_everywhere_with_a_note(imported, concat):
    loaded = imported(concat(["n=2,k:3", 2], ["n=2,k:3", 2], result=("n=2,k:3", 2)))
    assert dims(loaded) == {"a": ["n_2_k_3", 2], "b": ["n_2_k_3", 2], "y": ["n_2_k_3", 2]}
    assert any("'n=2,k:3'" in note and "'n_2_k_3'" in note for note in loaded.notes)


def test_zero_is_a_size_and_noted(imported, concat):
    loaded = imported(concat([0, 2], ["N", 2]))
    assert dims(loaded)["a"] == [0, 2]
    assert any("'a' axis 0" in note and "0" in note for note in loaded.notes)


def test_declared_outputs_stay_but_for_texts_that_name_nothing(imported, concat):
    assert dims(imported(concat(["N", 2], ["M", 2], result=("N + M", "?"))))["y"] == ["N + M", ""]


def test_scalars_and_unknown_ranks_stay_as_they_are(imported, model, value):
    node = helper.make_node("Mul", ["x", "k"], ["y"])
    graph = imported(model([node], [value("x", None), value("k", [])], [value("y", None)])).proto.graph
    assert not graph.input[0].type.tensor_type.HasField("shape")
    assert graph.input[1].type.tensor_type.HasField("shape")
    assert not graph.input[1].type.tensor_type.shape.dim
    assert not graph.output[0].type.tensor_type.HasField("shape")


def test_odd_input_names_still_give_symbols_that_can_be_typed(imported, model, value):
    node = helper.make_node("Relu", ["a/b:0.π é"], ["y"])
    loaded = imported(model([node], [value("a/b:0.π é", [None, 4], TensorProto.FLOAT)]))
    assert dims(loaded)["a/b:0.π é"] == ["a/b_0.π é_0", 4]


@given(st.text(min_size=1))
def test_every_name_becomes_one_that_the_option_reads_back(name):
    symbol = typable_name(name)
    assert is_typable(symbol)
    ((parsed,),) = symbol_ranges([f"{symbol}=1:2:3"])
    assert parsed.symbol == symbol


@given(st.text(min_size=1))
def test_names_that_can_be_typed_are_kept(name):
    if is_typable(name):
        assert typable_name(name) == name
        ((parsed,),) = symbol_ranges([f"{name}=1:2:3"])
        assert parsed.symbol == name


def test_axis_names_say_input_and_axis():
    assert axis_name("input_ids", 1) == "input_ids_1"


def test_look_alikes_are_grouped_once_each():
    assert look_alikes(["Seq len", "seqlen", "batch", "seqlen", "x"]) == [("Seq len", "seqlen")]


def test_nameless_spellings():
    assert [is_nameless(text) for text in ("", " ? ", "-1", "none", "n", "0")] == [True] * 4 + [False] * 2
