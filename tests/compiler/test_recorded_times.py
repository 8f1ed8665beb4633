"""Times that a bundle keeps come from a file that may be anybody's."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from trtc.compiler.recorded_times import recorded_times
from trtc.engines.manifest import RecordedCalls

DIGEST = "ab" * 32
CALL = {"model": DIGEST, "name": "n", "inputs": {"x": [2]}, "count": 4, "seconds": 2.0, "times_s": []}
NO_NUMBERS = [10**400, 2**63, -1, 0, math.nan, math.inf, 1e308, "x", None, [1]]


@pytest.mark.parametrize("key", ["seconds", "timed"])
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_of_calls_or_seconds_is_not_kept(tmp_path, key, value):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in ({**CALL, key: value}, CALL, {**CALL, key: value})))
    found = recorded_times([path], DIGEST)
    assert found == (RecordedCalls({"x": (2,)}, 4, 2.0),)
    assert msgspec.json.decode(msgspec.json.encode(found), type=tuple[RecordedCalls, ...]) == found
