"""Gelu by tanh and the hard activations, however they are written out."""

from __future__ import annotations

import math

import numpy as np
import pytest

C, K = 0.044715, math.sqrt(2 / math.pi)
X = np.concatenate([np.linspace(-12, 12, 4001), [-0.0, 1e20, -1e20, np.inf, -np.inf, np.nan]]).astype(np.float32)
GELUS = {
    "tf2onnx": "a = Mul(c, x) b = Mul(x, a) d = Mul(x, b) e = Add(x, d) u = Mul(k, e) t = Tanh(u) v = Add(one, t) "
    "w = Mul(half, v) y = Mul(x, w)",
    "power": "a = Pow(x, three) b = Mul(a, c) d = Add(b, x) u = Mul(d, k) t = Tanh(u) v = Add(t, one) w = Mul(x, v) "
    "y = Div(w, two)",
    "half first": "h = Mul(x, half) a = Mul(x, x) b = Mul(a, ck) d = Add(b, k) u = Mul(d, x) t = Tanh(u) "
    "v = Add(t, one) y = Mul(h, v)",
    "two terms": "a = Mul(x, x) b = Mul(a, x) d = Mul(b, ck) e = Mul(x, k) u = Add(d, e) t = Tanh(u) h = Mul(x, half) "
    "w = Mul(h, t) y = Add(w, h)",
}
NUMBERS = {"c": C, "k": K, "ck": C * K, "one": 1.0, "half": 0.5, "two": 2.0, "three": 3.0}
HEAD = "(float[n] x) => (float[n] y) { %s }"


def used(text: str) -> dict[str, float]:
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    return {name: value for name, value in NUMBERS.items() if name in words}


@pytest.mark.parametrize("form", GELUS)
@pytest.mark.parametrize(("opset", "operator"), [(15, "FastGelu"), (20, "Gelu")])
def test_gelu_is_one_operator_in_every_order_of_its_terms(rewrite, form, opset, operator):
    found = rewrite(HEAD % GELUS[form], opset, **used(GELUS[form]))
    assert found.counts == {"gelu": 1}
    assert found.operators == [operator]
    found.assert_equal(x=X)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"c": 0.0447}, id="another-cubic-term"),
        pytest.param({"k": 0.7978}, id="another-slope"),
        pytest.param({"one": 1.001}, id="another-offset"),
        pytest.param({"half": -0.5}, id="another-factor"),
        pytest.param({"half": np.full(3, 0.5, np.float32)}, id="no-scalar"),
        pytest.param({"c": np.full((1, 1), C, np.float32)}, id="a-scalar-that-adds-an-axis"),
    ],
)
def test_what_is_almost_gelu_is_left_alone(rewrite, changed):
    text = HEAD % GELUS["tf2onnx"]
    if any(np.ndim(value) == 2 for value in changed.values()):
        text = text.replace("(float[n] y)", "(float[1, n] y)")
    found = rewrite(text, 15, **(used(text) | changed))
    assert not found.counts
    found.assert_equal(x=X[:3])


def test_gelu_in_float64_is_left_alone(rewrite):
    text = (HEAD % GELUS["tf2onnx"]).replace("float", "double")
    found = rewrite(text, 15, **{name: np.array(value) for name, value in used(text).items()})
    assert not found.counts


@pytest.mark.parametrize("value", ["t", "w", "e"])
def test_gelu_whose_inside_somebody_reads_is_left_alone(rewrite, value):
    text = (HEAD % GELUS["tf2onnx"]).replace("=> (", f"=> (float[n] {value}, ")
    found = rewrite(text, 15, **used(text))
    assert not found.counts
    assert "Tanh" in found.operators


SWISH = "a = Add(x, three) b = Clip(a, zero, six) d = Mul(x, b) y = Div(d, six)"
HARD = {
    "swish": (SWISH, ["HardSigmoid", "Mul"]),
    "swish, divided first": ("a = Add(three, x) b = Clip(a, zero, six) d = Div(b, six) y = Mul(d, x)",
                             ["HardSigmoid", "Mul"]),
    "swish by a factor": ("a = Add(x, three) b = Clip(a, zero, six) d = Mul(b, sixth) y = Mul(d, x)",
                          ["HardSigmoid", "Mul"]),
    "sigmoid": ("a = Mul(x, fifth) b = Add(a, half) y = Clip(b, zero, one)", ["HardSigmoid"]),
    "sigmoid of six": ("a = Add(x, three) b = Clip(a, zero, six) y = Div(b, six)", ["HardSigmoid"]),
}  # fmt: skip
HARD_NUMBERS = {"zero": 0.0, "six": 6.0, "three": 3.0, "sixth": 1 / 6, "fifth": 0.2, "half": 0.5, "one": 1.0}


def hard_used(text: str) -> dict[str, float]:
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    return {name: value for name, value in HARD_NUMBERS.items() if name in words}


@pytest.mark.parametrize("form", HARD)
def test_hard_activations_get_their_names(rewrite, form):
    text, operators = HARD[form]
    found = rewrite(HEAD % text, **hard_used(text))
    assert found.counts == {"hard-sigmoid": 1}
    assert found.operators == operators
    found.assert_equal(x=X)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param(SWISH, {"zero": 0.1}, id="another-lower-limit"),
        pytest.param(SWISH, {"six": np.float32(np.inf)}, id="no-upper-limit"),
        pytest.param(SWISH.replace("Mul(x, b)", "Mul(a, b)"), {}, id="times-something-else"),
        pytest.param(SWISH.replace("Div(d, six)", "Div(d, three)"), {}, id="divided-by-something-else"),
        pytest.param(SWISH.replace("Add(x, three)", "Add(x, x)"), {}, id="no-offset-and-no-constant"),
    ],
)
def test_what_is_almost_hard_swish_is_left_alone(rewrite, text, changed):
    numbers = hard_used(text) | changed
    found = rewrite(HEAD % text, **{name: numbers[name] for name in hard_used(text)})
    assert "Clip" in found.operators or not changed
    found.assert_equal(x=X)
