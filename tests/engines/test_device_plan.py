"""Where tensors lie on a device, which copies bring them there, and which profile runs them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.errors import EngineError
from trtc.engines.layout import plan_layout
from trtc.engines.signature import Signature, TensorSpec
from trtc.engines.tensorrt.choice import needs_of, profile_for
from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES
from trtc.engines.tensorrt.spans import Span, plan_device
from trtc.profiles import Ladder, Profile, Range

names = st.lists(st.tuples(st.sampled_from(["float", "int64", "bool"]), st.integers(0, 200)), max_size=5)


def signature(inputs, outputs):
    def specs(kind, sizes):
        return tuple(TensorSpec(f"{kind}{i}", dtype, (size,)) for i, (dtype, size) in enumerate(sizes))

    return Signature(specs("i", inputs), specs("o", outputs))


@given(names, names, st.sampled_from([1, 8, 64, 256, 512]), st.sets(st.sampled_from(["i0", "i1"])))
def test_copies_bring_every_tensor_to_its_place_and_touch_no_other(inputs, outputs, alignment, on_host):
    layout = plan_layout(signature(inputs, outputs), {}, alignment)
    plan = plan_device(layout, on_host)
    assert all(offset % ALIGNMENT_BYTES == 0 for offset in plan.offsets.values())
    for places, spans, left_out in ((layout.inputs, plan.to_device, on_host), (layout.outputs, plan.to_host, set())):
        moved = {}
        for span in spans:
            for i in range(span.size_bytes):
                assert span.host + i not in moved, "copied twice"
                moved[span.host + i] = span.device + i
            assert span.device + span.size_bytes <= plan.size_bytes
        for name, place in places.items():
            for i in range(place.size_bytes if name not in left_out else 0):
                assert moved[place.offset_bytes + i] == plan.offsets[name] + i
        others = layout.outputs if places is layout.inputs else layout.inputs
        for place in (*others.values(), *(places[name] for name in left_out if name in places)):
            assert not any(place.offset_bytes + i in moved for i in range(place.size_bytes))


def test_a_slot_aligned_for_the_device_takes_one_copy_each_way():
    layout = plan_layout(signature([("float", 3), ("int64", 70), ("bool", 1)], [("float", 9), ("float", 1)]), {}, 256)
    plan = plan_device(layout)
    assert plan.to_device == (Span(0, 0, 256 + 768 + 1),)
    assert plan.to_host == (Span(1280, 1280, 256 + 4),)
    assert plan.size_bytes == layout.size_bytes


def test_a_tensor_without_elements_is_not_copied():
    plan = plan_device(plan_layout(signature([("float", 0)], [("float", 0), ("float", 2)]), {}, 64))
    assert plan.to_device == ()
    assert plan.to_host == (Span(128, 512, 8),)


LADDER = Ladder(
    (
        Profile("p0", {"n": Range(1, 8, 8), "m": Range(1, 4, 4)}),
        Profile("p1", {"n": Range(1, 4, 4), "m": Range(1, 4, 4)}),
    )
)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param({"n": 8, "m": 4}, (0, True), id="first-bucket"),
        pytest.param({"n": 4, "m": 4}, (1, True), id="its-own-bucket-before-a-larger-profile"),
        pytest.param({"n": 3, "m": 4}, (0, False), id="first-that-holds"),
        pytest.param({"n": 3}, (0, False), id="a-symbol-that-nothing-given-has"),
    ],
)
def test_sizes_run_in_the_profile_that_was_tuned_for_them_or_the_first_that_holds_them(sizes, expected):
    assert profile_for(LADDER, sizes) == expected


def test_sizes_that_no_profile_holds_mean_a_damaged_bundle():
    with pytest.raises(EngineError, match="no profile of the engine holds n=9; rebuild the bundle"):
        profile_for(LADDER, {"n": 9})


def test_needs_count_inputs_that_are_read_outputs_that_have_a_place_and_scratch():
    spec = Signature(
        (TensorSpec("x", "float", ("n", "m")), TensorSpec("idle", "float", ("n", "m"), used=False)),
        (TensorSpec("y", "float", ("n",)), TensorSpec("late", "float", (None,))),
    )
    assert [(n.profile, n.slot_bytes, n.scratch_bytes) for n in needs_of(spec, LADDER, [10, 20])] == [
        ("p0", 512, 10),
        ("p1", 512, 20),
    ]
