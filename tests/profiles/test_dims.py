import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import Expr, Step, Term, dim_symbols, dim_text, dim_value, shape_text, sizes_text

SIZES = st.fixed_dictionaries({"x": st.integers(0, 500), "y": st.integers(0, 500)})
STEPS = st.builds(Step, st.sampled_from("xy"), mul=st.integers(-4, 4), add=st.integers(-9, 9), div=st.integers(1, 9))
TERMS = st.builds(Term, st.integers(-3, 3), st.lists(STEPS, max_size=3).map(tuple))
EXPRS = st.builds(Expr, st.lists(TERMS, max_size=3).map(tuple), st.integers(-9, 9))


@given(first=STEPS, add=st.integers(-20, 20), div=st.integers(1, 16), sizes=SIZES)
def test_two_strided_layers_collapse_into_one_step(first, add, div, sizes):
    nested = Step("inner", 1, add, div).value({"inner": first.value(sizes)})

    collapsed = Step(first.symbol, first.mul, first.add + add * first.div, first.div * div)

    assert collapsed.value(sizes) == nested


@given(expr=EXPRS, sizes=SIZES)
def test_the_text_of_an_expression_means_its_value(expr, sizes):
    assert eval(str(expr), {}, dict(sizes)) == expr.value(sizes)  # noqa: S307 (text made here)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        pytest.param(Expr((Term(1, (Step("w", 1, 3, 8),)),)), "(w+3)//8", id="strided"),
        pytest.param(Expr((Term(2, (Step("w", 1, 0, 8),)),)), "2*(w//8)", id="multiple-of-a-floor"),
        pytest.param(Expr((Term(1, (Step("h"), Step("w"))),), 1), "h*w+1", id="product-and-constant"),
        pytest.param(Expr((Term(1, (Step("past"),)), Term(1, (Step("seq"),)))), "past+seq", id="sum"),
        pytest.param(Expr((), 7), "0+7", id="constant-only"),
    ],
)
def test_an_expression_is_written_as_people_write_it(expr, text):
    assert str(expr) == text


@pytest.mark.parametrize(
    ("dim", "value"),
    [
        pytest.param(4, 4, id="number"),
        pytest.param(0, 0, id="zero-is-a-size"),
        pytest.param("seq", 17, id="symbol"),
        pytest.param(Expr((Term(2, (Step("seq"),)),), 1), 35, id="expression"),
        pytest.param(None, None, id="depends-on-the-data"),
    ],
)
def test_a_dim_is_evaluated_for_sizes(dim, value):
    assert dim_value(dim, {"seq": 17}) == value


def test_a_symbol_without_a_size_is_a_key_error():
    with pytest.raises(KeyError, match="seq"):
        dim_value("seq", {"batch": 1})


@pytest.mark.parametrize(
    ("dim", "symbols"),
    [
        pytest.param("seq", {"seq"}, id="symbol"),
        pytest.param(Expr((Term(1, (Step("h"), Step("w"))), Term(1, (Step("seq"),)))), {"h", "w", "seq"}, id="all"),
        pytest.param(3, set(), id="number"),
        pytest.param(None, set(), id="unknown"),
    ],
)
def test_the_symbols_of_a_dim_are_all_that_it_depends_on(dim, symbols):
    assert dim_symbols(dim) == symbols


def test_a_shape_shows_unknown_dims_as_question_marks():
    assert shape_text(("batch", None, 384)) == "[batch, ?, 384]"


def test_a_shape_of_unknown_rank_is_shown_as_dots():
    assert shape_text(None) == "[...]"


def test_a_dim_that_depends_on_the_data_is_shown_as_a_question_mark():
    assert dim_text(None) == "?"


def test_sizes_are_shown_in_their_order():
    assert sizes_text({"seq": 17, "batch": 3}) == "seq=17, batch=3"


def test_no_sizes_are_said_in_words():
    assert sizes_text({}) == "no symbols"
