import pytest

from trtc.profiles import Expr, PadRule, ProfileError, Step, Term
from trtc.profiles.grammar import pad_rules

DIMS = {"ids": ("batch", "seq"), "mask": ("batch", "seq"), "scale": (3,)}
FILLS = ["ids=0", "mask=0"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_side_takes_the_fill_of_every_input_that_carries_the_symbol(side):
    assert pad_rules([f"seq:{side}"], FILLS, DIMS) == (PadRule("seq", side, {"ids": 0, "mask": 0}),)


def test_without_a_side_axis_0_everywhere_is_padded_by_rows():
    assert pad_rules(["batch"], [], DIMS) == (PadRule("batch", "rows", {}),)


def test_without_a_side_any_other_axis_is_padded_on_the_right():
    assert pad_rules(["seq"], FILLS, DIMS)[0].side == "right"


@pytest.mark.parametrize(
    "dims",
    [
        pytest.param({"x": ("N", 2), "y": (2, "N")}, id="elsewhere-in-another-input"),
        pytest.param({"x": ("N", "N"), "y": ("N",)}, id="elsewhere-in-the-same-input"),
        pytest.param({"x": ("N",), "y": (Expr((Term(2, (Step("N"),)),)),)}, id="inside-an-expression"),
    ],
)
def test_a_symbol_that_is_not_only_axis_0_is_not_padded_by_rows_unasked(dims):
    assert pad_rules(["N"], ["x=0", "y=0"], dims)[0].side == "right"


def test_rows_and_a_padded_axis_go_together():
    rules = pad_rules(["batch", "seq"], FILLS, DIMS)
    assert [(rule.symbol, rule.side) for rule in rules] == [("batch", "rows"), ("seq", "right")]


@pytest.mark.parametrize("accept_error", [True, False])
def test_accepting_an_error_is_passed_on(accept_error):
    (rule,) = pad_rules(["batch"], [], DIMS, accept_error=accept_error)
    assert rule.accept_error is accept_error


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        pytest.param("0", 0, id="int"),
        pytest.param("-100", -100, id="negative-int"),
        pytest.param("0.5", 0.5, id="float"),
        pytest.param("-1e-3", -0.001, id="exponent"),
        pytest.param("1.", 1.0, id="float-that-is-whole"),
        pytest.param("true", True, id="true"),
        pytest.param("False", False, id="false"),
    ],
)
def test_a_fill_keeps_its_type(text, fill):
    (rule,) = pad_rules(["n:right"], [f"x={text}"], {"x": ("n",)})
    assert (rule.fills["x"], type(rule.fills["x"])) == (fill, type(fill))


@pytest.mark.parametrize(
    "text", ["", "inf", "-inf", "nan", "1e999", "1_0", "\uff11", "0x1", "yes", "1.2.3", "--1", "."]
)
def test_a_fill_that_is_no_finite_number_is_refused(text):
    with pytest.raises(ProfileError, match="is not a number"):
        pad_rules(["n:right"], [f"x={text}"], {"x": ("n",)})


def test_all_missing_fills_are_told_at_once_with_the_options_to_type():
    with pytest.raises(ProfileError, match="add --fill ids=VALUE --fill mask=VALUE"):
        pad_rules(["seq"], [], DIMS)


@pytest.mark.parametrize(
    ("pads", "fills", "message"),
    [
        pytest.param(["seq"], [*FILLS, "scale=0"], "--fill for 'scale' is not used", id="input-without-the-symbol"),
        pytest.param(["batch"], ["ids=0"], "--fill for 'ids' is not used", id="rows-take-no-fill"),
        pytest.param([], ["ids=0"], "padded: nothing", id="nothing-padded"),
        pytest.param(["sec"], [], "unknown symbol 'sec'; did you mean 'seq'", id="unknown-symbol"),
        pytest.param(["seq"], ["idz=0"], "unknown input 'idz'; did you mean 'ids'", id="unknown-input"),
        pytest.param(["sec:left"], [], "unknown symbol 'sec'; did you mean 'seq'", id="unknown-symbol-with-side"),
        pytest.param(["seq:lft"], [], "':lft' is not a side", id="unknown-side"),
        pytest.param(["seq:"], [], "':' is not a side", id="empty-side"),
        pytest.param(["seq", "seq:left"], FILLS, "--pad names 'seq' twice", id="symbol-twice"),
        pytest.param(["seq"], [*FILLS, "ids=1"], "--fill names 'ids' twice", id="fill-twice"),
    ],
)
def test_a_padding_mistake_is_refused_with_the_reason(pads, fills, message):
    with pytest.raises(ProfileError, match=message):
        pad_rules(pads, fills, DIMS)


@pytest.mark.parametrize(
    ("pad", "side"),
    [
        pytest.param("a:b:left", "left", id="bare"),
        pytest.param("'a:b':left", "left", id="quoted"),
        pytest.param("a:b", "right", id="no-side"),
    ],
)
def test_a_symbol_may_hold_a_colon(pad, side):
    assert pad_rules([pad], ["x=0"], {"x": (1, "a:b")}) == (PadRule("a:b", side, {"x": 0}),)


def test_quotes_tell_a_symbol_that_ends_like_a_side_from_a_side():
    assert pad_rules(["'a:left'"], ["x=0"], {"x": (1, "a:left", "a")})[0].symbol == "a:left"


def test_an_input_name_may_hold_an_equals_sign():
    assert pad_rules(["n:right"], ["x=y=3"], {"x=y": ("n",)}) == (PadRule("n", "right", {"x=y": 3}),)
