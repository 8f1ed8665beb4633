import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import ProfileError
from trtc.profiles.grammar import openvino_shapes, polygraphy_shapes, quote_name, symbol_ranges, trtexec_shapes

READERS = {
    "dim": lambda name: symbol_ranges([f"{name}=1"])[0][0].symbol,
    "trtexec": lambda name: trtexec_shapes([("optShapes", f"{name}:1")])[0][0].name,
    "polygraphy": lambda name: polygraphy_shapes([f"{name}:[1]"])[0][0].name,
    "openvino": lambda name: openvino_shapes([f"{name}[1]"])[0][0].name,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@given(name=st.text(min_size=1, max_size=12))
def test_a_quoted_name_is_read_back(read, name):
    assert read(quote_name(name)) == name


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("typed", "name"),
    [
        pytest.param("a/b:0.π é", "a/b:0.π é", id="bare-with-colon-slash-dot-blank"),
        pytest.param("../../x", "../../x", id="bare-path"),
        pytest.param("it's", "it's", id="quote-inside-is-literal"),
        pytest.param(" x ", "x", id="blanks-around"),
        pytest.param("' x '", " x ", id="blanks-in-quotes-are-kept"),
        pytest.param(r"'it\'s'", "it's", id="escaped-quote"),
        pytest.param(r'"a\\b"', "a\\b", id="escaped-backslash"),
        pytest.param('"a,b[0]:c=d\'"', "a,b[0]:c=d'", id="separators-in-quotes"),
    ],
)
def test_odd_names_can_be_typed(read, typed, name):
    assert read(typed) == name


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quote_that_is_never_closed_is_an_error(read, quote):
    with pytest.raises(ProfileError, match="never closed"):
        read(f"{quote}x")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_text_between_a_quoted_name_and_its_separator_is_an_error(read):
    with pytest.raises(ProfileError, match="is not of the form"):
        read("'x'y")


@pytest.mark.parametrize("name", ["input_ids", "model.layer/0", "größe"])
def test_plain_names_are_written_without_quotes(name):
    assert quote_name(name) == name
