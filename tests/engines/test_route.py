"""Routes: what is real, what is filled, what is repeated and what is cut, compared with a picture drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.errors import BundleError
from trtc.engines.route import pad_array, plan_route
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Expr, PadRule, Step, Term

X = TensorSpec("x", "float", ("b", "s"))
Y = TensorSpec("y", "float", ("s", "b", 3))


def padded(array, rules, run, spec=X):
    sizes = dict(zip(spec.dims, array.shape, strict=True))
    plan = plan_route(Signature((spec,), ()), rules, sizes, run)
    return pad_array(array, plan.inputs["x"], plan.layout.inputs["x"].shape)


@pytest.mark.parametrize(
    ("rules", "run", "picture"),
    [
        pytest.param([], {"b": 2, "s": 2}, [[1, 2], [3, 4]], id="exact"),
        pytest.param([PadRule("s", "right", {"x": 9})], {"b": 2, "s": 3}, [[1, 2, 9], [3, 4, 9]], id="right"),
        pytest.param([PadRule("s", "left", {"x": 9})], {"b": 2, "s": 3}, [[9, 1, 2], [9, 3, 4]], id="left"),
        pytest.param([PadRule("b", "rows", {})], {"b": 4, "s": 2}, [[1, 2], [3, 4], [3, 4], [3, 4]], id="rows"),
        pytest.param(
            [PadRule("b", "rows", {}), PadRule("s", "right", {"x": 9})],
            {"b": 3, "s": 3},
            [[1, 2, 9], [3, 4, 9], [3, 4, 9]],
            id="rows-and-right",
        ),
        pytest.param(
            [PadRule("b", "right", {"x": 7}), PadRule("s", "left", {"x": 9})],
            {"b": 3, "s": 3},
            [[9, 1, 2], [9, 3, 4], [9, 7, 7]],
            id="two-constants-the-later-axis-last",
        ),
    ],
)
def test_an_input_is_padded_as_declared(rules, run, picture):
    assert padded(np.array([[1, 2], [3, 4]], np.float32), rules, run).tolist() == picture


def test_a_symbol_on_two_axes_is_padded_on_both():
    spec = TensorSpec("x", "float", ("s", "s"))
    plan = plan_route(Signature((spec,), ()), [PadRule("s", "right", {"x": 0})], {"s": 2}, {"s": 3})
    found = pad_array(np.ones((2, 2), np.float32), plan.inputs["x"], (3, 3))
    assert found.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["left", "right"]))
def test_every_element_is_written_and_the_real_part_can_be_cut_out_again(rows, columns, more_rows, more_columns, side):
    rules = [PadRule("b", "rows", {}), PadRule("s", side, {"x": -5})]
    sizes, run = {"b": rows, "s": columns}, {"b": rows + more_rows, "s": columns + more_columns}
    same = TensorSpec("same", "float", ("b", "s"))
    plan = plan_route(Signature((X,), (same, Y)), rules, sizes, run)
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) + 1
    place = np.full((run["b"], run["s"]), np.nan, np.float32)
    from trtc.engines.route import fill_input

    fill_input(place, x, plan.inputs["x"])
    assert not np.isnan(place).any()
    assert int((place == -5).sum()) == more_columns * (rows + more_rows)
    np.testing.assert_array_equal(place[plan.trims["same"]], x)
    turned = np.broadcast_to(place.T[:, :, None], (run["s"], run["b"], 3))
    np.testing.assert_array_equal(turned[plan.trims["y"]], np.broadcast_to(x.T[:, :, None], (columns, rows, 3)))
    assert plan.padded == bool(more_rows or more_columns)
    assert plan.padded_values == bool(more_columns)


def test_an_expression_is_cut_to_the_value_at_the_real_sizes():
    half = Expr((Term(1, (Step("s", 1, 1, 2),)),))
    for side, cut in (("right", slice(0, 2)), ("left", slice(2, 4))):
        outputs = (TensorSpec("y", "float", (half,)), TensorSpec("fixed", "float", (8,)))
        plan = plan_route(Signature((X,), outputs), [PadRule("s", side, {"x": 0})], {"b": 1, "s": 3}, {"b": 1, "s": 8})
        assert plan.layout.outputs["y"].shape == (4,)
        assert plan.trims == {"y": (cut,), "fixed": (slice(0, 8),)}


def test_a_scalar_keeps_its_rank_through_a_route():
    spec = TensorSpec("x", "float", ())
    plan = plan_route(Signature((spec,), (spec,)), [], {}, {})
    assert pad_array(np.array(4, np.float32), plan.inputs["x"], ()).tolist() == 4
    assert plan.trims == {"x": ()}


def test_a_rule_without_a_fill_for_an_input_that_has_the_symbol_is_a_damaged_bundle():
    with pytest.raises(BundleError, match="input 'x' has no fill for s, which is padded; rebuild"):
        plan_route(Signature((X,), ()), [PadRule("s", "right", {})], {"b": 1, "s": 1}, {"b": 1, "s": 2})
