"""When two results count as equal: one rule for every experiment and every verification.

Floats may differ by ``atol + rtol * max|reference|`` for each tensor; everything else must be equal.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.manifest import Finding
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.profiles import Sizes

LOW_PRECISION_EPSILONS = 4
"""Allowed relative error of float16, bfloat16 and float8, in epsilons of the type: a result is rounded when it is
stored, and so was what it was computed from, on both sides."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far floats may differ.

    Attributes:
        atol: absolute part.
        rtol: part relative to the largest finite magnitude of the reference tensor.

    Raises:
        UsageError: for a negative or non-finite number.
    """

    atol: float = 1e-5
    rtol: float = 1e-4

    def __post_init__(self) -> None:
        if not all(math.isfinite(part) and part >= 0 for part in (self.atol, self.rtol)):
            raise UsageError(f"tolerance atol={self.atol}, rtol={self.rtol}; give two finite numbers of 0 or more")

    def allowed(self, dtype: np.dtype[Any], largest: float) -> float:
        """Return the largest difference allowed in a tensor of ``dtype`` whose reference reaches ``largest``.

        Types coarser than float32 get at least ``LOW_PRECISION_EPSILONS`` of their own epsilon.
        """
        epsilon = _epsilon(dtype)
        coarse = LOW_PRECISION_EPSILONS * epsilon if epsilon > np.finfo(np.float32).eps else 0.0
        return self.atol + max(self.rtol, coarse) * largest


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one comparison saw.

    Attributes:
        passed: equal within what is allowed.
        max_abs: largest absolute difference; infinite where values cannot be subtracted or are not finite.
        allowed: largest difference allowed; 0 where equality is asked for.
        where: index of the worst element, empty when there is none.
        reason: why it failed, for people; empty when it passed.
    """

    passed: bool
    max_abs: float
    allowed: float
    where: tuple[int, ...] = ()
    reason: str = ""

    @property
    def severity(self) -> float:
        """The difference in units of what is allowed: above 1 it failed."""
        if not self.passed:
            return max(1.0 + 1e-9, self.max_abs / self.allowed if self.allowed else math.inf)
        return self.max_abs / self.allowed if self.allowed else 0.0

    def finding(self, output: str, sizes: Sizes) -> Finding:
        """Record this comparison; an infinite difference becomes the largest float, since JSON has no infinity."""
        largest = sys.float_info.max
        return Finding(
            output=output, max_abs=min(self.max_abs, largest), allowed=min(self.allowed, largest), sizes=dict(sizes)
        )


def compare(got: Any, reference: Any, tolerance: Tolerance) -> Comparison:
    """Compare one value with its reference.

    Args:
        got: an array, or a sequence, a map or None for values that are no tensors.
        reference: what it should be; its magnitude scales the tolerance.
        tolerance: for floats; integers, bools and strings are compared by equality.
    """
    if isinstance(reference, (list, tuple)) or isinstance(got, (list, tuple)):
        return _compare_sequences(got, reference, tolerance)
    if reference is None or got is None or isinstance(reference, dict) or isinstance(got, dict):
        equal = type(got) is type(reference) and got == reference
        return _equal() if equal else _different("the values differ")
    return _compare_arrays(np.asarray(got), np.asarray(reference), tolerance)


def compare_outputs(
    got: Mapping[str, Any], reference: Mapping[str, Any], tolerance: Tolerance
) -> dict[str, Comparison]:
    """Compare all outputs by name; a name that one side lacks fails."""
    result = {}
    for name in dict.fromkeys([*reference, *got]):
        if name not in got or name not in reference:
            result[name] = _different(
                "the output is missing" if name not in got else "the reference has no such output"
            )
        else:
            result[name] = compare(got[name], reference[name], tolerance)
    return result


