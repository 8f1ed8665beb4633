"""The null backend: every placed output is zero, every late output is empty. It computes nothing on purpose.

It stands in for a target so that routing, memory, threads and overhead can be tested and measured alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.memory import array_at
from trtc.engines.protocol import HOST_TRAITS
from trtc.engines.signature import numpy_dtype

if TYPE_CHECKING:
    from trtc.engines.layout import Layout
    from trtc.engines.opening import Opening
    from trtc.engines.protocol import LateOutputs, Slot
    from trtc.engines.signature import Signature


class NullCall:
    """Writes zeros over the placed outputs."""

    def __init__(self, outputs: list[np.ndarray], late: LateOutputs) -> None:
        self._outputs = outputs
        self._late = late

    def enqueue(self) -> None:
        """Write the zeros."""
        for array in self._outputs:
            array[...] = 0

    def wait(self) -> LateOutputs:
        """Return the empty late outputs."""
        return dict(self._late)

    def cancel(self) -> None:
        """Do nothing: a run is over before it could be stopped."""


class NullEngine:
    """Prepares calls that compute nothing."""

    traits = HOST_TRAITS

    def __init__(self, signature: Signature) -> None:
        self._specs = {spec.name: spec for spec in signature.outputs}

    def prepare(self, bucket: Layout, slot: Slot) -> NullCall:
        """Bind the outputs of one call."""
        outputs = [array_at(slot.buffer, place) for place in bucket.outputs.values()]
        late: LateOutputs = {
            name: np.zeros((0,) * len(self._specs[name].dims or ()), numpy_dtype(self._specs[name].dtype))
            if self._specs[name].is_tensor
            else []
            for name in bucket.late
        }
        return NullCall(outputs, late)

    def close(self) -> None:
        """Do nothing: nothing was opened."""

    def reserve(self, calls: int) -> None:
        """Do nothing: a call needs its slot only."""
        del calls

    def device_stats(self) -> None:
        """Return nothing: nothing lies on a device."""


def load_engine(opening: Opening) -> NullEngine:
    """Open the null engine."""
    return NullEngine(opening.signature)
