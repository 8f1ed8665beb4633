import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import Profile, ProfileError, Range


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((4, 2, 8), id="min-above-opt"),
        pytest.param((1, 9, 8), id="opt-above-max"),
        pytest.param((-1, 2, 8), id="negative"),
        pytest.param((-1, None, None), id="negative-and-open"),
        pytest.param((1, None, 8), id="opt-missing"),
        pytest.param((1, 4, None), id="opt-without-max"),
    ],
)
def test_numbers_out_of_order_are_no_range(numbers):
    with pytest.raises(ProfileError, match="is not a range"):
        Range(*numbers)


def test_a_range_may_start_at_zero():
    assert Range(0, 2, 8).holds(0)


@given(low=st.integers(0, 9), extra=st.integers(0, 9), size=st.integers(0, 30))
def test_a_range_holds_both_its_ends_and_all_between(low, extra, size):
    assert Range(low, low, low + extra).holds(size) == (size in range(low, low + extra + 1))


@given(size=st.integers(5, 2**63 - 1))
def test_an_open_range_has_no_upper_end(size):
    assert Range(5, None, None).holds(size)


def test_an_open_range_has_a_lower_end():
    assert not Range(5, None, None).holds(4)


@pytest.mark.parametrize(
    ("size_range", "text"),
    [
        pytest.param(Range(1, 4, 8), "1..8", id="range"),
        pytest.param(Range(4, 4, 4), "4", id="fixed"),
        pytest.param(Range(1, None, None), "1..", id="open"),
    ],
)
def test_a_range_is_shown_as_it_is_typed(size_range, text):
    assert str(size_range) == text


def test_the_bucket_of_a_profile_is_each_max():
    assert Profile("p0", {"batch": Range(1, 1, 8), "seq": Range(1, None, None)}).bucket == {"batch": 8, "seq": None}


@pytest.mark.parametrize(
    ("size", "padded", "fits"),
    [
        pytest.param(1, {"batch"}, True, id="below-min-is-padded-up"),
        pytest.param(1, set(), False, id="below-min-without-padding"),
        pytest.param(0, {"batch"}, False, id="zero-is-never-padded"),
        pytest.param(8, set(), True, id="max-itself"),
        pytest.param(9, {"batch"}, False, id="above-max"),
    ],
)
def test_a_request_fits_the_range_4_to_8(size, padded, fits):
    assert Profile("p0", {"batch": Range(4, 8, 8)}).fits({"batch": size}, padded) is fits


@pytest.mark.parametrize(
    ("size", "padded", "to_bucket", "run"),
    [
        pytest.param(5, {"seq"}, True, 8, id="up-to-the-bucket"),
        pytest.param(5, {"seq"}, False, 5, id="exact-inside"),
        pytest.param(2, {"seq"}, False, 4, id="up-to-the-min-only"),
        pytest.param(5, set(), True, 5, id="never-without-a-rule"),
        pytest.param(0, {"seq"}, True, 0, id="zero-stays-zero"),
    ],
)
def test_a_request_runs_at_these_sizes_in_the_range_4_to_8(size, padded, to_bucket, run):
    profile = Profile("p0", {"seq": Range(4, 8, 8)})
    assert profile.run_sizes({"seq": size}, padded, to_bucket=to_bucket) == {"seq": run}


def test_an_open_bucket_adds_no_padding():
    assert Profile("p0", {"seq": Range(1, None, None)}).run_sizes({"seq": 5}, {"seq"}, to_bucket=True) == {"seq": 5}


def test_padded_elements_count_the_product_of_all_symbols():
    profile = Profile("p0", {"batch": Range(1, 8, 8), "seq": Range(1, 16, 16)})
    assert profile.padded_elements({"batch": 3, "seq": 10}, {"batch", "seq"}) == 8 * 16 - 3 * 10


def test_a_profile_without_symbols_says_so():
    assert str(Profile("p0", {})) == "p0: fixed sizes"
