"""A one-hot row times a matrix is a look-up, also for ids outside the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TABLE = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
CHOICES = np.arange(5, dtype=np.int32).reshape(1, 1, 5)
MODEL = """(int32[n, m, 1] ids) => (float[n, m, 3] y) {
    hot = Equal(ids, choices)
    rows = Cast<to=1>(hot)
    y = MatMul(rows, table)
}"""


@pytest.fixture(scope="module")
def one_hot(rewrite):
    return rewrite(MODEL, choices=CHOICES, table=TABLE)


def test_it_becomes_a_look_up(one_hot):
    assert one_hot.counts == {"one-hot": 1}
    assert one_hot.operators == ["Clip", "Squeeze", "Gather"]


@settings(max_examples=40, deadline=None)
@given(ids=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-6, 6), max_size=12))
def test_any_id_gives_the_very_row_that_it_gave(one_hot, ids):
    feed = np.array(ids, np.int32).reshape(1, -1, 1)
    (before,), (after,) = one_hot.run(ids=feed)
    np.testing.assert_array_equal(after, before)


def test_ids_of_64_bits_are_not_shortened(rewrite):
    found = rewrite(MODEL.replace("int32", "int64"), choices=CHOICES.astype(np.int64), table=TABLE)
    assert found.counts == {"one-hot": 1}
    (before,), (after,) = found.run(ids=np.array([-(2**63), -1, 0, 4, 5, 2**32, 2**63 - 1]).reshape(1, -1, 1))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(
    ("model", "constants"),
    [
        pytest.param(MODEL, {"table": TABLE * np.float32(np.inf)}, id="0-times-infinity-is-nan"),
        pytest.param(MODEL, {"choices": CHOICES[..., ::-1].copy()}, id="choices-in-another-order"),
        pytest.param(MODEL, {"choices": CHOICES + np.int32(1)}, id="choices-that-begin-at-1"),
        pytest.param(MODEL.replace("to=1", "to=11"), {"table": TABLE.astype(np.float64)}, id="float64"),
        pytest.param(MODEL.replace("1] ids", "m] ids"), {}, id="a-last-axis-that-may-not-be-1"),
        pytest.param(MODEL.replace("=> (", "=> (float[n, m, 5] rows, "), {}, id="somebody-else-reads-the-one-hot-rows"),
    ],
)
def test_what_may_differ_is_left_alone(rewrite, model, constants):
    model = model.replace("float[n, m, 3] y", "double[n, m, 3] y") if "to=11" in model else model
    found = rewrite(model, **{"choices": CHOICES, "table": TABLE, **constants})
    assert "MatMul" in found.operators
    assert not found.counts


def test_what_follows_by_element_is_done_to_the_table(rewrite):
    model = MODEL.replace(
        "y = MatMul(rows, table)", "t = MatMul(rows, table) a = Add(t, bias) b = Tanh(a) y = Mul(a, b)"
    )
    found = rewrite(model, choices=CHOICES, table=TABLE, bias=np.ones((1, 1, 3), np.float32))
    assert found.counts == {"one-hot": 1, "table-rows": 1}
    assert found.operators[-1] == "Gather"
    found.assert_equal(0, 0, ids=np.arange(-2, 8, dtype=np.int32).reshape(2, 5, 1))


LOOK_UP = "(int64[n, m] ids, float[n, m, 3] x) => (float[n, m, 3] y) { t = Gather(table, ids) %s }"


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        pytest.param("y = Add(t, x)", {}, id="added-to-what-a-run-gives"),
        pytest.param("a = Add(t, c) y = Add(a, t)", {"c": np.ones((1, 1, 1, 3), np.float32)}, id="adds-an-axis"),
        pytest.param("a = Add(t, c) y = Add(a, x)", {"c": np.ones((3, 1), np.float32)}, id="along-another-axis"),
        pytest.param("a = Add(t, c) b = Exp(a) y = Mul(x, a) z = Mul(x, b)", {"c": 1.0}, id="two-results"),
    ],
)
def test_rows_that_others_read_stay(rewrite, nodes, constants):
    text = LOOK_UP % nodes
    if "z =" in nodes:
        text = text.replace("=> (", "=> (float[n, m, 3] z, ")
    if "1, 1, 1" in str([np.shape(c) for c in constants.values()]):
        text = text.replace("float[n, m, 3] y", "float[1, n, m, 3] y")
    found = rewrite(text, table=TABLE, **constants)
    assert "table-rows" not in found.counts
    assert found.operators[0] == "Gather"
    found.assert_equal(ids=np.arange(3).reshape(1, 3), x=np.ones((1, 3, 3), np.float32))


def test_a_look_up_that_is_an_output_keeps_its_name_and_values(rewrite):
    found = rewrite(LOOK_UP % "a = Add(t, c) y = Relu(a)", table=TABLE, c=np.ones(3, np.float32))
    assert found.counts == {"table-rows": 1}
    assert [value.name for value in found.after.graph.output] == ["y"]
    found.assert_equal(0, 0, ids=np.array([[0, 4], [-1, 2]]), x=np.ones((2, 2, 3), np.float32))
