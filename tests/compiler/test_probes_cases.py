"""Which sizes experiments on padding run at."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trtc.compiler.probes.cases import pad_cases, sample_cases
from trtc.profiles import Ladder, Profile, Range


class Sized:
    """The part of a subject that sizes are chosen by."""

    def __init__(self, ladder: Ladder, multiples: dict[str, int]) -> None:
        self.ladder, self.multiples = ladder, multiples


def sized(*ranges: tuple[int, int | None], multiple: int = 1) -> Sized:
    ladder = Ladder(
        tuple(
            Profile(f"p{i}", {"b": Range(0, 4, 8), "s": Range(low, high, high)}) for i, (low, high) in enumerate(ranges)
        )
    )
    return Sized(ladder, {"s": multiple})


@st.composite
def subjects(draw) -> Sized:
    bounds = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40) | st.none()), min_size=1, max_size=4))
    ranges = [(low, None if more is None else low + more) for low, more in bounds]
    return sized(*ranges, multiple=draw(st.integers(1, 8)))


@given(subjects(), st.integers(1, 30))
@settings(deadline=None, max_examples=80)
def test_every_case_pads_and_stays_inside_the_ladder(found, most):
    cases = pad_cases(found, ["s"], most)
    assert len(cases) <= most
    tops = [p.ranges["s"].max for p in found.ladder.profiles]
    for case in cases:
        assert 1 <= case.sizes["s"] < case.run_sizes["s"]
        assert case.sizes["s"] % found.multiples["s"] == case.run_sizes["s"] % found.multiples["s"] == 0
        assert case.sizes["b"] == case.run_sizes["b"]
        assert any(top is None or case.run_sizes["s"] <= top for top in tops)


def test_every_bucket_is_reached_from_one_element_and_from_one_less():
    cases = {(c.sizes["s"], c.run_sizes["s"]) for c in pad_cases(sized((1, 16), (17, 64)), ["s"], 16)}
    assert {(1, 16), (15, 16), (13, 16), (1, 64), (63, 64), (61, 64)} <= cases


def test_open_ranges_are_tried_with_one_and_three_elements_of_padding():
    cases = pad_cases(sized((5, None)), ["s"], 16)
    assert {c.run_sizes["s"] - c.sizes["s"] for c in cases} >= {1, 3}
    assert any(c.sizes["s"] == 1 for c in cases)


def test_the_other_symbols_are_small_and_not_always_one():
    assert {c.sizes["b"] for c in pad_cases(sized((1, 32)), ["s"], 16)} == {1, 2, 3}


def test_symbols_padded_together_all_grow():
    for case in pad_cases(sized((1, 16), (17, 64)), ["s", "b"], 16):
        assert all(case.sizes[name] < case.run_sizes[name] for name in ("s", "b"))


def test_a_real_request_is_padded_to_its_bucket_and_by_one_and_three():
    cases = sample_cases(sized((1, 16), (17, 64)), ["s"], {"b": 2, "s": 20})
    assert [c.run_sizes for c in cases] == [{"b": 2, "s": 64}, {"b": 2, "s": 21}, {"b": 2, "s": 23}]


def test_sizes_that_must_be_multiples_are_counted_in_them():
    cases = {(c.sizes["s"], c.run_sizes["s"]) for c in pad_cases(sized((32, 640), multiple=32), ["s"], 16)}
    assert {(32, 640), (608, 640), (544, 640), (32, 64)} <= cases
