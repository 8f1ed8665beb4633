"""The sizes that a model runs at, from trials of which some may be missing."""

from __future__ import annotations

import pytest

from trtc.compiler.size_rule import SizeRule, bisect_high, bisect_low, classify, find_top


def up_to(limit, untried=()):
    """A model that runs up to ``limit``; ``untried`` sizes are left out for time."""
    return lambda size: None if size in untried else size <= limit


@pytest.mark.parametrize("limit", [101, 255, 256, 466, 511, 512])
def test_the_largest_size_is_found_exactly(limit):
    assert bisect_high(up_to(limit), 100, 513) == limit
    assert find_top(SizeRule(1), up_to(limit)).max == limit


def test_a_size_that_was_not_tried_is_no_limit():
    assert bisect_high(up_to(512, untried=range(480, 513)), 466, 513) is None
    assert find_top(SizeRule(1), up_to(512, untried=range(400, 513))).max is None


def test_a_smallest_size_is_one_that_was_seen_to_run():
    assert bisect_low(lambda size: size >= 5, 1, 20) == 5
    assert bisect_low(lambda size: None if size < 10 else True, 1, 20) == 10


def test_a_rule_from_a_table_of_trials_has_no_invented_end():
    worked = {size: size <= 40 for size in (*range(1, 33), 64)}
    assert classify(worked, 2, up_to(40)).max == 40
    assert classify(worked, 2, up_to(40, untried=range(33, 64))).max is None
