"""Layouts: places of one call never overlap, are aligned, and fit what they say."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.layout import plan_layout
from trtc.engines.memory import PAGE_BYTES, array_at, host_slot, map_host_memory
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import Expr, RequestError, Step, Term

DTYPES = st.sampled_from(["float", "int64", "bool", "float16", "uint8", "complex64", "string", "int4"])
DIMS = st.lists(st.one_of(st.integers(0, 5), st.sampled_from(["a", "b"]), st.none()), max_size=3).map(tuple)
SPECS = st.lists(st.tuples(DTYPES, st.one_of(st.none(), DIMS)), max_size=4)


@given(SPECS, SPECS, st.integers(0, 9), st.integers(0, 9), st.sampled_from([64, 256]))
def test_places_never_overlap_are_aligned_and_hold_their_tensor(inputs, outputs, a, b, alignment):
    def specs(prefix, kinds):
        return tuple(TensorSpec(f"{prefix}{i}", dtype, dims) for i, (dtype, dims) in enumerate(kinds))

    signature = Signature(specs("i", inputs), specs("o", outputs))
    layout = plan_layout(signature, {"a": a, "b": b}, alignment)
    memory = np.full(layout.size_bytes + 1, -1, np.int16)
    for number, place in enumerate([*layout.inputs.values(), *layout.outputs.values()]):
        assert place.offset_bytes % alignment == 0
        assert place.size_bytes == prod(place.shape) * place.dtype.itemsize
        span = slice(place.offset_bytes, place.offset_bytes + place.size_bytes)
        assert span.stop <= layout.size_bytes
        assert (memory[span] == -1).all(), "two tensors share bytes"
        memory[span] = number
    assert layout.size_bytes % alignment == 0
    assert layout.used_bytes == int((memory >= 0).sum())
    placed = {spec.name for spec in signature.outputs if spec.in_memory and None not in spec.dims}
    assert set(layout.outputs) == placed
    assert set(layout.late) == {spec.name for spec in signature.outputs} - placed


def test_expressions_give_the_shape_and_negative_ones_are_refused():
    less = Expr((Term(1, (Step("s", 1, -2),)),))
    signature = Signature((TensorSpec("x", "float", ("s",)),), (TensorSpec("y", "float", (less,)),))
    assert plan_layout(signature, {"s": 5}).outputs["y"].shape == (3,)
    assert plan_layout(signature, {"s": 2}).outputs["y"].shape == (0,)
    with pytest.raises(RequestError, match=r"'y' \[s-2\] would have shape \[-1\] for s=1; send a larger request"):
        plan_layout(signature, {"s": 1})


def test_sizes_beyond_the_machine_are_planned_without_overflow():
    signature = Signature((TensorSpec("x", "double", ("s", "s")),), ())
    assert plan_layout(signature, {"s": 2**40}).size_bytes == 2**83


@pytest.mark.parametrize("size", [0, 1, PAGE_BYTES, PAGE_BYTES + 1])
def test_host_memory_is_zeroed_page_aligned_and_whole_pages(size):
    slot = host_slot(size)
    assert slot.address % PAGE_BYTES == 0
    assert len(slot.buffer) == max(1, -(-size // PAGE_BYTES)) * PAGE_BYTES == len(map_host_memory(size))
    assert not any(slot.buffer)


def test_an_array_at_a_place_shares_the_slots_memory():
    signature = Signature((TensorSpec("x", "float", (2,)), TensorSpec("k", "float", ())), ())
    layout = plan_layout(signature, {})
    slot = host_slot(layout.size_bytes)
    array_at(slot.buffer, layout.inputs["k"])[...] = 7
    assert np.frombuffer(slot.buffer, np.float32)[16] == 7
    assert array_at(slot.buffer, layout.inputs["k"]).ctypes.data == slot.address + 64