def _compare_sequences(got: Any, reference: Any, tolerance: Tolerance) -> Comparison:
    if not isinstance(got, (list, tuple)) or not isinstance(reference, (list, tuple)):
        return _different("one side is a sequence, the other is not")
    if len(got) != len(reference):
        return _different(f"{len(got)} items where the reference has {len(reference)}")
    parts = [compare(g, r, tolerance) for g, r in zip(got, reference, strict=True)]
    worst = max(range(len(parts)), key=lambda i: parts[i].severity, default=None)
    if worst is None:
        return _equal()
    part = parts[worst]
    return Comparison(part.passed, part.max_abs, part.allowed, (worst, *part.where), part.reason)


def _compare_arrays(got: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> Comparison:
    if got.shape != reference.shape:
        return _different(f"shape {got.shape} where the reference has {reference.shape}")
    strings = _is_text(got), _is_text(reference)
    if strings[0] != strings[1] or (not any(strings) and got.dtype != reference.dtype):
        return _different(f"dtype {got.dtype} where the reference has {reference.dtype}")
    if got.size == 0:
        return _equal()
    if strings[0]:
        return _compare_exactly(got.astype(object) != reference.astype(object), None)
    if _is_float(got.dtype):
        return _compare_floats(got, reference, tolerance)
    wrong = got != reference
    # Through float64, since unsigned differences wrap around.
    return _compare_exactly(wrong, np.abs(got.astype(np.float64) - reference.astype(np.float64)))


def _compare_exactly(wrong: np.ndarray, difference: np.ndarray | None) -> Comparison:
    wrong = np.asarray(wrong, dtype=bool)
    if not wrong.any():
        return _equal()
    # Large integers may differ and still be one float64: at least 1 is reported.
    amount = np.where(wrong, np.inf if difference is None else np.maximum(difference, 1.0), 0.0)
    where = _index(amount)
    return Comparison(False, float(amount[where]), 0.0, where, f"{int(wrong.sum())} elements differ")  # noqa: FBT003


def _compare_floats(got: np.ndarray, reference: np.ndarray, tolerance: Tolerance) -> Comparison:
    dtype = reference.dtype
    wide = np.complex128 if dtype.kind == "c" else np.float64
    a, b = got.astype(wide), reference.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    largest = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    allowed = tolerance.allowed(dtype, largest)
    if not finite.all():
        misplaced = ~finite & ~((np.isnan(a) & np.isnan(b)) | (a == b))
        if misplaced.any():
            where = _index(misplaced)
            return Comparison(False, math.inf, allowed, where, f"{a[where]} where the reference has {b[where]}")  # noqa: FBT003
    difference = np.zeros(a.shape)
    np.subtract(a, b, out=a, where=finite)
    np.abs(a, out=difference, where=finite)
    where = _index(difference)
    max_abs = float(difference[where])
    if max_abs <= allowed:
        return Comparison(True, max_abs, allowed, where)  # noqa: FBT003
    return Comparison(False, max_abs, allowed, where, f"differs by {max_abs:.3g}, {allowed:.3g} is allowed")  # noqa: FBT003


def _index(amount: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(amount)), amount.shape))


def _equal() -> Comparison:
    return Comparison(passed=True, max_abs=0.0, allowed=0.0)


def _different(reason: str) -> Comparison:
    return Comparison(passed=False, max_abs=math.inf, allowed=0.0, reason=reason)


def _is_text(array: np.ndarray) -> bool:
    return array.dtype.kind in "OUST"


def _is_float(dtype: np.dtype[Any]) -> bool:
    return _epsilon(dtype) > 0.0


def _epsilon(dtype: np.dtype[Any]) -> float:
    """Return the spacing at 1 of a floating type; 0 for every other type."""
    if issubclass(dtype.type, np.inexact):
        return float(np.finfo(dtype.name).eps)  # type: ignore[call-overload,unused-ignore]
    if dtype.type.__module__ == "ml_dtypes":
        import ml_dtypes

        try:
            return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
        except ValueError:  # the package's small integers
            return 0.0
    return 0.0
