"""Numbers of things read as people write them."""

from __future__ import annotations

import numpy as np
import pytest

from trtc.tools.output import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_one_is_no_plural(number, text):
    assert counted(number, "run") == text


def test_one_problem_and_one_profile_are_told_as_such(trtc, encoder, tmp_path, request_file):
    said = trtc("build", encoder, "--samples", request_file(input_ids=np.zeros((2, 3), np.int64)))
    assert (said.code, "1 problem in the samples" in said.err) == (2, True), said.err
    bundle, traffic = tmp_path / "x.trtc", tmp_path / "t.jsonl"
    assert (
        trtc("build", encoder, "-o", bundle, "--dim", "batch=1", "--dim", "seq=1..8", "--measure-seconds", "0").code
        == 0
    )
    traffic.write_text('{"batch": 1, "seq": 8}')
    said = trtc("plan", "--from-bundle", bundle, "--traffic", traffic)
    assert "rebuilt, 1 profile " in said.out
