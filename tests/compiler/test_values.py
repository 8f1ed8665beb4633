"""Generated values stay inside what the graph allows, whatever path they take to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.importer import load_model
from trtc.compiler.inference import inferred_shapes
from trtc.compiler.input_roles import trace_inputs
from trtc.compiler.reference import open_reference
from trtc.compiler.samples import check_samples, load_samples
from trtc.compiler.signature import model_inputs
from trtc.compiler.values import value_source
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from trtc.compiler.model import Model
    from trtc.compiler.samples import Samples
    from trtc.compiler.values import ValueSource

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
TABLE = np.ones((7, 3), np.float32)


def source_of(model: Model, val_ranges=None, samples: Samples | None = None) -> ValueSource:
    inputs = model_inputs(model)
    roles = trace_inputs(model, inferred_shapes(model)).roles
    return value_source(inputs, roles, val_ranges or {}, samples)


def drawn(source: ValueSource, name: str, count: int = 40, **sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [source.feeds(sizes, rng)[name] for _ in range(count)]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param([], id="directly"),
        pytest.param([node("Cast", ["i"], ["j"], to=INT64)], id="cast"),
        pytest.param([node("Unsqueeze", ["i", "zero"], ["j"])], id="unsqueeze"),
        pytest.param([node("Transpose", ["i"], ["j"], perm=[1, 0])], id="transpose"),
        pytest.param([node("Reshape", ["i", "flat"], ["j"])], id="reshape"),
        pytest.param([node("Concat", ["i", "extra"], ["j"], axis=1)], id="concat"),
        pytest.param([node("Add", ["i", "two"], ["j"])], id="add"),
        pytest.param([node("Sub", ["six", "i"], ["j"])], id="subtract-from"),
        pytest.param([node("Mul", ["i", "two"], ["j"])], id="multiply"),
        pytest.param([node("Add", ["i", "i"], ["j"])], id="sum-of-two"),
        pytest.param(
            [node("Greater", ["i", "two"], ["c"]), node("Where", ["c", "two", "i"], ["j"])],
            id="where",
        ),
    ],
)
@pytest.mark.parametrize("operator", ["Gather", "GatherND"])
def test_an_index_stays_inside_its_table(model_of, path, operator):
    index = "j" if path else "i"
    last = [node("Unsqueeze", [index, "last"], ["k"])] if operator == "GatherND" else []
    use = node(operator, ["table", "k" if last else index], ["y"], name="lookup")
    constants = {
        "table": TABLE,
        "zero": np.array([0]),
        "last": np.array([-1]),
        "flat": np.array([-1]),
        "extra": np.array([[6]]),
        "two": np.array(2),
        "six": np.array(6),
    }
    model = model_of([*path, *last, use], {"i": (INT64, [1, "S"])}, {"y": (FLOAT, None)}, constants)
    source = source_of(model)
    reference = open_reference(model, threads=1)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(30):
        feeds = source.feeds({"S": 9}, rng)
        reference.run(feeds)
        seen.update(feeds["i"].reshape(-1).tolist())
    assert len(seen) > 1, "always the same value shows nothing"
    assert "indexes a table of 7 rows" in source.describe()


def test_an_index_inside_a_branch_stays_inside_its_table(model_of):
    def branch(name):
        out = helper.make_tensor_value_info(name, FLOAT, None)
        return helper.make_graph([node("Gather", ["table", "i"], [name])], name, [], [out])

    choose = node("If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("e"))
    inputs = {"i": (INT64, ["S"]), "c": (BOOL, [])}
    source = source_of(model_of([choose], inputs, {"y": (FLOAT, None)}, {"table": TABLE}))
    assert {int(v) for a in drawn(source, "i", S=20) for v in a} == set(range(7))
    assert {bool(a) for a in drawn(source, "c", S=1)} == {True, False}


def test_an_index_that_the_graph_compares_with_comes_up_although_the_table_is_large(model_of):
    nodes = [node("Gather", ["table", "i"], ["y"]), node("Equal", ["i", "end"], ["last"])]
    constants = {"table": np.ones((50000, 1), np.float32), "end": np.array(49407)}
    model = model_of(nodes, {"i": (INT64, ["B", "S"])}, {"y": (FLOAT, None), "last": (BOOL, None)}, constants)
    ends = [(ids == 49407).mean() for ids in drawn(source_of(model), "i", B=2, S=20)]
    assert 0 in ends
    assert 0 < np.mean(ends) < 0.5


def test_an_index_into_an_axis_of_variable_size_follows_that_size(model_of):
    take = node("Gather", ["x", "i"], ["y"], axis=1)
    model = model_of([take], {"x": (FLOAT, ["B", "S"]), "i": (INT64, ["K"])}, {"y": (FLOAT, None)})
    for size in (1, 5):
        values = {int(v) for a in drawn(source_of(model), "i", B=1, S=size, K=9) for v in a}
        assert values == set(range(size))


def test_constants_that_the_graph_compares_with_are_the_candidates(model_of):
    rate = node("Equal", ["rate", "known"], ["y"])
    model = model_of([rate], {"rate": (INT64, [])}, {"y": (BOOL, [])}, {"known": np.array(16000)})
    assert {int(a) for a in drawn(source_of(model), "rate")} == {16000}


def test_both_sides_of_an_ordering_are_candidates(model_of):
    rate = node("Greater", ["n", "limit"], ["y"])
    model = model_of([rate], {"n": (INT64, [])}, {"y": (BOOL, [])}, {"limit": np.array(10)})
    assert {int(a) for a in drawn(source_of(model), "n")} == {9, 10, 11}


ONE = np.array(1, np.float32)
BIAS = np.array(-10000, np.float32)


@pytest.mark.parametrize("element", [INT64, FLOAT, BOOL])
def test_a_mask_is_zeros_and_ones_without_an_all_zero_row(model_of, element):
    nodes = [node("Cast", ["m"], ["f"], to=FLOAT), node("Sub", ["one", "f"], ["o"]), node("Mul", ["o", "bias"], ["y"])]
    model = model_of(nodes, {"m": (element, ["B", "S"])}, {"y": (FLOAT, ["B", "S"])}, {"one": ONE, "bias": BIAS})
    arrays = drawn(source_of(model), "m", B=3, S=6)
    assert all(set(np.unique(a)) <= {0, 1} and a.any(axis=-1).all() for a in arrays)
    assert any((a == 0).any() for a in arrays)


def test_a_float_that_is_only_scaled_is_no_mask(model_of):
    nodes = [node("Sub", ["one", "x"], ["o"]), node("Mul", ["o", "x"], ["y"])]
    model = model_of(nodes, {"x": (FLOAT, ["N"])}, {"y": (FLOAT, ["N"])}, {"one": ONE})
    values = np.concatenate(drawn(source_of(model), "x", N=50))
    assert np.isfinite(values).all()
    assert np.abs(values).max() > 10
    assert (values == 0).any()


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("Reshape", {"x": (FLOAT, ["N"]), "s": (INT64, [2])}),
        ("Expand", {"x": (FLOAT, ["N"]), "s": (INT64, [2])}),
        ("Tile", {"x": (FLOAT, ["N", 2]), "s": (INT64, [2])}),
        ("ConstantOfShape", {"s": (INT64, [2])}),
        ("Resize", {"x": (FLOAT, [1, 1, "N"]), "s": (INT64, [3])}),
    ],
)
def test_a_value_that_decides_a_shape_is_reported_and_kept_valid(model_of, operator, inputs):
    reads = ["x", "", "", "s"] if operator == "Resize" else list(inputs)
    model = model_of([node(operator, reads, ["y"], name="shaper")], inputs, {"y": (FLOAT, None)})
    source = source_of(model)
    assert "s" in source.carries_shape
    reference = open_reference(model, threads=1)
    rng = np.random.default_rng(0)
    for size in (1, 2, 5):
        reference.run(source.feeds({"N": size}, rng))


def test_given_ranges_win_over_what_the_graph_tells(model_of):
    model = model_of(
        [node("Gather", ["table", "i"], ["y"])], {"i": (INT64, ["S"])}, {"y": (FLOAT, None)}, {"table": TABLE}
    )
    source = source_of(model, {"i": (2, 3)})
    assert {int(v) for a in drawn(source, "i", S=9) for v in a} == {2, 3}
    assert "2..3 (as given)" in source.describe()
    with pytest.raises(UsageError, match="did you mean 'i'"):
        source_of(model, {"I": (0, 1)})


def test_the_same_seed_gives_the_same_values(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, ["N"])})
    source = source_of(model)
    first, second = (source.feeds({"N": 5}, np.random.default_rng(4))["x"].tolist() for _ in range(2))
    assert first == second != source.feeds({"N": 5}, np.random.default_rng(5))["x"].tolist()


def sampled(model_of, tmp_path, arrays) -> ValueSource:
    model = model_of([node("Add", ["a", "b"], ["y"])], {n: (FLOAT, ["B", "S"]) for n in "ab"}, {"y": (FLOAT, None)})
    for i, array in enumerate(arrays):
        np.savez(tmp_path / f"{i}.npz", a=array, b=array)
    samples = check_samples(load_samples(sorted(tmp_path.glob("*.npz"))), model_inputs(model))
    return source_of(model, samples=samples)


def test_real_samples_are_cut_and_repeated_to_the_asked_sizes(model_of, tmp_path):
    source = sampled(model_of, tmp_path, [np.array([[1, 2, 3]], np.float32)])
    assert drawn(source, "a", 1, B=1, S=2)[0].tolist() == [[1, 2]]
    assert drawn(source, "a", 1, B=2, S=5)[0].tolist() == [[1, 2, 3, 1, 2]] * 2
    assert "1 real sample" in source.describe()


def test_a_real_sample_with_an_axis_that_the_model_fixes_at_zero_is_used(model_of, tmp_path):
    model = model_of(
        [node("Split", ["x", "parts"], ["a", "b"])],
        {"x": (FLOAT, [0]), "parts": (INT64, [2])},
        {"a": (FLOAT, None), "b": (FLOAT, None)},
    )
    np.savez(tmp_path / "0.npz", x=np.zeros(0, np.float32), parts=np.array([0, 0]))
    samples = check_samples(load_samples([tmp_path / "0.npz"]), model_inputs(model))
    source = source_of(model, samples=samples)
    assert drawn(source, "parts", 1)[0].tolist() == [0, 0]
    assert drawn(source, "x", 1)[0].shape == (0,)


def sequence_model(model_of, dims, nodes, inputs, outputs) -> Model:
    model = model_of(nodes, inputs, outputs)
    model.proto.graph.input.append(helper.make_tensor_sequence_value_info("s", FLOAT, dims))
    model.path.write_bytes(model.proto.SerializeToString())
    return model


def test_items_of_a_sequence_follow_the_sizes_of_the_symbols_that_they_declare(model_of):
    model = sequence_model(
        model_of, ["N", 3], [node("SequenceLength", ["s"], ["k"])], {"x": (FLOAT, ["N"])}, {"k": (INT64, [])}
    )
    source = source_of(model)
    assert [item.shape for item in drawn(source, "s", 1, N=5)[0]] == [(5, 3), (5, 3)]
    renamed = source.rules["s"].renamed({"N": "M"})
    assert renamed.item == ("M", 3)


def test_items_of_a_sequence_that_declares_no_shape_are_small(model_of):
    model = sequence_model(model_of, None, [node("SequenceLength", ["s"], ["k"])], {}, {"k": (INT64, [])})
    assert [item.shape for item in drawn(source_of(model), "s", 1)[0]] == [(2,), (2,)]


def test_a_position_in_a_sequence_is_one_that_it_has(model_of):
    nodes = [node("SequenceInsert", ["s", "x", "at"], ["t"]), node("SequenceLength", ["t"], ["k"])]
    inputs = {"x": (FLOAT, [2]), "at": (INT64, [])}
    model = sequence_model(model_of, None, nodes, inputs, {"k": (INT64, [])})
    reference = open_reference(model, 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert reference.run(source_of(model).feeds({}, rng))["k"] == 3


def test_rows_come_from_several_samples_and_stay_together_across_inputs(model_of, tmp_path):
    source = sampled(model_of, tmp_path, [np.full((1, 2), v, np.float32) for v in (1, 2, 3)])
    feeds = source.feeds({"B": 3, "S": 2}, np.random.default_rng(0))
    assert sorted(feeds["a"][:, 0].tolist()) == [1, 2, 3]
    assert feeds["a"].tolist() == feeds["b"].tolist()


def test_a_real_mask_that_is_cut_keeps_a_one_in_every_row(model_of, tmp_path):
    nodes = [node("Cast", ["m"], ["f"], to=FLOAT), node("Sub", ["one", "f"], ["o"]), node("Mul", ["o", "bias"], ["y"])]
    model = model_of(nodes, {"m": (INT64, ["B", "S"])}, {"y": (FLOAT, None)}, {"one": ONE, "bias": BIAS})
    np.savez(tmp_path / "left.npz", m=np.array([[0, 0, 1, 1]]))
    source = source_of(model, samples=check_samples(load_samples([tmp_path / "left.npz"]), model_inputs(model)))
    assert drawn(source, "m", 1, B=1, S=2)[0].any()


def test_a_sentence_encoder_gets_words_of_its_table_and_masks(minilm_path, tmp_path):
    source = source_of(load_model(minilm_path, work_folder=tmp_path / "m"))
    assert source.describe() == (
        "generated: input_ids in 0..30521 (indexes a table of 30522 rows); "
        "attention_mask 0 or 1, no row all zero (used as a mask)"
    )


@pytest.mark.parametrize("version", ["silero_path", "silero_ifless_path"])
def test_a_voice_detector_gets_the_rate_that_it_compares_with(version, tmp_path, request):
    source = source_of(load_model(request.getfixturevalue(version), work_folder=tmp_path / "m"))
    assert source.rules["sr"].candidates == (16000,)
    assert source.rules["state"].kind == "floats"


def test_a_byte_classifier_gets_every_value_that_it_distinguishes(magika_path, tmp_path):
    source = source_of(load_model(magika_path, work_folder=tmp_path / "m"))
    assert source.rules["bytes"].candidates == tuple(range(257))
