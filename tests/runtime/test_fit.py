"""The pick of a profile: the table picks what the rule picks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import Ladder, Profile, Range, RequestError
from trtc.runtime import fit
from trtc.runtime.fit import PickTables, pick_profile

SYMBOLS = ("batch", "seq")


def ranges():
    ends = st.lists(st.integers(1, 9), min_size=2, max_size=2).map(sorted)
    return ends.map(lambda pair: Range(pair[0], pair[1], pair[1]))


@st.composite
def ladders(draw):
    count = draw(st.integers(1, 4))
    profiles = tuple(Profile(f"p{i}", {symbol: draw(ranges()) for symbol in SYMBOLS}) for i in range(count))
    costs = draw(st.one_of(st.just(()), st.tuples(*[st.sampled_from([0.1, 0.2, 0.3])] * count)))
    return Ladder(profiles, costs)


def picked(pick):
    try:
        return pick()
    except RequestError as error:
        return str(error)


@given(ladders(), st.sets(st.sampled_from(SYMBOLS)), st.tuples(st.integers(0, 11), st.integers(0, 11)))
def test_the_table_picks_and_refuses_as_the_rule_does(ladder, padded, sizes):
    asked = dict(zip(SYMBOLS, sizes, strict=True))
    tables = PickTables(ladder, SYMBOLS)
    for order in (asked, dict(reversed(asked.items()))):
        wanted = picked(lambda order=order: pick_profile(ladder, order, frozenset(padded)))
        assert picked(lambda order=order: tables.pick(order, frozenset(padded))) == wanted


def test_the_rule_is_not_asked_again_once_the_table_is_there(monkeypatch):
    ladder = Ladder(tuple(Profile(f"p{i}", {"seq": Range(1, n, n)}) for i, n in enumerate((8, 16))), (1.0, 2.0))
    tables = PickTables(ladder, ("seq",))
    monkeypatch.setattr(fit, "pick_profile", lambda *_: pytest.fail("the rule was asked"))
    assert [tables.pick({"seq": n}, frozenset(["seq"])) for n in (1, 8, 9, 16)] == [0, 0, 1, 1]


def test_a_request_that_says_some_sizes_only_is_picked_by_the_rule():
    profiles = tuple(Profile(f"p{i}", {"batch": Range(1, 2, 2), "seq": Range(1, n, n)}) for i, n in enumerate((8, 16)))
    assert PickTables(Ladder(profiles), SYMBOLS).pick({"seq": 9}, frozenset(["seq"])) == 1


def test_a_ladder_that_does_not_speak_of_every_symbol_is_picked_by_the_rule():
    ladder = Ladder((Profile("p0", {"seq": Range(1, 8, 8)}),))
    assert PickTables(ladder, SYMBOLS).pick({"batch": 3, "seq": 5}, frozenset()) == 0
