"""Padding is accepted only where padded and trimmed equals exact."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.probes.padding import probe_padding
from trtc.compiler.probes.subject import ProbeOptions
from trtc.engines.route import pad_array, plan_route
from trtc.profiles import Expr, PadRule, Step, Term, UsageError

node = helper.make_node
BY_S = ("B", "S")
X = {"x": ("float", BY_S)}
CUBE = {"x": ("float", ("B", "S", 2))}
FLAT = Expr((Term(1, (Step("B"), Step("S"))),))
P_PLUS_S = Expr((Term(1, (Step("P"),)), Term(1, (Step("S"),))))


def ones(shape, rng):
    del rng
    return np.ones(shape)


def right(symbol="S", **fills):
    return PadRule(symbol, "right", fills or {"x": 0})


def left(symbol="S", **fills):
    return PadRule(symbol, "left", fills or {"x": 0})


@pytest.fixture(scope="module")
def broken_by_padding(small_case):
    """Five models of one node that zero padding breaks, each with an input, its right and its padded answer."""
    return {
        "mean": (
            small_case([node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)], X, {"y": ("float", ("B",))}),
            np.ones((1, 3), np.float32),
            [1.0],
            [0.75],
        ),
        "softmax": (
            small_case([node("Softmax", ["x"], ["y"], axis=1)], X, {"y": ("float", BY_S)}),
            np.zeros((1, 3), np.float32),
            [[1 / 3] * 3],
            [[1 / 4] * 3],
        ),
        "argmax": (
            small_case([node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], X, {"y": ("int64", ("B",))}),
            np.array([[-3, -1, -2]], np.float32),
            [1],
            [3],
        ),
        "global-average-pool": (
            small_case(
                [node("GlobalAveragePool", ["x"], ["y"])],
                {"x": ("float", ("B", 2, "S"))},
                {"y": ("float", ("B", 2, 1))},
            ),
            np.ones((1, 2, 3), np.float32),
            [[[1.0], [1.0]]],
            [[[0.75], [0.75]]],
        ),
        "flatten": (
            small_case([node("Flatten", ["x"], ["y"], axis=0)], X, {"y": ("float", (1, FLAT))}),
            np.array([[1, 2], [3, 4]], np.float32),
            [[1, 2, 3, 4]],
            [[1, 2, 0, 3]],
        ),
    }


@pytest.mark.parametrize("name", ["mean", "softmax", "argmax", "global-average-pool", "flatten"])
def test_padding_that_changes_answers_is_refused_with_the_error(broken_by_padding, name):
    case, x, exact, padded = broken_by_padding[name]
    full = (*x.shape[:-1], x.shape[-1] + 1)
    sizes = {"B": x.shape[0], "S": x.shape[-1]}
    route = plan_route(case.subject.signature, [right()], sizes, {**sizes, "S": sizes["S"] + 1})
    naive = case.reference.run({"x": pad_array(x, route.inputs["x"], full)})["y"][route.trims["y"]]
    np.testing.assert_allclose(case.reference.run({"x": x})["y"], exact, rtol=1e-6)
    np.testing.assert_allclose(naive, padded, rtol=1e-6)

    (evidence,) = probe_padding(case.subject, case.reference, [right()])

    assert not evidence.accepted
    assert not evidence.deviation_accepted
    (finding,) = evidence.findings
    assert finding.output == "y"
    assert finding.max_abs > finding.allowed
    assert finding.sizes["S padded"] > finding.sizes["S"]
    assert "output 'y'" in evidence.detail


def test_the_measured_error_of_a_mean_is_recorded(small_case, ladder_of):
    case = small_case(
        [node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0)],
        X,
        {"y": ("float", ("B",))},
        ladder=ladder_of({"B": (1, 1), "S": (1, 4)}),
        make={"x": ones},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert evidence.findings[0].sizes == {"B": 1, "S": 1, "S padded": 4}
    assert evidence.findings[0].max_abs == pytest.approx(0.75)  # one real element of four


def test_a_known_deviation_is_recorded_when_the_user_accepts_it(broken_by_padding):
    case = broken_by_padding["mean"][0]
    (evidence,) = probe_padding(case.subject, case.reference, [PadRule("S", "right", {"x": 0}, accept_error=True)])
    assert (evidence.accepted, evidence.deviation_accepted) == (False, True)
    assert evidence.findings[0].max_abs > 0.1
    assert evidence.domain["x"].low < 0 < evidence.domain["x"].high


def test_an_exact_rule_needs_no_accepted_deviation(small_case):
    case = small_case([node("Exp", ["x"], ["y"])], X, {"y": ("float", BY_S)})
    (evidence,) = probe_padding(case.subject, case.reference, [PadRule("S", "right", {"x": 0}, accept_error=True)])
    assert (evidence.accepted, evidence.deviation_accepted) == (True, False)


@pytest.mark.parametrize("rule", [right(), left(), right(x=7.5)])
def test_an_elementwise_model_may_be_padded_with_anything(small_case, rule):
    case = small_case([node("Tanh", ["x"], ["y"])], X, {"y": ("float", BY_S)})
    (evidence,) = probe_padding(case.subject, case.reference, [rule])
    assert evidence.accepted
    assert "the padding of x may hold any legal value (also 1000 times larger: x)" in evidence.detail
    assert evidence.domain["x"].low < -1e4 < 1e4 < evidence.domain["x"].high
    assert not evidence.domain["x"].rows_nonzero


def test_last_token_models_are_padded_on_the_left_only(small_case):
    case = small_case(
        [node("Gather", ["x", "last"], ["y"], axis=1)],
        CUBE,
        {"y": ("float", ("B", 2))},
        {"last": np.array(-1)},
    )
    x = np.array([[[1, 1], [2, 2]]], np.float32)
    assert case.reference.run({"x": x})["y"].tolist() == [[2, 2]]
    assert not probe_padding(case.subject, case.reference, [right()])[0].accepted
    assert probe_padding(case.subject, case.reference, [left()])[0].accepted


@pytest.mark.parametrize(("rule", "accepted"), [(right(), True), (left(), True), (left(x=1), False)])
def test_a_cumulative_sum_takes_zeros_on_either_side(small_case, rule, accepted):
    case = small_case([node("CumSum", ["x", "axis"], ["y"])], X, {"y": ("float", BY_S)}, {"axis": np.array(1)})
    assert probe_padding(case.subject, case.reference, [rule])[0].accepted is accepted


def test_zeros_that_a_sum_needs_are_said_to_be_what_makes_it_neutral(small_case):
    case = small_case(
        [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], X, {"y": ("float", ("B",))}, {"axes": np.array([1])}
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert evidence.accepted
    assert evidence.detail == "x is neutral only by its fill"


@pytest.fixture(scope="module")
def masked_mean(small_case, make_mask):
    return small_case(
        [
            node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
            node("Mul", ["x", "m"], ["kept"]),
            node("ReduceSum", ["kept", "axes"], ["total"], keepdims=0),
            node("ReduceSum", ["m", "axes"], ["count"], keepdims=0),
            node("Div", ["total", "count"], ["y"]),
        ],
        {"x": ("float", BY_S), "mask": ("int64", BY_S)},
        {"y": ("float", ("B",))},
        {"axes": np.array([1])},
        make={"mask": make_mask},
    )


def test_a_masked_mean_is_accepted_and_its_mask_is_named_as_the_guard(masked_mean):
    (evidence,) = probe_padding(masked_mean.subject, masked_mean.reference, [right(x=0, mask=0)])
    assert evidence.accepted
    assert "the padding of x may hold any legal value" in evidence.detail
    assert "mask guards it by its fill" in evidence.detail


def test_a_mask_filled_with_ones_is_refused(masked_mean):
    (evidence,) = probe_padding(masked_mean.subject, masked_mean.reference, [right(x=0, mask=1)])
    assert not evidence.accepted


def test_an_output_that_holds_sizes_forbids_padding(small_case):
    case = small_case([node("Shape", ["x"], ["y"])], X, {"y": ("int64", (2,))})
    assert case.reference.run({"x": np.zeros((3, 5), np.float32)})["y"].tolist() == [3, 5]
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert not evidence.accepted
    assert evidence.findings[0].max_abs >= 1


def test_an_output_sized_by_the_data_forbids_padding_before_anything_runs(small_case):
    case = small_case([node("NonZero", ["x"], ["y"])], X, {"y": ("int64", (2, None))})
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert (evidence.accepted, evidence.runs) == (False, 0)
    assert "output 'y' [2, ?]" in evidence.detail


def test_an_output_sized_by_the_data_of_another_input_is_no_obstacle(small_case):
    case = small_case(
        [node("Relu", ["x"], ["y"]), node("NonZero", ["w"], ["z"])],
        {**X, "w": ("float", (4,))},
        {"y": ("float", BY_S), "z": ("int64", (1, None))},
    )
    assert probe_padding(case.subject, case.reference, [right()])[0].accepted


@pytest.mark.parametrize(
    ("rules", "accepted"),
    [
        pytest.param([left("P", a=0)], [True], id="first-part-on-the-left"),
        pytest.param([right("S", b=0)], [True], id="second-part-on-the-right"),
        pytest.param([right("P", a=0)], [False], id="first-part-on-the-right"),
        pytest.param([left("S", b=0)], [False], id="second-part-on-the-left"),
        pytest.param([left("P", a=0), right("S", b=0)], [True, True, False], id="both-outside-cannot-be-cut-as-one"),
        pytest.param([left("P", a=0), left("S", b=0)], [True, False, False], id="both-on-the-left"),
    ],
)
def test_a_concatenation_is_padded_at_its_outer_ends_only(small_case, rules, accepted):
    case = small_case(
        [node("Concat", ["a", "b"], ["y"], axis=0)],
        {"a": ("float", ("P",)), "b": ("float", ("S",))},
        {"y": ("float", (P_PLUS_S,))},
    )
    evidence = probe_padding(case.subject, case.reference, rules)
    assert [e.accepted for e in evidence] == accepted
    assert evidence[-1].symbol == ",".join(rule.symbol for rule in rules)


def test_padding_on_both_sides_of_one_axis_is_refused_by_name(small_case):
    case = small_case(
        [node("Concat", ["a", "b"], ["y"], axis=0)],
        {"a": ("float", ("P",)), "b": ("float", ("S",))},
        {"y": ("float", (P_PLUS_S,))},
    )
    evidence = probe_padding(case.subject, case.reference, [left("P", a=0), right("S", b=0)])
    assert "axis P+S with padding on both sides (P left, S right)" in evidence[-1].detail


def test_rows_are_examined_together_with_the_other_rules(masked_mean):
    rules = [right(x=0, mask=0), PadRule("B", "rows", {})]
    single, together = probe_padding(masked_mean.subject, masked_mean.reference, rules)
    assert (single.symbol, single.accepted) == ("S", True)
    assert (together.symbol, together.accepted) == ("S,B", True)


def test_an_input_axis_that_is_an_expression_cannot_be_padded(small_case):
    case = small_case(
        [node("Relu", ["a"], ["y"]), node("Relu", ["mask"], ["z"])],
        {"a": ("float", ("P",)), "b": ("float", ("S",)), "mask": ("float", (P_PLUS_S,))},
        {"y": ("float", ("P",)), "z": ("float", (P_PLUS_S,))},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right("P", a=0, mask=0)])
    assert not evidence.accepted
    assert "input 'mask' has an axis P+S" in evidence.detail


def test_an_input_that_decides_shapes_cannot_be_padded(small_case):
    case = small_case([node("Relu", ["x"], ["y"])], X, {"y": ("float", BY_S)})
    case.subject.values.carries_shape = ("x",)
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert not evidence.accepted
    assert "decides shapes by its values" in evidence.detail


def test_a_ladder_without_room_for_padding_proves_nothing(small_case, ladder_of):
    ladder = ladder_of({"B": (1, 1), "S": (1, 1)})
    case = small_case([node("Relu", ["x"], ["y"])], X, {"y": ("float", BY_S)}, ladder=ladder)
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert not evidence.accepted
    assert "nothing could be compared" in evidence.detail


def test_sizes_that_the_model_cannot_run_are_counted(small_case, ladder_of):
    case = small_case(
        [node("MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[1], pads=[0, 0])],
        {"x": ("float", ("B", 1, "S"))},
        {"y": ("float", ("B", 1, Expr((Term(1, (Step("S"),)),), -2)))},
        ladder=ladder_of({"B": (1, 2), "S": (3, 9)}),
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert evidence.accepted
    assert "sizes that the reference could not run: 1, such as B=2, S=1" in evidence.detail


def test_the_same_seed_gives_the_same_evidence(masked_mean):
    options = ProbeOptions(seed=3)
    first, second = (
        probe_padding(masked_mean.subject, masked_mean.reference, [right(x=0, mask=0)], options) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(right("seq"), "unknown symbol 'seq'", id="symbol"),
        pytest.param(PadRule("S", "right", {}), "--fill x=VALUE", id="missing-fill"),
        pytest.param(PadRule("S", "right", {"x": 0, "y": 0}), "unknown input 'y'", id="unknown-input"),
        pytest.param(right(x=1e300), "too large", id="too-large"),
    ],
)
def test_rules_that_do_not_fit_the_model_are_refused(small_case, rule, message):
    case = small_case([node("Relu", ["x"], ["y"])], X, {"y": ("float", BY_S)})
    with pytest.raises(UsageError, match=message):
        probe_padding(case.subject, case.reference, [rule])


@pytest.mark.parametrize("fill", [300, -1, 0.5, float("nan")])
def test_a_fill_must_be_a_value_of_its_input(small_case, fill):
    case = small_case([node("Identity", ["x"], ["y"])], {"x": ("uint8", BY_S)}, {"y": ("uint8", BY_S)})
    with pytest.raises(UsageError, match="give a whole number from 0 to 255"):
        probe_padding(case.subject, case.reference, [right(x=fill)])


def test_masked_right_padding_of_a_sentence_encoder_is_exact(minilm, ladder_of):
    case = minilm(ladder_of(*({"b": (1, 4), "s": (1, n)} for n in (16, 64))))
    (evidence,) = probe_padding(case.subject, case.reference, [right("s", input_ids=0, attention_mask=0)])
    assert evidence.accepted
    assert evidence.domain["attention_mask"].rows_nonzero
    assert "attention_mask guards it by its fill" in evidence.detail
    assert {f.output for f in evidence.findings} == {"output", "463", "onnx::Shape_422", "461"}


def test_unmasked_padding_of_a_sentence_encoder_is_refused(minilm, ladder_of):
    case = minilm(ladder_of({"b": (1, 2), "s": (1, 16)}))
    (evidence,) = probe_padding(case.subject, case.reference, [right("s", input_ids=0, attention_mask=1)])
    assert not evidence.accepted
    assert max(f.max_abs for f in evidence.findings) > 0.1


def test_padding_the_width_of_text_lines_is_refused(real_case, ppocr_rec_path, ladder_of):
    steps = Expr((Term(1, (Step("w", 1, 0, 8),)),))
    case = real_case(
        ppocr_rec_path,
        {"x": ("float", ("b", 3, "h", "w"))},
        {"softmax_11.tmp_0": ("float", ("b", steps, 6625))},
        ladder_of({"b": (1, 2), "h": (48, 48), "w": (48, 160)}),
        {"x": lambda shape, rng: rng.uniform(-1, 1, shape)},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right("w", x=0)], ProbeOptions(max_cases=4))
    assert not evidence.accepted
    assert 100 * evidence.findings[0].allowed < evidence.findings[0].max_abs <= 1  # of a probability
