"""Signatures of small and of real models, found by running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.importer import load_model
from trtc.compiler.inference import inferred_shapes
from trtc.compiler.reference import open_reference
from trtc.compiler.signature import SourceOptions, find_signature
from trtc.engines.errors import EngineError
from trtc.profiles import ModelError, ProfileError, Range, UsageError, shape_text

if TYPE_CHECKING:
    from trtc.compiler.model import Model
    from trtc.compiler.signature import SignatureResult

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
KERNEL = np.ones((1, 1, 3, 3), np.float32)


def signature_of(model: Model, ranges: dict[str, Range] | None = None, **options) -> SignatureResult:
    return find_signature(model, open_reference(model, threads=1), SourceOptions(**options), ranges or {})


def outputs(found: SignatureResult) -> list[str]:
    return [shape_text(spec.dims) for spec in found.signature.outputs]


def test_rows_that_merge_silently_are_found_and_contradict_the_declaration(model_of):
    fold = node("Reshape", ["x", "shape"], ["y"], name="fold")
    model = model_of([fold], {"x": (FLOAT, ["B", 2, 3])}, {"y": (FLOAT, ["B", 6])}, {"shape": np.array([1, -1])})
    found = signature_of(model)
    assert outputs(found) == ["[1, 6*B]"]
    assert any("axis 0 is declared B, but runs give 1" in note for note in found.notes)


def test_a_batch_that_only_runs_as_one_names_the_node_and_its_constant(model_of):
    fold = node("Reshape", ["x", "shape"], ["y"], name="fold")
    model = model_of([fold], {"x": (FLOAT, ["B", 2, 3])}, {"y": (FLOAT, ["B", 6])}, {"shape": np.array([1, 6])})
    found = signature_of(model)
    assert found.workable["B"].fixed
    note = next(note for note in found.notes if note.startswith("B runs only at 1"))
    assert "Reshape node 'fold' (reads x, shape=[1, 6])" in note
    assert "--dim B=1" in note
    with pytest.raises(ModelError, match=r"B=2 is in the range 1\.\.4.*fold.*--dim B=1"):
        signature_of(model, {"B": Range(1, 2, 4)})


def test_symbols_that_must_be_equal_become_one(model_of):
    inputs = {"a": (FLOAT, ["batch", 3]), "b": (FLOAT, ["batch ", 3])}
    model = model_of([node("Add", ["a", "b"], ["y"])], inputs, {"y": (FLOAT, None)})
    found = signature_of(model)
    assert found.merges == {"batch ": "batch"}
    assert found.signature.symbols == ("batch",)
    assert outputs(found) == ["[batch, 3]"]
    assert found.values.feeds({"batch": 5}, np.random.default_rng(0))["b"].shape == (5, 3)


def test_equal_symbols_need_ranges_that_share_a_size(model_of):
    inputs = {"a": (FLOAT, ["m", 3]), "b": (FLOAT, ["n", 3])}
    model = model_of([node("Add", ["a", "b"], ["y"])], inputs, {"y": (FLOAT, None)})
    with pytest.raises((ProfileError, ModelError)):
        signature_of(model, {"m": Range(2, 3, 4), "n": Range(6, 7, 8)})


def test_a_symbol_that_may_move_alone_is_still_merged_with_one_that_needs_it(model_of):
    nodes = [
        node("Shape", ["a"], ["rows"], end=1),
        node("Concat", ["rows", "rest"], ["shape"], axis=0),
        node("Reshape", ["c", "shape"], ["d"]),  # any m does while k is 2; any other k needs m to follow
        node("Add", ["a", "d"], ["y"]),
    ]
    inputs = {"a": (FLOAT, ["k", 1]), "c": (FLOAT, ["m", 4])}
    found = signature_of(model_of(nodes, inputs, {"y": (FLOAT, None)}, {"rest": np.array([-1])}))
    assert found.merges == {"m": "k"}
    assert outputs(found) == ["[k, 4]"]


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_fails_for_its_values_does_not_condemn_its_sizes(model_of, seed):
    nodes = [node("Mod", ["i", "nine"], ["j"]), node("Gather", ["table", "j"], ["y"])]
    constants = {"nine": np.array(9), "table": np.ones((7, 3), np.float32)}
    model = model_of(nodes, {"i": (INT64, ["S"])}, {"y": (FLOAT, None)}, constants)
    assert outputs(signature_of(model, {"S": Range(1, 1, 1)}, seed=seed)) == ["[S, 3]"]


def test_inference_does_not_trust_the_declared_outputs(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B", 4])}, {"y": (FLOAT, ["B", 5])})
    assert inferred_shapes(model)["y"] == ("B", 4)


def test_other_values_are_run_at_the_same_sizes(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B"])}, {"y": (FLOAT, None)})
    seen = []

    class Watching:
        name = "watching"

        def run(self, feeds):
            seen.append(tuple(feeds["x"].tolist()))
            return {"y": feeds["x"]}

    find_signature(model, Watching(), SourceOptions(), {"B": Range(3, 3, 3)})
    assert len(set(seen)) >= 6


def test_sizes_that_differ_freely_stay_apart(model_of):
    inputs = {"a": (FLOAT, ["m", "k"]), "b": (FLOAT, ["l", "n"])}
    found = signature_of(model_of([node("MatMul", ["a", "b"], ["y"])], inputs, {"y": (FLOAT, None)}))
    assert found.merges == {"l": "k"}
    assert outputs(found) == ["[m, n]"]


def test_broadcasting_a_size_of_one_does_not_make_symbols_equal(model_of):
    inputs = {"a": (FLOAT, ["m", 1]), "b": (FLOAT, [1, "n"])}
    found = signature_of(model_of([node("Add", ["a", "b"], ["y"])], inputs, {"y": (FLOAT, None)}))
    assert found.merges == {}
    assert outputs(found) == ["[m, n]"]


def test_a_size_that_depends_on_the_data_has_no_relation(model_of):
    model = model_of([node("NonZero", ["x"], ["y"])], {"x": (FLOAT, ["B", 4])}, {"y": (INT64, [2, 3])})
    found = signature_of(model)
    assert outputs(found) == ["[2, ?]"]
    assert not found.evidence.accepted
    assert any("axis 1: its size depends on the data" in note for note in found.notes)


def test_a_declared_shape_that_does_not_hold_is_reported_and_not_used(model_of):
    found = signature_of(model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B", 4])}, {"y": (FLOAT, ["B", 5])}))
    assert outputs(found) == ["[B, 4]"]
    assert any("axis 1 is declared 5, but runs give 4" in note for note in found.notes)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("Reshape", {"x": (FLOAT, ["N"]), "s": (INT64, [2])}),
        ("Expand", {"x": (FLOAT, ["N"]), "s": (INT64, [2])}),
        ("Tile", {"x": (FLOAT, ["N", 2]), "s": (INT64, [2])}),
        ("ConstantOfShape", {"s": (INT64, [2])}),
    ],
)
def test_shapes_that_follow_from_values_have_no_relation(model_of, operator, inputs):
    found = signature_of(model_of([node(operator, list(inputs), ["y"], name="n")], inputs, {"y": (FLOAT, None)}))
    assert found.carries_shape == ("s",)
    assert outputs(found) == ["[?, ?]"]
    assert any("--val-range 's:[LOW,HIGH]'" in note for note in found.notes)


def test_an_unknown_rank_and_a_rank_that_varies_stay_unknown(model_of):
    assert outputs(
        signature_of(model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, None)}, {"y": (FLOAT, None)}))
    ) == ["[...]"]
    same = helper.make_graph(
        [node("Identity", ["x"], ["t"])], "t", [], [helper.make_tensor_value_info("t", FLOAT, None)]
    )
    total = helper.make_graph(
        [node("ReduceSum", ["x"], ["e"], keepdims=0)], "e", [], [helper.make_tensor_value_info("e", FLOAT, None)]
    )
    choose = node("If", ["c"], ["y"], then_branch=same, else_branch=total)
    model = model_of([choose], {"x": (FLOAT, ["N"]), "c": (BOOL, [])}, {"y": (FLOAT, None)})
    assert outputs(signature_of(model)) == ["[...]"]


def test_a_scalar_stays_a_scalar(model_of):
    total = node("ReduceSum", ["x"], ["y"], keepdims=0)
    assert outputs(signature_of(model_of([total], {"x": (FLOAT, ["B", 2])}, {"y": (FLOAT, [])}))) == ["[]"]


def test_a_minimum_that_the_network_cannot_run_names_node_and_smallest_size(model_of):
    conv = node("Conv", ["x", "kernel"], ["y"], name="conv")
    model = model_of([conv], {"x": (FLOAT, ["B", 1, "H", 8])}, {"y": (FLOAT, None)}, {"kernel": KERNEL})
    found = signature_of(model)
    assert (found.workable["H"].min, outputs(found)) == (3, ["[B, 1, H-2, 6]"])
    with pytest.raises(ModelError, match=r"H=2 is in the range 2\.\.8.*Conv node 'conv'.*run: 3\.\.; give --dim H=3"):
        signature_of(model, {"H": Range(2, 4, 8)})


def test_a_maximum_beyond_a_position_table_names_the_largest_size(model_of):
    nodes = [node("Shape", ["x"], ["n"]), node("Slice", ["table", "zero", "n"], ["p"]), node("Add", ["x", "p"], ["y"])]
    constants = {"table": np.ones(50, np.float32), "zero": np.array([0])}
    model = model_of(nodes, {"x": (FLOAT, ["S"])}, {"y": (FLOAT, None)}, constants)
    assert signature_of(model).workable["S"].max == 50
    with pytest.raises(ModelError, match=r"S=100.*sizes that run: 1\.\.50; give --dim S=1:50"):
        signature_of(model, {"S": Range(1, 10, 100)})
    assert outputs(signature_of(model, {"S": Range(1, 10, 50)})) == ["[S]"]


def test_multiples_are_found_from_the_constant_of_a_reshape(model_of):
    fold = node("Reshape", ["x", "shape"], ["y"])
    found = signature_of(model_of([fold], {"x": (FLOAT, ["N"])}, {"y": (FLOAT, None)}, {"shape": np.array([-1, 100])}))
    assert str(found.workable["N"]) == "100.. in multiples of 100"
    assert outputs(found) == ["[N//100, 100]"]


def test_nothing_runs_says_why_and_what_to_give(model_of):
    nodes = [node("Reshape", ["x", "shape"], ["y"], name="never")]
    model = model_of(nodes, {"x": (FLOAT, ["N", 4])}, {"y": (FLOAT, None)}, {"shape": np.array([7919])})
    with pytest.raises(ModelError, match=r"Reshape node 'never'.*--samples.*--val-range"):
        signature_of(model)


def test_sizes_outside_the_given_ranges_are_never_run(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B", "S"])}, {"y": (FLOAT, None)})
    inner = open_reference(model, threads=1)
    seen = []

    class Watching:
        name = "watching"

        def run(self, feeds):
            seen.append(feeds["x"].shape)
            return inner.run(feeds)

    found = find_signature(model, Watching(), SourceOptions(), {"B": Range(2, 3, 5), "S": Range(7, 7, 7)})
    assert {rows for rows, _ in seen} == {2, 3, 4, 5}
    assert {columns for _, columns in seen} == {7}
    assert outputs(found) == ["[B, S]"]


def test_what_there_was_no_time_for_is_told(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B"])}, {"y": (FLOAT, None)})
    found = signature_of(model, budget_s=0.0)
    assert "left out for time" in found.evidence.detail


def test_too_few_runs_leave_a_size_unknown_rather_than_guessed(model_of):
    conv = node("Conv", ["x", "kernel"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])
    pooled = node("Reshape", ["y", "rows"], ["z"])
    inputs, constants = {"x": (FLOAT, [1, 1, "H", 8])}, {"kernel": KERNEL, "rows": np.array([-1, 4])}
    model = model_of([conv, pooled], inputs, {"z": (FLOAT, None)}, constants)
    assert outputs(signature_of(model)) == ["[(H+1)//2, 4]"]
    hurried = signature_of(model, budget_s=0.0)
    assert outputs(hurried) == ["[?, 4]"]
    assert any("too few sizes of H" in note for note in hurried.notes)


def test_an_input_that_no_node_reads_and_one_with_a_default_are_marked(model_of):
    inputs = {"x": (FLOAT, ["B"]), "u": (FLOAT, ["B", 3]), "w": (FLOAT, [1])}
    model = model_of([node("Add", ["x", "w"], ["y"])], inputs, {"y": (FLOAT, None)}, {"w": np.ones(1, np.float32)})
    specs = {spec.name: spec for spec in signature_of(model).signature.inputs}
    assert [(s.used, s.has_default) for s in specs.values()] == [(True, False), (False, False), (True, True)]


def test_an_input_that_only_a_branch_reads_is_used(model_of):
    def branch(name):
        out = helper.make_tensor_value_info(name, FLOAT, None)
        return helper.make_graph([node("Neg", ["x"], [name])], name, [], [out])

    choose = node("If", ["c"], ["y"], then_branch=branch("t"), else_branch=branch("e"))
    found = signature_of(model_of([choose], {"x": (FLOAT, ["N"]), "c": (BOOL, [])}, {"y": (FLOAT, None)}))
    assert all(spec.used for spec in found.signature.inputs)
    assert outputs(found) == ["[N]"]


def test_sequences_and_models_without_inputs_have_a_signature(model_of):
    constant = node("Constant", [], ["y"], value_ints=[1, 2])
    assert outputs(signature_of(model_of([constant], {}, {"y": (INT64, None)}))) == ["[2]"]
    model = model_of([node("SplitToSequence", ["x"], ["y"])], {"x": (FLOAT, ["N"])}, {})
    model.proto.graph.output.append(helper.make_tensor_sequence_value_info("y", FLOAT, None))
    model.path.write_bytes(model.proto.SerializeToString())
    assert str(signature_of(model).signature.outputs[0]) == "y: seq(tensor(float))"


def test_unknown_symbols_in_ranges_are_refused(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["batch"])}, {"y": (FLOAT, None)})
    with pytest.raises(UsageError, match="did you mean 'batch'"):
        signature_of(model, {"Batch": Range(1, 2, 3)})


def real(path, tmp_path, ranges=None, options=None) -> SignatureResult:
    model = load_model(path, work_folder=tmp_path / "model")
    return find_signature(model, open_reference(model, threads=1), options or SourceOptions(), ranges or {})


def symbols_replaced(found: SignatureResult, *names: str) -> list[str]:
    """Shapes of outputs with the symbols of the file written short."""
    mapping = dict(zip(found.signature.symbols, names, strict=True))
    texts = outputs(found)
    for symbol in sorted(mapping, key=len, reverse=True):
        texts = [text.replace(symbol, mapping[symbol]) for text in texts]
    return texts


def test_a_sentence_encoder(minilm_path, tmp_path):
    found = real(minilm_path, tmp_path, options=SourceOptions(budget_s=200.0))  # time for far sizes on a busy machine
    assert symbols_replaced(found, "batch", "seq") == ["[batch, seq]"] * 2 + ["[batch, seq, 384]", "[batch, 384]"]
    assert found.workable["sequence_length"].max == 512


def test_a_text_recogniser(ppocr_rec_path, tmp_path):
    found = real(ppocr_rec_path, tmp_path)
    assert symbols_replaced(found, "b", "h", "w") == ["[b, (w+3)//8, 6625]"]
    assert [rule.min for rule in found.workable.values()] == [1, 1, 5]


def test_a_text_recogniser_at_its_height(ppocr_rec_path, tmp_path):
    found = real(ppocr_rec_path, tmp_path, {"x_2": Range(48, 48, 48)})
    assert symbols_replaced(found, "b", "h", "w") == ["[b, (w+3)//8, 6625]"]


def test_a_text_detector(ppocr_det_path, tmp_path):
    found = real(ppocr_det_path, tmp_path)
    assert symbols_replaced(found, "b", "h", "w") == ["[b, 1, h, w]"]
    assert [rule.multiple_of for rule in found.workable.values()] == [1, 32, 32]


def test_a_text_direction_classifier(ppocr_cls_path, tmp_path):
    found = real(ppocr_cls_path, tmp_path)
    assert symbols_replaced(found, "b", "h", "w") == ["[b, 2]"]


@pytest.mark.parametrize("version", ["silero_path", "silero_ifless_path"])
def test_a_voice_detector(version, tmp_path, request):
    found = real(request.getfixturevalue(version), tmp_path)
    assert sorted(symbols_replaced(found, "b", "n")) == ["[2, b, 128]", "[b, 1]"]
    assert found.workable[found.signature.symbols[1]].holds(576)


def test_a_byte_classifier(magika_path, tmp_path):
    assert symbols_replaced(real(magika_path, tmp_path), "b") == ["[b, 214]"]


def test_real_samples_are_used_and_told(minilm_path, tmp_path):
    from trtc.compiler.samples import load_samples

    np.savez(tmp_path / "s.npz", input_ids=np.array([[101, 7592, 102]]), attention_mask=np.array([[1, 1, 1]]))
    model = load_model(minilm_path, work_folder=tmp_path / "model")
    options = SourceOptions(samples=load_samples([tmp_path / "s.npz"]), budget_s=5)
    ranges = {"batch_size": Range(1, 2, 2), "sequence_length": Range(1, 4, 8)}
    found = find_signature(model, open_reference(model, threads=2), options, ranges)
    assert found.evidence.samples.startswith("1 real sample")
    assert set(
        found.values.feeds({"batch_size": 2, "sequence_length": 5}, np.random.default_rng(0))["input_ids"][0]
    ) == {
        101,
        7592,
        102,
    }


def test_failures_of_a_run_are_engine_errors_not_crashes(model_of):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["B"])}, {"y": (FLOAT, None)})
    with pytest.raises(EngineError, match="double"):
        open_reference(model, threads=1).run({"x": np.zeros(2)})
