"""Rows count as independent only where each gives its answer among neighbours that are unlike it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from trtc.compiler.probes.rows import probe_rows
from trtc.compiler.probes.subject import ProbeOptions
from trtc.engines.errors import EngineError
from trtc.profiles import Expr, Step, Term, UsageError

node = helper.make_node
X = {"x": ("float", ("B", 2))}
Y = {"y": ("float", ("B", 2))}


def minus_one_and_one(shape, rng):
    del rng
    return np.broadcast_to([-1, 1], shape)


def sampled_at_16_khz(shape, rng):
    del rng
    return np.full(shape, 16000)


def test_rows_of_a_matrix_product_are_independent(small_case):
    case = small_case([node("MatMul", ["x", "w"], ["y"])], X, Y, {"w": np.float32([[1, 2], [3, 4]])})
    evidence = probe_rows(case.subject, case.reference, "B")
    assert (evidence.kind, evidence.symbol, evidence.accepted, evidence.detail) == ("rows", "B", True, "")
    assert evidence.runs > 10


@pytest.mark.parametrize("limit", [1e6, 1e9])
def test_the_domain_of_rows_ends_before_they_influence_each_other(small_case, limit):
    """Every row is scaled by how often the sum of the whole batch holds a limit that ordinary values never reach."""
    case = small_case(
        [
            node("Abs", ["x"], ["a"]),
            node("ReduceSum", ["a"], ["sum"], keepdims=0),
            node("Div", ["sum", "limit"], ["often"]),
            node("Floor", ["often"], ["whole"]),
            node("Add", ["whole", "one"], ["scale"]),
            node("Mul", ["x", "scale"], ["y"]),
        ],
        X,
        Y,
        {"limit": np.float32(limit), "one": np.float32(1)},
    )
    evidence = probe_rows(case.subject, case.reference, "B")
    assert evidence.accepted
    assert 1 < evidence.domain["x"].high < limit


def test_the_domain_of_rows_holds_every_byte(small_case):
    case = small_case(
        [node("Transpose", ["x"], ["y"], perm=[0, 1])], {"x": ("int8", ("B", 2))}, {"y": ("int8", ("B", 2))}
    )
    domain = probe_rows(case.subject, case.reference, "B").domain["x"]
    assert (domain.low, domain.high, domain.rows_nonzero) == (-128, 127, False)


def test_rows_that_no_operator_can_bring_together_need_no_domain(small_case):
    case = small_case([node("Neg", ["x"], ["y"])], {"x": ("int8", ("B", 2))}, {"y": ("int8", ("B", 2))})
    evidence = probe_rows(case.subject, case.reference, "B")
    assert evidence.accepted
    assert not evidence.domain
    assert "element by element" in evidence.detail


@pytest.fixture(scope="module")
def shared_quantization(small_case):
    return small_case(
        [
            node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
            node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        ],
        X,
        Y,
    )


def test_a_quantization_range_that_rows_share_is_refused(shared_quantization):
    run = shared_quantization.reference.run
    alone = run({"x": np.float32([[0.1, 0.2]])})["y"]
    together = run({"x": np.float32([[0.1, 0.2], [100, -100]])})["y"]
    np.testing.assert_allclose(alone, [[0.1004, 0.2]], atol=1e-4)
    assert together[0].tolist() == [0, 0]

    evidence = probe_rows(shared_quantization.subject, shared_quantization.reference, "B")

    assert not evidence.accepted
    assert evidence.findings[0].max_abs > evidence.findings[0].allowed
    assert "rows influence each other: output 'y'" in evidence.detail


def test_a_shared_range_is_found_where_all_generated_rows_have_the_same(shared_quantization):
    subject = shared_quantization.subject
    alike = replace(subject, values=type(subject.values)(subject.signature, {"x": minus_one_and_one}))
    assert not probe_rows(alike, shared_quantization.reference, "B").accepted


def test_a_mean_over_the_batch_is_refused(small_case):
    case = small_case([node("ReduceMean", ["x"], ["m"], axes=[0], keepdims=1), node("Sub", ["x", "m"], ["y"])], X, Y)
    rows = np.float32([[1, 2], [3, 4]])
    assert case.reference.run({"x": rows})["y"].tolist() == [[-1, -1], [1, 1]]
    assert case.reference.run({"x": rows[:1]})["y"].tolist() == [[0, 0]]
    assert not probe_rows(case.subject, case.reference, "B").accepted


@pytest.mark.parametrize(
    ("target", "dims", "reason"),
    [
        pytest.param([1, -1], (1, Expr((Term(6, (Step("B"),)),))), "no axis of exactly B", id="merged-relation-known"),
        pytest.param([1, -1], ("B", 6), "rows influence each other", id="merged-but-declared-right"),
        pytest.param([1, 6], ("B", 6), "2 rows that run alone do not run together", id="one-row-only"),
    ],
)
def test_a_batch_of_one_baked_into_a_reshape_is_refused(small_case, target, dims, reason):
    case = small_case(
        [node("Reshape", ["x", "shape"], ["y"])],
        {"x": ("float", ("B", 2, 3))},
        {"y": ("float", dims)},
        {"shape": np.array(target)},
    )
    evidence = probe_rows(case.subject, case.reference, "B")
    assert not evidence.accepted
    assert reason in evidence.detail


@pytest.mark.parametrize(
    ("nodes", "dtype", "dims", "reason"),
    [
        pytest.param([node("ReduceSum", ["x"], ["y"], keepdims=0)], "float", (), "batch as a whole", id="total"),
        pytest.param([node("Shape", ["x"], ["y"])], "int64", (2,), "batch as a whole", id="sizes"),
        pytest.param([node("NonZero", ["x"], ["y"])], "int64", (2, None), "depends on the data", id="data-sized"),
        pytest.param([node("Transpose", ["x"], ["t"]), node("MatMul", ["x", "t"], ["y"])], "float", ("B", "B"),
                     "no axis of exactly B", id="every-row-with-every-row"),
    ],
)  # fmt: skip
def test_outputs_that_do_not_split_into_rows_are_refused(small_case, nodes, dtype, dims, reason):
    case = small_case(nodes, X, {"y": (dtype, dims)})
    evidence = probe_rows(case.subject, case.reference, "B")
    assert not evidence.accepted
    assert reason in evidence.detail
    assert "'y'" in evidence.detail


def test_an_output_that_no_row_reaches_is_no_obstacle(small_case):
    case = small_case(
        [node("Relu", ["x"], ["y"]), node("Constant", [], ["version"], value_int=3), node("Neg", ["k"], ["negative"])],
        {**X, "k": ("float", ())},
        {**Y, "version": ("int64", ()), "negative": ("float", ())},
    )
    assert probe_rows(case.subject, case.reference, "B").accepted


def test_rows_may_lie_on_another_axis_than_the_first(small_case):
    case = small_case(
        [node("Relu", ["x"], ["r"]), node("Transpose", ["r"], ["y"], perm=[1, 0, 2])],
        {"x": ("float", (2, "B", 3))},
        {"y": ("float", ("B", 2, 3))},
    )
    assert probe_rows(case.subject, case.reference, "B").accepted


def test_rows_that_mix_on_another_axis_than_the_first_are_refused(small_case):
    case = small_case(
        [node("CumSum", ["x", "axis"], ["y"])],
        {"x": ("float", (2, "B", 3))},
        {"y": ("float", (2, "B", 3))},
        {"axis": np.array(1)},
    )
    assert not probe_rows(case.subject, case.reference, "B").accepted


def test_inputs_without_the_symbol_are_shared_by_the_rows(small_case):
    case = small_case([node("Mul", ["x", "k"], ["y"])], {**X, "k": ("float", ())}, Y)
    assert probe_rows(case.subject, case.reference, "B").accepted


def test_an_input_with_two_batch_axes_is_refused(small_case):
    case = small_case(
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
        {"x": ("float", ("B", "B"))},
        {"y": ("float", ("B",))},
        {"axes": np.array([1])},
    )
    evidence = probe_rows(case.subject, case.reference, "B")
    assert "input 'x' [B, B] has B on more than one axis" in evidence.detail


def test_a_ladder_of_single_rows_proves_nothing(small_case, ladder_of):
    case = small_case([node("Relu", ["x"], ["y"])], X, Y, ladder=ladder_of({"B": (1, 1)}))
    evidence = probe_rows(case.subject, case.reference, "B")
    assert not evidence.accepted
    assert "no batch of two or more rows along B could be compared" in evidence.detail


class Watched:
    """Remembers what it ran, and runs no more rows than it is told."""

    name = "watched"

    def __init__(self, inner, most_rows):
        self.inner, self.most_rows, self.seen = inner, most_rows, []

    def run(self, feeds):
        self.seen.append(feeds["x"])
        if len(feeds["x"]) > self.most_rows:
            raise EngineError("too many rows for me")
        return self.inner.run(feeds)


def test_a_batch_that_does_not_run_refutes_rows_that_agree_in_smaller_ones(small_case):
    case = small_case([node("Relu", ["x"], ["y"])], X, Y)
    evidence = probe_rows(case.subject, Watched(case.reference, 4), "B")
    assert not evidence.accepted
    assert "5 rows that run alone do not run together" in evidence.detail
    assert "too many rows for me" in evidence.detail


def test_the_repeated_rows_that_padding_adds_are_run_as_well(small_case):
    case = small_case([node("Relu", ["x"], ["y"])], X, Y)
    watched = Watched(case.reference, 100)
    assert probe_rows(case.subject, watched, "B").accepted
    batches = [x for x in watched.seen if len(x) == 5]
    assert any((x[1:] == x[1]).all() and (x[0] != x[1]).any() for x in batches)


class Rounding:
    """Rounds values out of the ordinary differently in batches, as deep models do."""

    name = "rounding"

    def __init__(self, inner):
        self.inner = inner

    def run(self, feeds):
        outputs = self.inner.run(feeds)
        far = np.abs(feeds["x"]).max(axis=1, keepdims=True) > 50
        return {"y": np.where(far & (len(feeds["x"]) > 1), outputs["y"] * np.float32(1.001), outputs["y"])}


def test_rounding_in_values_out_of_the_ordinary_is_not_held_against_a_model(small_case):
    case = small_case([node("Relu", ["x"], ["y"])], X, Y)
    assert probe_rows(case.subject, Rounding(case.reference), "B").accepted


def test_an_unknown_symbol_is_refused_with_the_nearest(small_case):
    case = small_case([node("Relu", ["x"], ["y"])], X, Y)
    with pytest.raises(UsageError, match="did you mean 'B'"):
        probe_rows(case.subject, case.reference, "b")


def test_the_same_seed_gives_the_same_rows(shared_quantization):
    first, second = (
        probe_rows(shared_quantization.subject, shared_quantization.reference, "B", ProbeOptions(seed=5))
        for _ in range(2)
    )
    assert first == second


def test_rows_of_a_sentence_encoder_are_independent(minilm, ladder_of):
    case = minilm(ladder_of({"b": (1, 8), "s": (1, 32)}))
    assert probe_rows(case.subject, case.reference, "b").accepted


def test_rows_of_a_file_type_classifier_are_independent(real_case, magika_path, ladder_of):
    case = real_case(
        magika_path,
        {"bytes": ("int32", ("b", 2048))},
        {"target_label": ("float", ("b", 214))},
        ladder_of({"b": (1, 3)}),
        {"bytes": lambda shape, rng: rng.integers(0, 257, shape)},
    )
    assert probe_rows(case.subject, case.reference, "b").accepted


def test_rows_of_a_text_line_recogniser_are_independent(real_case, ppocr_rec_path, ladder_of):
    case = real_case(
        ppocr_rec_path,
        {"x": ("float", ("b", 3, "h", "w"))},
        {"softmax_11.tmp_0": ("float", ("b", Expr((Term(1, (Step("w", 1, 0, 8),)),)), 6625))},
        ladder_of({"b": (1, 3), "h": (48, 48), "w": (48, 64)}),
        {"x": lambda shape, rng: rng.uniform(-1, 1, shape)},
    )
    assert probe_rows(case.subject, case.reference, "b").accepted


def test_rows_of_a_recurrent_state_are_independent(real_case, silero_ifless_path, ladder_of):
    case = real_case(
        silero_ifless_path,
        {"input": ("float", ("b", 576)), "state": ("float", (2, "b", 128)), "sr": ("int64", ())},
        {"output": ("float", ("b", 1)), "stateN": ("float", (2, "b", 128))},
        ladder_of({"b": (1, 5)}),
        {"sr": sampled_at_16_khz, "input": lambda shape, rng: rng.uniform(-1, 1, shape)},
    )
    assert probe_rows(case.subject, case.reference, "b").accepted
