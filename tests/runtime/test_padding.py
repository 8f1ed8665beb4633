"""Padding: only where it was declared and shown, cut off again, and never with values of an earlier call."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from trtc.engines.manifest import ValueDomain
from trtc.profiles import Expr, PadRule, Step, Term
from trtc.runtime import BundleError, RequestError

F = np.float32
SEQ = PadRule("seq", "right", {"x": 0, "mask": 0})
LEFT = PadRule("seq", "left", {"x": 0, "mask": 0})
ROWS = PadRule("batch", "rows", {})
BUCKET = ({"batch": (1, 4), "seq": (1, 8)},)


def masked(batch, seq, rng):
    return {"x": rng.integers(-9, 9, (batch, seq)).astype(F), "mask": rng.integers(0, 2, (batch, seq))}


@pytest.mark.parametrize(
    "padding", [(SEQ,), (LEFT,), (ROWS,), (SEQ, ROWS), (ROWS, LEFT)], ids=["right", "left", "rows", "both", "left-rows"]
)
def test_a_padded_result_is_cut_to_what_the_exact_run_gives(open_bundle, plain, masked_sum, rng, padding):
    session = open_bundle(masked_sum, profiles=BUCKET, mode="bucket", padding=padding, slots=1)
    padded = {rule.symbol for rule in padding}
    for batch, seq in [(1, 1), (2, 3), (4, 8), (3, 8), (4, 5), (2, 3), (1, 1)] * 2:
        feeds = masked(batch, seq, rng)
        expected = plain(masked_sum, feeds)
        found = session.run(feeds)
        run = session.explain({"batch": batch, "seq": seq}).run_sizes
        assert run == {"batch": 4 if "batch" in padded else batch, "seq": 8 if "seq" in padded else seq}
        for name, array in expected.items():
            assert found[name].shape == array.shape
            np.testing.assert_array_equal(found[name], array)
        with session.borrow(feeds) as views:
            for name, array in found.items():
                np.testing.assert_array_equal(views[name], array)


def test_padding_reaches_the_engine_as_declared(open_bundle, graphs):
    """The padded places are read back through an output of another symbol, which is not cut."""
    node = graphs.node("Identity", ["x"], ["y"])
    model = graphs.model([node], [graphs.value("x", ("batch", "seq"))], [graphs.value("y", (4, 8))])
    session = open_bundle(
        model, profiles=BUCKET, mode="bucket", padding=(PadRule("seq", "left", {"x": -7}), ROWS), slots=1
    )
    for i in range(6):
        x = np.array([[1, 2], [3, 4]], F) * i
        with session.borrow({"x": x}) as views:
            borrowed = views["y"].copy()
        for seen in (session.run({"x": x + 1})["y"] - 1, borrowed):
            assert (seen[:, :6] == (-8 if seen is not borrowed else -7)).all()
            assert seen[:, 6:].tolist() == [[i, 2 * i], *[[3 * i, 4 * i]] * 3]


def test_the_fill_is_written_again_when_another_request_used_the_slot_in_between(open_bundle, graphs):
    """A padded run sums its padding: values of a larger request that were left there would show."""
    nodes = [graphs.node("ReduceSum", ["x"], ["y"], keepdims=0)]
    model = graphs.model(nodes, [graphs.value("x", ("seq",))], [graphs.value("y", ())])
    session = open_bundle(
        model, profiles=({"seq": (1, 8)},), mode="bucket", padding=(PadRule("seq", "right", {"x": 0}),), slots=1
    )
    for size, filler in [(8, 100), (3, 1), (6, 50), (3, 2), (3, 3), (5, 9), (2, 1), (8, 7), (1, 4)] * 3:
        x = np.full(size, filler, F)
        assert session.run({"x": x})["y"] == size * filler
        with session.borrow({"x": x}) as views:
            assert views["y"] == size * filler


@pytest.mark.parametrize("way", ["run", "borrow"])
def test_a_failed_write_does_not_leave_a_wrong_fill_behind(open_bundle, graphs, way):
    nodes = [graphs.node("ReduceSum", ["x"], ["y"], keepdims=0)]
    model = graphs.model(nodes, [graphs.value("x", ("seq",))], [graphs.value("y", ())])
    session = open_bundle(
        model, profiles=({"seq": (1, 8)},), mode="bucket", padding=(PadRule("seq", "right", {"x": 0}),), slots=1
    )

    def call(x):
        if way == "run":
            return session.run({"x": x})["y"]
        with session.borrow({"x": x}) as views:
            return views["y"].copy()

    call(np.full(3, 1, F))
    call(np.full(8, 9, F))
    (slot,) = session._core.pool.slots
    route = slot.routes[(3,)]
    del slot
    constants, route.constants = route.constants, ((np.zeros(2), np.zeros(3)),)
    with pytest.raises(ValueError, match="broadcast"):
        call(np.full(3, 1, F))
    route.constants = constants
    assert call(np.full(3, 1, F)) == 3


@pytest.fixture
def counting(graphs):
    """``y = seq size that the engine saw + 0 * sum(mask * x)``: shows whether a request was padded."""
    nodes = [
        graphs.node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
        graphs.node("Mul", ["x", "m"], ["xm"]),
        graphs.node("Shape", ["xm"], ["shape"]),
        graphs.node("ReduceProd", ["shape"], ["elements"], keepdims=0),
    ]
    inputs = [graphs.value("x", ("batch", "seq")), graphs.value("mask", ("batch", "seq"), TensorProto.INT64)]
    return graphs.model(nodes, inputs, [graphs.value("elements", (), TensorProto.INT64)])


DOMAIN = {"mask": ValueDomain(low=0, high=1, rows_nonzero=True)}


@pytest.mark.parametrize(
    ("mask", "x", "elements"),
    [
        pytest.param([[1, 1, 0]], [[1, 2, 3]], 8, id="inside"),
        pytest.param([[0, 0, 0]], [[1, 2, 3]], 3, id="a-row-all-zero"),
        pytest.param([[1, 2, 0]], [[1, 2, 3]], 3, id="above"),
        pytest.param([[1, -1, 0]], [[1, 2, 3]], 3, id="below"),
        pytest.param([[1, 1, 1]], [[9, 2, 3]], 3, id="another-input-above"),
        pytest.param([[1, 1, 1]], [[np.nan, 2, 3]], 3, id="nan"),
        pytest.param([[1, 1, 1]], [[np.inf, 2, 3]], 3, id="infinity"),
    ],
)
def test_values_outside_of_the_probed_domain_run_at_their_exact_sizes(open_bundle, counting, mask, x, elements):
    domains = {**DOMAIN, "x": ValueDomain(low=-5, high=5)}
    session = open_bundle(counting, profiles=BUCKET, mode="bucket", padding=(SEQ,), domains=domains, slots=1)
    feeds = {"mask": np.array(mask), "x": np.array(x, F)}
    inside = {"mask": np.ones((1, 3), np.int64), "x": np.ones((1, 3), F)}
    for _ in range(3):
        assert session.run(feeds)["elements"] == elements
        assert session.run(inside)["elements"] == 8
        with session.borrow(feeds) as views:
            assert views["elements"] == elements


def test_the_domain_is_checked_for_a_lone_input_as_well(open_bundle, graphs):
    nodes = [graphs.node("Relu", ["x"], ["r"]), graphs.node("Shape", ["r"], ["shape"])]
    model = graphs.model(nodes, [graphs.value("x", ("seq",))], [graphs.value("shape", (1,), TensorProto.INT64)])
    session = open_bundle(
        model,
        profiles=({"seq": (1, 8)},),
        mode="bucket",
        padding=(PadRule("seq", "right", {"x": 0}),),
        domains={"x": ValueDomain(low=0, high=1)},
    )
    for _ in range(3):
        assert session.run({"x": np.array([0, 1], F)})["shape"].tolist() == [8]
        assert session.run({"x": np.array([0, 2], F)})["shape"].tolist() == [2]


def test_a_full_bucket_does_not_look_at_the_domain_of_filled_padding(open_bundle, counting):
    session = open_bundle(counting, profiles=BUCKET, mode="bucket", padding=(SEQ, ROWS), domains=DOMAIN)
    feeds = {"mask": np.zeros((2, 8), np.int64), "x": np.ones((2, 8), F)}
    for _ in range(2):
        assert session.run(feeds)["elements"] == 4 * 8


def test_values_that_rows_were_not_tried_with_run_as_many_rows_as_they_are(open_bundle, counting):
    tried = {"x": ValueDomain(low=-1, high=1)}
    session = open_bundle(counting, profiles=BUCKET, mode="bucket", padding=(SEQ, ROWS), row_domains=tried)
    mask = np.ones((2, 8), np.int64)
    for value, elements in [(1, 4 * 8), (2, 2 * 8), (np.nan, 2 * 8)] * 2:
        assert session.run({"mask": mask, "x": np.full((2, 8), value, F)})["elements"] == elements
    # Filled padding in the same run is bound by both.
    assert session.run({"mask": mask[:, :3], "x": np.full((2, 3), 2, F)})["elements"] == 2 * 3


def test_values_that_may_not_be_padded_into_a_profile_are_refused_with_both_reasons(open_bundle, counting):
    profiles = ({"batch": (1, 4), "seq": (4, 8)},)
    session = open_bundle(counting, profiles=profiles, mode="bucket", padding=(SEQ,), domains=DOMAIN)
    assert session.run({"mask": np.ones((1, 3), np.int64), "x": np.ones((1, 3), F)})["elements"] == 8
    with pytest.raises(RequestError, match=r"'mask' holds values outside of .*\(0..1, no row all zero\).*seq=3, but"):
        session.run({"mask": np.zeros((1, 3), np.int64), "x": np.ones((1, 3), F)})


def test_a_size_of_zero_is_never_padded(open_bundle, counting):
    session = open_bundle(counting, profiles=({"batch": (0, 4), "seq": (0, 8)},), mode="bucket", padding=(SEQ, ROWS))
    for batch, seq in [(0, 8), (4, 0), (0, 0), (0, 3), (2, 0)]:
        feeds = {"mask": np.ones((batch, seq), np.int64), "x": np.ones((batch, seq), F)}
        for _ in range(2):
            assert session.run(feeds)["elements"] == 0


@pytest.mark.parametrize("mode", ["exact", "bucket"])
def test_a_size_below_the_profile_is_padded_up_to_it_where_allowed(open_bundle, counting, mode):
    profiles = ({"batch": (1, 4), "seq": (4, 8)},)
    feeds = {"mask": np.ones((1, 1), np.int64), "x": np.ones((1, 1), F)}
    session = open_bundle(counting, profiles=profiles, mode=mode, padding=(SEQ,))
    assert session.run(feeds)["elements"] == (4 if mode == "exact" else 8)
    refusing = open_bundle(counting, profiles=profiles, mode=mode)
    with pytest.raises(RequestError, match=r"seq=1, but this bundle serves seq 4\.\.8; send a larger request"):
        refusing.run(feeds)


def test_exact_mode_pads_nothing_that_fits(open_bundle, counting):
    session = open_bundle(counting, profiles=BUCKET, mode="exact", padding=(SEQ, ROWS))
    assert session.run({"mask": np.ones((2, 3), np.int64), "x": np.ones((2, 3), F)})["elements"] == 6


def test_outputs_are_cut_by_symbol_and_not_by_place_or_size(open_bundle, graphs):
    nodes = [graphs.node("Transpose", ["x"], ["t"]), graphs.node("Identity", ["w"], ["fixed"])]
    inputs = [graphs.value("x", ("batch", "seq")), graphs.value("w", (8, 4))]
    model = graphs.model(nodes, inputs, [graphs.value("t", ("seq", "batch")), graphs.value("fixed", (8, 4))])
    session = open_bundle(
        model, profiles=BUCKET, mode="bucket", padding=(PadRule("seq", "right", {"x": 0}), ROWS), slots=1
    )
    x, w = np.arange(6, dtype=F).reshape(2, 3), np.arange(32, dtype=F).reshape(8, 4)
    found = session.run({"x": x, "w": w})
    np.testing.assert_array_equal(found["t"], x.T)
    np.testing.assert_array_equal(found["fixed"], w)


def test_an_output_whose_size_follows_by_an_expression_is_cut_to_its_real_size(open_bundle, graphs, plain):
    nodes = [graphs.node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[2])]
    model = graphs.model(nodes, [graphs.value("x", ("batch", 1, "seq"))], [graphs.value("y", ("batch", 1, None))])
    relation = {"y": ("batch", 1, Expr((Term(1, (Step("seq", 1, 0, 2),)),)))}
    session = open_bundle(
        model,
        profiles=({"batch": (1, 2), "seq": (2, 9)},),
        mode="bucket",
        padding=(PadRule("seq", "right", {"x": 0}), ROWS),
        outputs=relation,
    )
    for seq in (2, 3, 8, 9):
        x = np.arange(seq, dtype=F).reshape(1, 1, seq)
        np.testing.assert_array_equal(session.run({"x": x})["y"], plain(model, {"x": x})["y"])


def test_a_rule_without_a_fill_for_an_input_is_a_damaged_bundle(open_bundle, masked_sum):
    with pytest.raises(BundleError, match="padding 'seq': no fill for input 'mask'; rebuild"):
        open_bundle(masked_sum, profiles=BUCKET, mode="bucket", padding=(PadRule("seq", "right", {"x": 0}),), slots=1)
