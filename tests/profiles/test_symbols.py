import pytest

from trtc.profiles import ProfileError, Range
from trtc.profiles.grammar import symbol_ranges


def as_dicts(profiles):
    return [{entry.symbol: entry.range for entry in profile} for profile in profiles]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1:64:256", Range(1, 64, 256), id="min-opt-max"),
        pytest.param("1..8", Range(1, 8, 8), id="opt-is-max"),
        pytest.param("4", Range(4, 4, 4), id="fixed"),
        pytest.param("0", Range(0, 0, 0), id="a-real-zero"),
        pytest.param("1..", Range(1, None, None), id="open"),
        pytest.param("0:2:8", Range(0, 2, 8), id="from-zero"),
    ],
)
def test_a_dim_is_read(text, expected):
    assert as_dicts(symbol_ranges([f"seq={text}"])) == [{"seq": expected}]


@pytest.mark.parametrize("text", ["?", "-1", "..8", "..", "1:2", "1:2:3:4", "1:2:", "8..1", "1...8", "1,2", "a"])
def test_a_text_that_is_no_range_is_refused(text):
    with pytest.raises(ProfileError, match="seq"):
        symbol_ranges([f"seq={text}"])


@pytest.mark.parametrize("numbers", ["4:2:8", "1:9:8"])
def test_numbers_out_of_order_are_told_with_their_symbol(numbers):
    low, opt, high = numbers.split(":")
    with pytest.raises(ProfileError, match=f"seq: min {low}, opt {opt}, max {high}"):
        symbol_ranges([f"seq={numbers}"])


def test_nothing_typed_is_nothing_stated():
    assert symbol_ranges() == ()


def test_each_bucket_is_one_profile_from_one_up():
    assert as_dicts(symbol_ranges([], ["batch=8,seq=64", "batch=1,seq=256"])) == [
        {"batch": Range(1, 8, 8), "seq": Range(1, 64, 64)},
        {"batch": Range(1, 1, 1), "seq": Range(1, 256, 256)},
    ]


def test_a_bucket_of_zero_starts_at_zero():
    assert as_dicts(symbol_ranges([], ["seq=0"])) == [{"seq": Range(0, 0, 0)}]


def test_a_bucket_starts_at_the_min_of_its_dim():
    assert as_dicts(symbol_ranges(["seq=5:40:64"], [], ["seq=32,64"])) == [
        {"seq": Range(5, 32, 32)},
        {"seq": Range(5, 64, 64)},
    ]


def test_a_dim_without_buckets_keeps_its_range_in_every_profile():
    profiles = as_dicts(symbol_ranges(["batch=1:2:8"], [], ["seq=32,64"]))
    assert [profile["batch"] for profile in profiles] == [Range(1, 2, 8)] * 2


def test_several_buckets_combine_as_a_product_with_the_last_fastest():
    profiles = as_dicts(symbol_ranges([], [], ["batch=1,8", "seq=32,64"]))
    assert [(p["batch"].max, p["seq"].max) for p in profiles] == [(1, 32), (1, 64), (8, 32), (8, 64)]


def test_bucket_and_buckets_of_different_symbols_combine_as_a_product():
    profiles = as_dicts(symbol_ranges([], ["h=1,w=2", "h=3,w=4"], ["seq=5,6"]))
    assert [(p["h"].max, p["w"].max, p["seq"].max) for p in profiles] == [(1, 2, 5), (1, 2, 6), (3, 4, 5), (3, 4, 6)]


@pytest.mark.parametrize(
    ("dims", "bucket", "buckets", "message"),
    [
        pytest.param(["s=1..64"], [], ["s=32,128"], r"s=128 lies outside --dim s=1\.\.64", id="bucket-above-dim"),
        pytest.param(["s=8..64"], [], ["s=4,64"], r"s=4 lies outside --dim s=8\.\.64", id="bucket-below-dim"),
        pytest.param(["s=1..64"], ["s=32"], [], "add a bucket s=64", id="dim-max-uncovered"),
        pytest.param(["s=1.."], [], ["s=32"], r"write --dim s=1\.\.32", id="open-dim-uncovered"),
        pytest.param([], ["s=1,b=2"], ["s=4"], "both --bucket and --buckets", id="both-options-for-one-symbol"),
        pytest.param([], ["s=1,b=2", "s=3"], [], "not every --bucket names the symbol 'b'", id="bucket-lacks-symbol"),
        pytest.param([], ["s=1", "s=1"], [], "stands twice", id="same-bucket-twice"),
        pytest.param([], ["s=1,s=2"], [], "'s' twice", id="symbol-twice-in-a-bucket"),
        pytest.param([], [], ["s=1", "s=2"], "'s' twice", id="symbol-twice-in-buckets"),
        pytest.param([], [], ["s=1,1"], "a size twice", id="size-twice"),
        pytest.param(["s=1", "s=2"], [], [], "'s' twice", id="symbol-twice-in-dims"),
        pytest.param([], ["s=1,"], [], "empty item", id="empty-item"),
        pytest.param([], [], ["s=1,,2"], "empty item", id="empty-size"),
    ],
)
def test_contradictions_are_refused_with_the_reason(dims, bucket, buckets, message):
    with pytest.raises(ProfileError, match=message):
        symbol_ranges(dims, bucket, buckets)


def test_a_symbol_with_an_equals_sign_is_split_at_the_last_one():
    assert as_dicts(symbol_ranges(["a=b=4"])) == [{"a=b": Range(4, 4, 4)}]
