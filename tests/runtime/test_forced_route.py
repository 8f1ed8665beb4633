"""Loading for one profile, or with a mode of the caller's choice."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from trtc.profiles import PadRule
from trtc.runtime import RequestError, UsageError, load

FEEDS = {"x": np.ones((2, 4), np.float32)}


@pytest.fixture
def path(make_bundle, double_model):
    rule = PadRule("batch", "rows", {})
    return make_bundle(double_model, profiles=({"batch": (1, 4)}, {"batch": (1, 16)}), padding=(rule,))


@pytest.mark.parametrize(
    ("profile", "mode", "runs_at"),
    [
        pytest.param(None, None, 2, id="as-built"),
        pytest.param(None, "bucket", 4, id="smallest-bucket"),
        pytest.param("p1", "bucket", 16, id="bucket-of-the-asked-profile"),
        pytest.param("p1", "exact", 2, id="exact-in-the-asked-profile"),
    ],
)
def test_a_request_runs_in_the_asked_profile_and_mode(path, profile, mode, runs_at):
    with load(path, profile=profile, mode=mode) as session:
        assert session.explain({"batch": 2}).run_sizes == {"batch": runs_at}
        np.testing.assert_array_equal(session.run(FEEDS)["y"], 2 * FEEDS["x"])


def test_a_request_that_the_asked_profile_does_not_hold_is_refused_although_another_one_would_take_it(path):
    with load(path, profile="p0") as session, pytest.raises(RequestError, match=r"batch=9, but this bundle serves"):
        session.run({"x": np.ones((9, 4), np.float32)})


def test_a_pickled_session_keeps_profile_and_mode(path):
    with load(path, profile="p1", mode="bucket") as session, pickle.loads(pickle.dumps(session)) as again:  # noqa: S301
        assert again.explain({"batch": 2}).run_sizes == {"batch": 16}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"profile": "p7"}, r"profile 'p7'.*known: 'p0', 'p1'", id="unknown-profile"),
        pytest.param({"mode": "padded"}, r"mode='padded'; give 'exact' or 'bucket'", id="unknown-mode"),
    ],
)
def test_unknown_names_are_wrong_use(path, options, says):
    with pytest.raises(UsageError, match=says):
        load(path, **options)
