"""The value domain of the evidence: where padding was shown to be neutral, and where nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.value import Value

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest


class Guard(Value, frozen=True):
    """The values of one input for which padding was shown to be neutral."""

    name: str
    low: float
    high: float
    rows_nonzero: bool

    def holds(self, array: np.ndarray) -> bool:
        """Tell whether every element lies in the domain. NaN lies outside."""
        if array.size == 0:
            return True
        inside = bool(array.min() >= self.low and array.max() <= self.high)
        return inside and not (self.rows_nonzero and array.ndim and not bool(array.any(axis=-1).all()))

    def refusal(self) -> str:
        """Say why values outside of the domain are not padded."""
        rows = ", no row all zero" if self.rows_nonzero else ""
        return (
            f"input {self.name!r} holds values outside of those for which padding was shown to be neutral "
            f"({self.low:g}..{self.high:g}{rows}), so the request can only run at its exact sizes"
        )


def guards_of(manifest: Manifest, *, filled: bool = True) -> dict[str, Guard]:
    """Return, for each input, the values for which padding was shown to be neutral.

    Args:
        manifest: of the bundle.
        filled: for calls whose padding holds constants; else for those that repeat rows and nothing more.
    """
    kinds = ("padding", "rows") if filled else ("rows",)
    guards: dict[str, Guard] = {}
    for evidence in manifest.evidence:
        if evidence.kind not in kinds or evidence.deviation_accepted:
            continue
        for name, domain in evidence.domain.items():
            old = guards.get(name, Guard(name, -np.inf, np.inf, rows_nonzero=False))
            guards[name] = Guard(
                name,
                max(old.low, domain.low),
                min(old.high, domain.high),
                rows_nonzero=old.rows_nonzero or domain.rows_nonzero,
            )
    return guards
