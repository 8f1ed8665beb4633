"""Some feeds of a model, each call with the same chance to be among them, and the ranges of their values.

The calls that are taken are chosen by Vitter's reservoir sampling with skips ("algorithm L", Li 1994): a call that is
not taken costs a subtraction. Each process draws for itself and writes over what another one kept in the same place.
"""

from __future__ import annotations

import math
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.array_files import write_npz
from trtc.engines.signature import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_SAMPLE_BYTES = 8 * 2**20
"""A feed that is larger is not kept; ranges of its values are."""


class Sampler:
    """Keeps feeds of one model.

    Args:
        folder: that they are written to; made when the first comes.
        most: how many.

    Attributes:
        types: element type by input, such as ``tensor(int32)``: for values that come as lists.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.types: dict[str, str] = {}
        self._folder = folder
        self._most = most
        self._random = Random()  # noqa: S311 (a draw, no secret)
        self._lock = RLock()
        self._skip = 0 if most else -1
        self._taken = 0
        self._weight = 1.0
        self._ranges: dict[str, tuple[float, float]] = {}
        self._sampled = 0
        self.failure = ""

    def wants(self) -> bool:
        """Tell whether this call is one that is taken; one thread asks at a time."""
        self._skip -= 1
        return self._skip == -1 and self._most > 0

    def take(self, feeds: Mapping[str, Any]) -> None:
        """Keep the feeds of a call. Never raises for what they hold."""
        with self._lock:
            place = self._taken if self._taken < self._most else self._random.randrange(self._most)
            self._taken += 1
            self._skip = self._next_skip()
            try:
                with np.errstate(all="ignore"):
                    arrays = {str(name): self._array(str(name), value) for name, value in feeds.items()}
                    for name, array in arrays.items():
                        self._widen(name, array)
                self._sampled += 1
                if sum(array.nbytes for array in arrays.values()) <= MAX_SAMPLE_BYTES:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    write_npz(self._folder / f"{place:04d}.npz", arrays)
            except Exception as error:  # noqa: BLE001 (anybody's objects; the call that they belong to has been answered)
                self.failure = f"{self._folder}: a sample cannot be kept: {error}"

    def drain(self) -> tuple[dict[str, tuple[float, float]], int]:
        """Return the ranges so far, and how many calls were looked at since this was asked last."""
        with self._lock:
            sampled, self._sampled = self._sampled, 0
            return dict(self._ranges), sampled

    def _next_skip(self) -> int:
        if self._taken < self._most:
            return 0
        self._weight *= math.exp(math.log(1 - self._random.random()) / self._most)
        if self._weight >= 1.0:
            return 0
        return int(math.log(1 - self._random.random()) / math.log1p(-self._weight))

    def _array(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return np.asarray(value)
        declared = self.types.get(name, "")
        if isinstance(value, list) and declared.startswith("tensor("):
            return np.asarray(value, numpy_dtype(declared[7:-1]))
        raise TypeError(f"input {name!r} is {type(value).__name__}, neither an array nor a list of numbers")

    def _widen(self, name: str, array: np.ndarray) -> None:
        if array.dtype.kind not in "biuf" or not array.size:
            return
        # NaN is left out; where there is nothing else it comes out, without the warning that `nanmin` gives.
        low, high = float(np.fmin.reduce(array, axis=None)), float(np.fmax.reduce(array, axis=None))
        if math.isfinite(low) and math.isfinite(high):
            before = self._ranges.get(name, (low, high))
            self._ranges[name] = (min(low, before[0]), max(high, before[1]))
