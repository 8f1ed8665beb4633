"""What calls took before is read from a file that may be anybody's."""

from __future__ import annotations

import json
import math

import pytest

from trtc.profiles import UsageError
from trtc.tools.exec_summary import before_of, read_before

CALL = {"model": "m", "name": "n", "inputs": {"x": [2]}, "count": 4, "seconds": 2.0, "times_s": []}
NO_NUMBERS = [10**400, -(10**400), -1, math.nan, math.inf, "3", None, [1], {}]


@pytest.mark.parametrize("key", ["count", "seconds", "timed"])
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_of_calls_or_seconds_counts_for_nothing(key, value):
    entries = [CALL, {**CALL, key: value}, {**CALL, "model": "other", key: value}]
    assert before_of(entries) == {"m": {'{"x": [2]}': (4.0, 0.5)}}


@pytest.mark.parametrize(
    "line", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "\x00", json.dumps({**CALL, "count": -1})]
)
def test_lines_that_say_nothing_are_left_out(tmp_path, line):
    path = tmp_path / "r.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(UsageError, match="holds no calls"):
        read_before(str(path))
    path.write_text(f"{line}\n{json.dumps(CALL)}\n")
    assert read_before(str(path)) == {"m": {'{"x": [2]}': (4.0, 0.5)}}
