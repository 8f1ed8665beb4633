"""Which optimization profile serves which sizes, and what each profile needs on the device. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.device_stats import ProfileNeeds
from trtc.engines.errors import EngineError
from trtc.engines.layout import plan_layout
from trtc.engines.signature import Signature
from trtc.engines.tensorrt.device_arena import ALIGNMENT_BYTES
from trtc.engines.tensorrt.spans import plan_device
from trtc.profiles import RequestError, sizes_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.profiles import Ladder


def profile_for(ladder: Ladder, sizes: Mapping[str, int]) -> tuple[int, bool]:
    """Return the index of the profile that runs these sizes, and whether they are its bucket.

    A profile whose bucket they are comes first: it was tuned for them. Then the first that holds them.

    Raises:
        EngineError: when none does. The runtime asks the ladder before, so this is a damaged bundle.
    """
    for i, profile in enumerate(ladder.profiles):
        if all(sizes.get(symbol) == size for symbol, size in profile.bucket.items()):
            return i, True
    for i, profile in enumerate(ladder.profiles):
        if all(symbol not in sizes or r.holds(sizes[symbol]) for symbol, r in profile.ranges.items()):
            return i, False
    raise EngineError(f"no profile of the engine holds {sizes_text(sizes)}; rebuild the bundle")


def needs_of(signature: Signature, ladder: Ladder, scratch_bytes: Sequence[int]) -> tuple[ProfileNeeds, ...]:
    """Return the device memory of one call in each profile.

    Args:
        signature: of the bundle.
        ladder: its profiles, each closed.
        scratch_bytes: that the library works in, in the order of the ladder.
    """
    read = Signature(tuple(spec for spec in signature.inputs if spec.used), signature.outputs)
    found = []
    for profile, scratch in zip(ladder.profiles, scratch_bytes, strict=True):
        bucket = {symbol: size for symbol, size in profile.bucket.items() if size is not None}
        try:
            region = plan_device(plan_layout(read, bucket, ALIGNMENT_BYTES)).size_bytes
        except RequestError:  # no request can have these sizes: a relation would give a negative one
            region = 0
        found.append(ProfileNeeds(profile.name, region, scratch))
    return tuple(found)
