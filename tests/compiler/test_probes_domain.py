"""For which values padding is shown to be exact, and that values which break it are found."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from trtc.compiler.probes.domain import inside
from trtc.compiler.probes.padding import probe_padding
from trtc.engines.route import pad_array, plan_route
from trtc.profiles import PadRule

node = helper.make_node
BY_S = ("B", "S")
X = {"x": ("float", BY_S)}


def right(symbol="S", **fills):
    return PadRule(symbol, "right", fills or {"x": 0})


def test_an_effect_that_only_full_masks_have_is_found(small_case, ladder_of, make_mask):
    """A bonus for rows of more than eight without a single 0: generated masks of that size hardly ever are full."""
    case = small_case(
        [
            node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
            node("Mul", ["x", "m"], ["kept"]),
            node("ReduceSum", ["kept", "axes"], ["total"], keepdims=0),
            node("ReduceSum", ["m", "axes"], ["count"], keepdims=0),
            node("ReduceMin", ["m"], ["full"], axes=[1], keepdims=0),
            node("Greater", ["count", "eight"], ["long"]),
            node("Cast", ["long"], ["l"], to=TensorProto.FLOAT),
            node("Mul", ["full", "l"], ["bonus"]),
            node("Add", ["total", "bonus"], ["y"]),
        ],
        {"x": ("float", BY_S), "mask": ("int64", BY_S)},
        {"y": ("float", ("B",))},
        {"axes": np.array([1]), "eight": np.float32(8)},
        ladder=ladder_of({"B": (1, 4), "S": (1, 64)}),
        make={"mask": make_mask},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right(x=0, mask=0)])
    assert not evidence.accepted


@pytest.mark.parametrize("silence", [1e-2, 1e-4, 1e-6])
def test_a_threshold_near_zero_is_found(small_case, ladder_of, silence):
    """The mean, which zeros make smaller, decides whether there is silence."""
    case = small_case(
        [
            node("Abs", ["x"], ["a"]),
            node("ReduceMean", ["a"], ["mean"], axes=[1], keepdims=0),
            node("Less", ["mean", "silence"], ["y"]),
        ],
        X,
        {"y": ("bool", ("B",))},
        {"silence": np.float32(silence)},
        ladder=ladder_of({"B": (1, 4), "S": (1, 64)}),
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert not evidence.accepted


@pytest.fixture(scope="module")
def masked_average_weights(small_case, make_mask):
    """Softmax over scores with -10000 where the mask is 0: a row without a single 1 averages over everything."""
    return small_case(
        [
            node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
            node("Sub", ["one", "m"], ["hidden"]),
            node("Mul", ["hidden", "far"], ["bias"]),
            node("Add", ["x", "bias"], ["scores"]),
            node("Softmax", ["scores"], ["y"], axis=1),
        ],
        {"x": ("float", BY_S), "mask": ("int64", BY_S)},
        {"y": ("float", BY_S)},
        {"one": np.float32(1), "far": np.float32(-10000)},
        make={"mask": make_mask},
    )


def test_rows_of_zeros_leave_the_domain_of_a_mask_that_they_break(masked_average_weights):
    case = masked_average_weights
    rule = right(x=0, mask=0)
    (evidence,) = probe_padding(case.subject, case.reference, [rule])
    assert evidence.accepted
    assert evidence.domain["mask"].rows_nonzero
    x, hidden = np.zeros((1, 2), np.float32), np.zeros((1, 2), np.int64)
    assert inside(evidence.domain, {"x": x, "mask": np.array([[1, 0]])})
    assert not inside(evidence.domain, {"x": x, "mask": hidden})
    # What is kept out is really wrong: half becomes a quarter.
    sizes, run_sizes = {"B": 1, "S": 2}, {"B": 1, "S": 4}
    route = plan_route(case.subject.signature, [rule], sizes, run_sizes)
    padded = {n: pad_array(a, route.inputs[n], (1, 4)) for n, a in {"x": x, "mask": hidden}.items()}
    assert case.reference.run({"x": x, "mask": hidden})["y"][0].tolist() == [0.5, 0.5]
    assert case.reference.run(padded)["y"][0].tolist() == [0.25, 0.25, 0.25, 0.25]


def test_the_domain_of_floats_ends_where_the_mask_is_overwhelmed(masked_average_weights):
    (evidence,) = probe_padding(masked_average_weights.subject, masked_average_weights.reference, [right(x=0, mask=0)])
    assert 100 < evidence.domain["x"].high < 10000


def test_the_domain_of_floats_ends_before_the_model_overflows(small_case):
    case = small_case([node("Exp", ["x"], ["y"])], X, {"y": ("float", BY_S)})
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert evidence.accepted
    assert evidence.domain["x"].high < 89  # the exponential of 89 is beyond float32


def test_real_samples_can_refute_padding_that_generated_values_do_not(small_case, make_mask):
    del make_mask
    case = small_case(
        [node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)],
        X,
        {"y": ("float", ("B",))},
        make={"x": lambda shape, rng: rng.uniform(1, 2, shape)},
    )
    assert probe_padding(case.subject, case.reference, [right()])[0].accepted
    sampled = small_case(
        [node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)],
        X,
        {"y": ("float", ("B",))},
        make={"x": lambda shape, rng: rng.uniform(1, 2, shape)},
        samples=({"x": np.full((1, 3), -1, np.float32)},),
    )
    (evidence,) = probe_padding(sampled.subject, sampled.reference, [right()])
    assert not evidence.accepted
    assert evidence.samples == "1 real sample; generated by the test"


def test_positive_values_keep_the_domain_of_a_zero_padded_maximum_positive(small_case):
    case = small_case(
        [node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)],
        X,
        {"y": ("float", ("B",))},
        make={"x": lambda shape, rng: rng.uniform(1, 2, shape)},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right()])
    assert evidence.accepted
    assert evidence.domain["x"].low >= 0


def test_a_largest_value_is_refuted_by_the_negative_half_of_the_domain(small_case):
    case = small_case(
        [node("ReduceMax", ["x"], ["y"], axes=[1, 2], keepdims=0)],
        {"x": ("float", ("B", "S", 32))},
        {"y": ("float", ("B",))},
        # One value of each vector is positive, so that no generated request is negative throughout.
        make={"x": lambda shape, rng: np.where(np.arange(shape[-1]) == 0, 1, rng.uniform(-1, 1, shape))},
    )
    assert not probe_padding(case.subject, case.reference, [right()])[0].accepted


def test_table_indices_stay_inside_and_their_whole_table_is_probed(small_case):
    case = small_case(
        [node("Gather", ["table", "ids"], ["y"], axis=0)],
        {"ids": ("int64", BY_S)},
        {"y": ("float", ("B", "S", 2))},
        {"table": np.arange(40, dtype=np.float32).reshape(20, 2)},
        limits={"ids": (0, 19)},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right(ids=0)])
    assert evidence.accepted
    assert (evidence.domain["ids"].low, evidence.domain["ids"].high) == (0, 19)
    assert evidence.detail == "the padding of ids may hold any legal value"


def test_integers_that_leave_a_table_are_not_taken_into_the_domain(small_case):
    case = small_case(
        [node("Gather", ["table", "ids"], ["y"], axis=0)],
        {"ids": ("int64", BY_S)},
        {"y": ("float", ("B", "S", 2))},
        {"table": np.arange(40, dtype=np.float32).reshape(20, 2)},
    )
    (evidence,) = probe_padding(case.subject, case.reference, [right(ids=0)])
    assert evidence.accepted
    assert evidence.domain["ids"].high == 9  # as generated: wider ranges failed in the model
