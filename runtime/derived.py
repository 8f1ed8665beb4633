"""Inputs that trtc makes: masks and positions, as views of tables that are made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.signature import numpy_dtype
from trtc.profiles import dim_value

if TYPE_CHECKING:
    from trtc.engines.route import RoutePlan
    from trtc.engines.signature import Signature
    from trtc.profiles import Derived


class DerivedTables:
    """Makes the values of derived inputs. Thread-safe: tables are replaced, never changed."""

    def __init__(self, signature: Signature) -> None:
        self._specs = {spec.name: spec for spec in signature.inputs}
        self._counts: dict[str, np.ndarray] = {}

    def values(self, derived: Derived, plan: RoutePlan) -> np.ndarray:
        """Return the real part of a derived input: read-only, a view that repeats one element or one row.

        Args:
            derived: what to make.
            plan: of the request; its real sizes give the shape.
        """
        spec = self._specs[derived.input]
        dtype = numpy_dtype(spec.dtype)
        shape = tuple(int(dim_value(dim, plan.sizes) or 0) for dim in spec.dims or ())
        if derived.kind != "positions" or derived.symbol is None:
            return np.broadcast_to(np.array(derived.kind == "ones", dtype), shape)
        axis = (spec.dims or ()).index(derived.symbol)
        row = self._count_to(shape[axis], dtype)[: shape[axis]]
        return np.broadcast_to(row.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)

    def _count_to(self, size: int, dtype: np.dtype[np.generic]) -> np.ndarray:
        table = self._counts.get(dtype.str)
        if table is None or len(table) < size:
            table = self._counts[dtype.str] = np.arange(1 << max(6, size.bit_length())).astype(dtype)
        return table
