import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import Ladder, Profile, ProfileError, Range, RequestError

RANGES = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda ends: Range(min(ends), max(ends), max(ends)))
OPEN_RANGES = st.integers(0, 6).map(lambda low: Range(low, None, None))


def ladder_of(*ranges, cost_s=()):
    return Ladder(
        tuple(Profile(f"p{i}", {"batch": Range(low, high, high)}) for i, (low, high) in enumerate(ranges)), cost_s
    )


@st.composite
def ladders(draw):
    symbol_ranges = st.fixed_dictionaries({"batch": RANGES | OPEN_RANGES, "seq": RANGES})
    ranges = draw(st.lists(symbol_ranges, min_size=1, max_size=5))
    cost_s = draw(st.just(()) | st.tuples(*[st.sampled_from([0.5, 1.0, 2.0])] * len(ranges)))
    return Ladder(tuple(Profile(f"p{i}", r) for i, r in enumerate(ranges)), cost_s)


def pick_by_the_words_of_the_rule(ladder, sizes, padded):
    """Profiles that fit, then least cost, then fewest padded elements, then lowest index; None when nothing fits."""
    best = None
    for index, profile in enumerate(ladder.profiles):
        run = {}
        for symbol, size in sizes.items():
            low, high = profile.ranges[symbol].min, profile.ranges[symbol].max
            if high is not None and size > high:
                break
            if size < low and (symbol not in padded or size == 0):
                break
            if symbol not in padded or size == 0:
                run[symbol] = size
            else:
                run[symbol] = max(size, low) if high is None else high
        else:
            extra = run["batch"] * run["seq"] - sizes["batch"] * sizes["seq"]
            key = (ladder.cost_s[index] if ladder.cost_s else 0, extra, index)
            best = key if best is None else min(best, key)
    return best and best[2]


@given(
    ladder=ladders(),
    sizes=st.fixed_dictionaries({"batch": st.integers(0, 8), "seq": st.integers(0, 8)}),
    padded=st.frozensets(st.sampled_from(["batch", "seq"])),
)
def test_the_pick_follows_the_words_of_the_rule(ladder, sizes, padded):
    expected = pick_by_the_words_of_the_rule(ladder, sizes, padded)
    try:
        picked = ladder.pick(sizes, padded)
    except RequestError:
        picked = None
    assert picked == expected


@pytest.mark.parametrize(
    ("cost_s", "index"),
    [
        pytest.param((), 0, id="fewest-padded-elements"),
        pytest.param((2.0, 1.0), 1, id="least-measured-cost-first"),
        pytest.param((1.0, 1.0), 0, id="equal-cost-then-padding"),
    ],
)
def test_batch_6_has_one_answer_where_1_to_8_and_4_to_16_overlap(cost_s, index):
    assert ladder_of((1, 8), (4, 16), cost_s=cost_s).pick({"batch": 6}, {"batch"}) == index


def test_without_padding_overlapping_profiles_tie_and_the_first_wins():
    assert ladder_of((1, 8), (4, 16)).pick({"batch": 6}) == 0


def test_a_gap_is_filled_by_allowed_padding():
    assert ladder_of((1, 4), (8, 16)).pick({"batch": 6}, {"batch"}) == 1


def test_a_gap_without_padding_is_an_error_that_lists_the_ranges():
    with pytest.raises(RequestError, match=r"batch=6, but this bundle serves batch 1\.\.4 or 8\.\.16"):
        ladder_of((1, 4), (8, 16)).pick({"batch": 6})


def test_two_symbols_that_fit_in_different_profiles_only_fit_in_none():
    ladder = Ladder(
        (
            Profile("p0", {"batch": Range(1, 1, 1), "seq": Range(1, 64, 64)}),
            Profile("p1", {"batch": Range(1, 8, 8), "seq": Range(1, 16, 16)}),
        )
    )
    with pytest.raises(RequestError, match=r"no profile takes batch=8, seq=64 together; .*p0: batch 1, seq 1\.\.64"):
        ladder.pick({"batch": 8, "seq": 64})


@pytest.mark.parametrize(
    ("size", "advice"),
    [
        pytest.param(9, r"shorten the request or rebuild with --dim batch=4\.\.9$", id="above"),
        pytest.param(0, r"send a larger request or rebuild with --dim batch=0\.\.8$", id="zero"),
    ],
)
def test_a_size_outside_4_to_8_gets_advice_in_its_direction(size, advice):
    with pytest.raises(RequestError, match=advice):
        ladder_of((4, 8)).pick({"batch": size}, {"batch"})


def test_the_advice_for_an_open_range_keeps_it_open():
    ladder = Ladder((Profile("p0", {"seq": Range(4, None, None)}),))
    with pytest.raises(RequestError, match=r"rebuild with --dim seq=2\.\.$"):
        ladder.pick({"seq": 2})


@pytest.mark.parametrize(
    ("profiles", "cost_s"),
    [
        pytest.param((), (), id="empty"),
        pytest.param((Profile("p0", {}), Profile("p0", {})), (), id="same-name-twice"),
        pytest.param((Profile("p0", {}), Profile("p1", {})), (1.0,), id="cost-for-some-only"),
    ],
)
def test_a_ladder_that_could_not_pick_is_refused(profiles, cost_s):
    with pytest.raises(ProfileError):
        Ladder(profiles, cost_s)
