"""Layer normalisation and softmax, written out."""

from __future__ import annotations

import numpy as np
import pytest

EPS = 1e-6
FORMS = {
    "mean of squares less square of mean": "q = Mul(x, x) s = ReduceMean<axes=[%d]>(q) mm = Mul(m, m) v0 = Sub(s, mm) "
    "v = Max(zero, v0)",
    "the same, not limited": "q = Mul(x, x) s = ReduceMean<axes=[%d]>(q) mm = Mul(m, m) v = Sub(s, mm)",
    "mean of squared differences": "q = Mul(d, d) v = ReduceMean<axes=[%d]>(q)",
}
ENDS = {
    "reciprocal": "r = Reciprocal(o) rs = Mul(r, scale) p = Mul(d, rs) y = Add(p, bias)",
    "division": "p0 = Div(d, o) p = Mul(scale, p0) y = Add(bias, p)",
    "no bias": "r = Reciprocal(o) p = Mul(d, r) y = Mul(p, scale)",
    "neither": "y = Div(d, o)",
}


def model(form: str, end: str, axis: int) -> str:
    """Over one axis of [n, 6, 8]."""
    return f"""(float[n, 6, 8] x) => (float[n, 6, 8] y) {{
        m = ReduceMean<axes=[{axis}]>(x)
        d = Sub(x, m)
        {FORMS[form] % axis}
        e = Add(v, eps)
        o = Sqrt(e)
        {ENDS[end]}
    }}"""


def constants(text: str, axis: int) -> dict:
    shape = [1, 1]
    shape[axis - 1] = (6, 8)[axis - 1]
    rng = np.random.default_rng(1)
    found = {"scale": rng.normal(size=shape).astype(np.float32), "bias": rng.normal(size=shape).astype(np.float32)}
    found |= {"eps": EPS, "zero": 0.0}
    return {name: value for name, value in found.items() if name in text}


X = np.random.default_rng(0).normal(size=(2, 6, 8)).astype(np.float32)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_one_operator_in_every_form(rewrite, form, end, axis):
    text = model(form, end, axis)
    found = rewrite(text, 17, **constants(text, axis))
    assert found.counts == {"layer-norm" if "differences" in form else "layer-norm-by-squares": 1}
    wanted = ["LayerNormalization"] if axis == 2 else ["Transpose", "LayerNormalization", "Transpose"]
    assert found.operators == wanted
    found.assert_equal(1e-5, x=X)


@pytest.mark.parametrize("form", FORMS)
def test_a_variance_that_loses_digits_keeps_losing_them_unless_all_may_be_rewritten(rewrite, form):
    text = model(form, "reciprocal", 2)
    found = rewrite(text, 17, "close", **constants(text, 2))
    assert ("LayerNormalization" in found.operators) == ("differences" in form)


def test_sums_with_axes_that_are_dropped_and_put_back_by_a_computed_shape(rewrite):
    text = """(float[n, 6, 8] x) => (float[n, 6, 8] y) {
        all = Shape(x)
        n = Slice(all, at0, at1, at0)
        kept = Concat<axis=0>(n, at1, eight)
        s = ReduceSum<keepdims=0>(x, at1)
        m0 = Mul(s, sixth)
        m1 = Reshape(m0, kept)
        m = Expand(m1, kept)
        d = Sub(x, m)
        q = Mul(x, x)
        qs = ReduceSum<keepdims=0>(q, at1)
        q0 = Mul(qs, sixth)
        mm = Mul(m0, m0)
        v0 = Sub(q0, mm)
        v1 = Max(zero, v0)
        v2 = Reshape(v1, kept)
        v = Expand(v2, kept)
        e = Add(v, eps)
        o = Sqrt(e)
        r = Reciprocal(o)
        rs = Mul(r, scale)
        p = Mul(d, rs)
        y = Add(p, bias)
    }"""
    sides = {name: np.random.default_rng(3).normal(size=(1, 6, 1)).astype(np.float32) for name in ("scale", "bias")}
    axes = {"at0": np.array([0]), "at1": np.array([1]), "eight": np.array([8])}
    found = rewrite(text, 17, sixth=1 / 6, zero=0.0, eps=EPS, **sides, **axes)
    assert found.counts == {"no-ops": 2, "reshapes": 2, "layer-norm-by-squares": 1}
    assert found.operators == ["Transpose", "LayerNormalization", "Transpose"]
    found.assert_equal(1e-5, x=X)


