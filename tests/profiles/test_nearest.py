import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import nearest_name, unknown_name


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        pytest.param("input_id", "input_ids", id="letter-missing"),
        pytest.param("Attention_Mask", "attention_mask", id="other-case"),
        pytest.param("zzz", None, id="like-nothing"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name, nearest):
    assert nearest_name(name, ["input_ids", "attention_mask"]) == nearest


@given(name=st.text(max_size=12), known=st.lists(st.text(max_size=12), max_size=5))
def test_the_nearest_name_is_a_known_one(name, known):
    assert nearest_name(name, known) in {*known, None}


def test_an_unknown_name_is_told_with_the_nearest_and_all_known():
    assert unknown_name("input", "id", ["ids", "mask"]) == (
        "unknown input 'id'; did you mean 'ids'? (known: 'ids', 'mask')"
    )


def test_a_long_list_of_known_names_is_cut_and_counted():
    assert "and 5 more" in unknown_name("input", "x", [f"name{i}" for i in range(25)])


def test_no_known_names_are_said_in_words():
    assert unknown_name("symbol", "seq", []) == "unknown symbol 'seq' (known: none)"
