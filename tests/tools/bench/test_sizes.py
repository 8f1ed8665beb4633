"""Which sizes are measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trtc.profiles import Ladder, Profile, Range, TrtcError, UsageError
from trtc.tools.bench.results import SizeResult, most_called
from trtc.tools.bench.sizes import grid_of, random_mix, replayed
from trtc.tools.bench.summary import summarise
from trtc.tools.bench.words import kept_words

SYMBOLS = ("batch", "seq")


def test_where_not_all_sizes_are_shown_those_with_most_calls_are_in_their_order():
    def size(seq, calls):
        return SizeResult({"seq": seq}, None, {"seq": seq}, 0.0, 1.0, summarise([1.0] * calls) if calls else None)

    sizes = [size(1, 5), size(2, 0), size(3, 9), size(4, 1), size(5, 7)]
    assert [s.sizes["seq"] for s in most_called(sizes, 3)] == [1, 3, 5]
    assert most_called(sizes, 9) == sizes


def ladder(*tops):
    lows = [1, *(top + 1 for top in tops)]
    return Ladder(
        tuple(
            Profile(f"p{i}", {"batch": Range(1, 4, 4), "seq": Range(low, top, top)})
            for i, (low, top) in enumerate(zip(lows, tops, strict=False))
        )
    )


def test_a_grid_is_every_combination():
    found = grid_of(["batch=1,8 seq=32,64"], SYMBOLS)
    assert found == [{"batch": b, "seq": s} for b in (1, 8) for s in (32, 64)]
    assert grid_of(["seq=32,64", "batch=1,8"], SYMBOLS) == found


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        pytest.param(["batch=1"], "no sizes for seq; add seq=1,8", id="missing"),
        pytest.param(["batch=1 seq=2 heads=3"], "unknown symbol 'heads'", id="unknown"),
        pytest.param(["batch=1 batch=2 seq=1"], "given twice", id="twice"),
        pytest.param(["batch=1..8 seq=1"], "write sizes as batch=1,8,32", id="range"),
        pytest.param(["batch=-1 seq=1"], "write sizes as", id="negative"),
        pytest.param(["batch= seq=1"], "empty item", id="empty"),
        pytest.param(["batch", "seq=1"], "--grid batch=1,8,32", id="no-sizes"),
        pytest.param(
            [f"batch={','.join(map(str, range(100)))} seq={','.join(map(str, range(100)))}"], "at most 1000", id="many"
        ),
    ],
)
def test_a_wrong_grid_is_refused(texts, words):
    with pytest.raises(TrtcError, match=words) as caught:
        grid_of(texts, SYMBOLS)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["b.trtc", "--grid", "a=1", "b=2,3", "--json"], ["b.trtc", "--grid", "a=1", "--grid", "b=2,3", "--json"]),
        (["--grid=a=1", "b=2", "b.trtc"], ["--grid=a=1", "--grid", "b=2", "b.trtc"]),
        (["--grid", "a=1 b=2", "b.trtc"], ["--grid", "a=1 b=2", "b.trtc"]),
        (["--useCudaGraph", "--warmUp=5", "--duration=1"], ["--warmUp=5", "--duration=1"]),
        (["x", "--", "--grid", "a=1"], ["x", "--", "--grid", "a=1"]),
    ],
)
def test_words_of_trtexec_and_several_values_are_understood(words, expected):
    assert kept_words(words) == expected


def test_flags_whose_effect_is_not_there_are_refused_here_too():
    with pytest.raises(UsageError, match="--fp16"):
        kept_words(["b.trtc", "--fp16"])


@settings(max_examples=25)
@given(tops=st.lists(st.integers(1, 60), min_size=1, max_size=4, unique=True).map(sorted), seed=st.integers(0, 99))
def test_random_sizes_lie_in_the_profiles_and_come_from_all_of_them(tops, seed):
    served = ladder(*tops)
    mix = random_mix(served, 300, np.random.default_rng(seed))
    drawn = [mix.sizes[i] for i in mix.order]
    assert len(drawn) == 300
    assert {served.pick(sizes) for sizes in drawn} == set(range(len(tops)))
    assert len(set(map(str, mix.sizes))) == len(mix.sizes)


def test_random_sizes_need_a_maximum():
    served = Ladder((Profile("p0", {"batch": Range(1, None, None)}),))
    with pytest.raises(UsageError, match="batch is open upwards"):
        random_mix(served, 3, np.random.default_rng(0))


def test_traffic_is_replayed_as_often_as_it_came():
    traffic = [({"seq": 37, "batch": 1}, 12.0), ({"seq": 5, "batch": 2}, 1.0)]
    mix = replayed("t", traffic, np.random.default_rng(0))
    assert sorted(mix.sizes[i]["seq"] for i in mix.order) == [5] + [37] * 12
    assert len(mix.sizes) == 2


def test_counts_of_millions_are_scaled_down_together():
    mix = replayed("t", [({"seq": 1}, 3_000_000), ({"seq": 2}, 1_000_000)], np.random.default_rng(0))
    counts = np.bincount([mix.sizes[i]["seq"] for i in mix.order])
    assert counts[1] / counts[2] == pytest.approx(3, rel=0.01)
    assert counts.sum() <= 100_001


def test_shares_weigh_the_draw_as_counts_do():
    mix = replayed("t", [({"seq": 1}, 0.75), ({"seq": 2}, 0.25)], np.random.default_rng(0))
    assert sorted(mix.sizes[i]["seq"] for i in mix.order) == [1, 1, 1, 2]
