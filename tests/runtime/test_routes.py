"""The table of prepared routes: bounded, and never wrong about what it holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trtc.runtime import core as core_module
from trtc.runtime.route_table import MAX_ROUTES, make_room


class Entry:
    def __init__(self):
        self.used = True


def test_room_is_made_by_forgetting_what_was_not_used_since_the_last_look():
    routes = {i: Entry() for i in range(4)}
    assert make_room(routes, 4) == 1
    assert set(routes) == {1, 2, 3}
    assert not any(entry.used for entry in routes.values())
    routes[4] = Entry()
    routes[2].used = True
    assert make_room(routes, 4) == 1
    assert set(routes) == {2, 3, 4}


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 4))
def test_a_table_never_grows_beyond_its_limit_and_keeps_the_newest(keys, limit):
    routes, forgotten, made = {}, 0, 0
    for key in keys:
        if key in routes:
            routes[key].used = True
            continue
        forgotten += make_room(routes, limit)
        routes[key] = Entry()
        made += 1
        assert len(routes) <= limit
        assert list(routes)[-1] == key
    assert made - forgotten == len(routes)


def test_a_full_table_of_a_session_forgets_routes_and_results_stay_right(open_bundle, double_model, monkeypatch):
    monkeypatch.setattr(core_module, "make_room", lambda routes: make_room(routes, 8))
    session = open_bundle(double_model, profiles=({"batch": (0, None)},), slots=1)
    rng = np.random.default_rng(0)
    for batch in rng.integers(0, 40, 400):
        x = rng.standard_normal((batch, 4), dtype=np.float32)
        np.testing.assert_array_equal(session.run({"x": x})["y"], x + x)
        assert len(session._core.pool.slots[0].routes) <= 8
    assert session.stats.routes_forgotten > 50


def test_a_slot_keeps_the_routes_that_its_bound_allows(open_bundle, identity_model):
    session = open_bundle(identity_model(dims=("n", "m")), profiles=({"n": (0, 40), "m": (0, 40)},), slots=1)
    for n in range(40):
        for m in range(40):
            assert session.run({"x": np.zeros((n, m), np.float32)})["y"].shape == (n, m)
    assert len(session._core.pool.slots[0].routes) == MAX_ROUTES == 1024
    assert session.stats.routes_prepared == 1600
    assert session.stats.routes_forgotten == 1600 - 1024