@pytest.mark.parametrize(
    "value", [np.full((1, 6, 8), 3.0), np.full((1, 6, 8), np.nan), np.where(np.arange(8) == 3, np.inf, X[:1])]
)
def test_constant_rows_nan_and_infinity_stay_what_they_are(rewrite, value):
    text = model("mean of squared differences", "reciprocal", 2)
    rewrite(text, 17, **constants(text, 2)).assert_equal(1e-5, x=value.astype(np.float32))


BASE = model("mean of squared differences", "reciprocal", 2)
SQUARES = model("the same, not limited", "reciprocal", 2)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param(BASE.replace("q = Mul(d, d)", "q = Mul(d, x)"), {}, id="no-square"),
        pytest.param(BASE.replace("v = ReduceMean<axes=[2]>", "v = ReduceMean<axes=[1]>"), {}, id="two-axes"),
        pytest.param(BASE.replace("ReduceMean<axes=[2]>(x)", "ReduceMax<axes=[2]>(x)"), {}, id="no-mean"),
        pytest.param(
            SQUARES.replace("Mul(m, m)", "Mul(k, k)").replace("d = Sub", "k = ReduceMin<axes=[2]>(x) d = Sub"),
            {},
            id="another-square",
        ),
        pytest.param(BASE, {"eps": 0.0}, id="no-epsilon"),
        pytest.param(BASE, {"scale": np.ones((6, 1), np.float32)}, id="scale-along-another-axis"),
        pytest.param(BASE.replace("=> (", "=> (float[n, 6, 8] d, "), {}, id="somebody-reads-the-difference"),
        pytest.param(BASE.replace("=> (", "=> (float[n, 6, 1] o, "), {}, id="somebody-reads-the-deviation"),
    ],
)
def test_what_is_almost_a_normalisation_is_left_alone(rewrite, text, changed):
    found = rewrite(text, 17, **(constants(text, 2) | changed))
    assert not found.counts
    assert "LayerNormalization" not in found.operators
    found.assert_equal(1e-5, x=X)


def test_a_bias_along_two_axes_is_added_behind(rewrite):
    found = rewrite(BASE, 17, **(constants(BASE, 2) | {"bias": np.ones((6, 8), np.float32)}))
    assert found.operators == ["LayerNormalization", "Add"]
    found.assert_equal(1e-5, x=X)


SOFTMAX = """(float[n, 4] x) => (float[n, 4] y) {
    m0 = ReduceMax<axes=[1]>(x)
    m = Max(low, m0)
    d = Sub(x, m)
    e = Exp(d)
    s = ReduceSum(e, at1)
    y = Div(e, s)
}"""
LOW, AT1 = np.float32(-np.inf), np.array([1])


def test_softmax_is_one_operator(rewrite):
    found = rewrite(SOFTMAX, low=LOW, at1=AT1)
    assert found.counts == {"softmax": 1}
    assert found.operators == ["Softmax"]
    rows = [[1, 2, 3, -4], [1e38, -1e38, 0, 1], [-np.inf, 0, 1, 2], [np.nan, 0, 1, 2], [np.inf, 0, 1, 2]]
    found.assert_equal(x=np.array([*rows, [-np.inf] * 4], np.float32))


@pytest.mark.parametrize(
    ("text", "low"),
    [
        pytest.param(SOFTMAX, np.float32(0), id="a-maximum-that-matters"),
        pytest.param(SOFTMAX.replace("Div(e, s)", "Div(d, s)"), LOW, id="another-numerator"),
        pytest.param(SOFTMAX.replace("ReduceMax<axes=[1]>", "ReduceMax<axes=[0]>"), LOW, id="two-axes"),
        pytest.param(SOFTMAX.replace("=> (", "=> (float[n, 4] e, "), LOW, id="somebody-reads-the-powers"),
    ],
)
def test_what_is_almost_softmax_is_left_alone(rewrite, text, low):
    found = rewrite(text, low=low, at1=AT1)
    assert not found.counts
    found.assert_equal(x=np.array([[1, 2, 3, -4], [0, 1, 2, 7]], np.float32))
