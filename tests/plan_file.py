"""Read the profiles out of an engine's own bytes: the deserializer needs a driver, and the file shows them plainly.

The layout was found by building engines with telling sizes and looking for those. A list is a tag, its count and its
items; shapes are lists of 64-bit integers. Whatever does not look like that is not read: the tests then fail.
"""

from __future__ import annotations

import struct

_PROFILES = bytes.fromhex("018039800100")
_TENSORS = bytes.fromhex("018037800100")
_SHAPES = bytes.fromhex("018059800100")
_RANK = bytes.fromhex("07800100")
_SIZES = bytes.fromhex("018009800100")
_ABSENT = 0xFFFFFFFF

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def profiles_in(plan: bytes) -> list[list[Shapes]]:
    """Return, for each profile, the min, opt and max shape of each input in the network's order."""
    end = len(plan)
    while (end := plan.rfind(_PROFILES, 0, end)) >= 0:
        count = struct.unpack_from("<Q", plan, end + len(_PROFILES))[0]
        starts = []
        at = end + len(_PROFILES) + 8
        for _ in range(count if count < 1000 else 0):
            at = plan.find(_TENSORS, at)
            if at < 0:
                break
            starts.append(at)
            at += 1
        if count and len(starts) == count:
            return [_tensors(plan, start) for start in starts]
    raise AssertionError("no profiles were found in the engine's bytes")


def _tensors(plan: bytes, at: int) -> list[Shapes]:
    count = struct.unpack_from("<Q", plan, at + len(_TENSORS))[0]
    at += len(_TENSORS) + 8
    found = []
    for _ in range(count):
        at = plan.index(_SHAPES, at)
        assert struct.unpack_from("<Q", plan, at + len(_SHAPES))[0] == 3
        at += len(_SHAPES) + 8
        shapes = []
        for _ in range(3):
            shape, at = _shape(plan, at)
            if shape is not None:
                shapes.append(shape)
        if shapes:  # Outputs stand there without shapes.
            found.append(tuple(shapes))
    return found


def _shape(plan: bytes, at: int) -> tuple[tuple[int, ...] | None, int]:
    at = plan.index(_RANK, at) + len(_RANK)
    rank = struct.unpack_from("<I", plan, at)[0]
    at += 4
    if rank == _ABSENT:
        return None, at
    at = plan.index(_SIZES, at) + len(_SIZES)
    assert struct.unpack_from("<Q", plan, at)[0] == rank
    return struct.unpack_from(f"<{rank}q", plan, at + 8), at + 8 + 8 * rank
