import pytest

from trtc.profiles import ProfileError
from trtc.profiles.grammar import val_ranges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x:[0,1]", {"x": (0, 1)}, id="ints"),
        pytest.param("x:[-0.5, 1e2]", {"x": (-0.5, 100.0)}, id="floats"),
        pytest.param("a/b:0:[3,3]", {"a/b:0": (3, 3)}, id="colon-in-the-name"),
        pytest.param("'a,b':[0,1]", {"a,b": (0, 1)}, id="quoted"),
    ],
)
def test_a_value_range_is_read(text, expected):
    assert val_ranges([text]) == expected


def test_whole_numbers_stay_ints():
    assert [type(end) for end in val_ranges(["x:[0,1.0]"])["x"]] == [int, float]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param(["x:[2,1]"], "from 2 to 1", id="out-of-order"),
        pytest.param(["x:[0,inf]"], "is not a number", id="infinite"),
        pytest.param(["x:[nan,1]"], "is not a number", id="nan"),
        pytest.param(["x:[0]"], "has 1 values", id="one-end"),
        pytest.param(["x:[0,1,2]"], "has 3 values", id="three-ends"),
        pytest.param(["x:0,1"], "in square brackets", id="no-brackets"),
        pytest.param(["[0,1]"], "is not of the form", id="no-name"),
        pytest.param(["x:[0,1]", "x:[0,2]"], "given twice", id="twice"),
    ],
)
def test_a_value_range_mistake_is_refused_with_the_reason(texts, message):
    with pytest.raises(ProfileError, match=message):
        val_ranges(texts)
