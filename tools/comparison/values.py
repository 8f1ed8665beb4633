"""Compare one value with what it should be: every kind of value, and nothing passes for a reason that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trtc.compiler.tolerance import Tolerance
from trtc.tools.comparison.metrics import cosine, judge
from trtc.tools.comparison.result import OutputResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.tools.comparison.rules import Rule, Rules


def compare_outputs(got: Mapping[str, Any], expected: Mapping[str, Any], rules: Rules) -> tuple[OutputResult, ...]:
    """Compare all outputs of one request; an output that one side lacks fails.

    Args:
        got: by name: arrays; sequences and maps as the library gives them.
        expected: the same, of the reference.
        rules: tolerances.
    """
    results = []
    for name in dict.fromkeys([*expected, *got]):
        if name not in got:
            results.append(_failed(name, "it is missing; the reference has it"))
        elif name not in expected:
            results.append(_failed(name, "the reference has no such output"))
        else:
            results.append(compare_value(name, got[name], expected[name], rules.of(name)))
    return tuple(results)


def compare_value(name: str, got: Any, expected: Any, rule: Rule) -> OutputResult:
    """Compare one output.

    Floats are compared within the rule's tolerance, integers within its absolute one (with Polygraphy's statistics:
    as floats), strings, bools and whatever is no tensor by equality. Dtypes and shapes must be the same. NaN equals
    NaN and an infinity equals itself, unless the rule asks for finite values.
    """
    plain = (list, tuple, dict, type(None))
    if isinstance(got, plain) or isinstance(expected, plain):
        equal = type(got) is type(expected) and _equal(got, expected)
        return OutputResult(
            output=name, passed=equal, reason="" if equal else "the values differ", dtype=type(expected).__name__
        )
    return _compare_arrays(name, np.asarray(got), np.asarray(expected), rule)


def _compare_arrays(name: str, got: np.ndarray, expected: np.ndarray, rule: Rule) -> OutputResult:
    text = [array.dtype.kind in "OUST" for array in (got, expected)]
    if text[0] != text[1] or (not text[0] and got.dtype != expected.dtype):
        return _failed(name, f"it is {_dtype(got)}, the reference is {_dtype(expected)}")
    if got.shape != expected.shape:
        return _failed(name, f"its shape is {list(got.shape)}, the reference's is {list(expected.shape)}")
    facts: dict[str, Any] = {"output": name, "dtype": _dtype(got), "shape": got.shape, "elements": got.size}
    if got.size == 0:
        return OutputResult(**facts, passed=True, differing=0)
    if not got.shape:
        result = _compare_elements(facts, got.reshape(1), expected.reshape(1), rule)
        return msgspec.structs.replace(result, where=())
    return _compare_elements(facts, got, expected, rule)


def _compare_elements(facts: dict[str, Any], got: np.ndarray, expected: np.ndarray, rule: Rule) -> OutputResult:
    """Compare arrays of one dtype and shape, rank 1 or more, with elements."""
    if got.dtype.kind in "OUSTb":
        return _by_equality(facts, got, expected)
    if got.dtype.kind in "iu" or "int" in got.dtype.name:
        return _integers(facts, got, expected, rule)
    if got.dtype.kind == "c":
        # Real and imaginary parts side by side: their own axis is the last one of `where`.
        got, expected = (a.astype(np.complex128).reshape(*a.shape, 1).view(np.float64) for a in (got, expected))
    dtype = got.dtype
    return _floats(facts, (got.astype(np.float64), expected.astype(np.float64)), dtype, rule)


def _by_equality(facts: dict[str, Any], got: np.ndarray, expected: np.ndarray) -> OutputResult:
    wrong = np.asarray(got.astype(object) != expected.astype(object), bool)
    count = int(wrong.sum())
    at = _at(wrong, got, expected) if count else {}
    reason = f"{count} of {got.size} elements differ" if count else ""
    return OutputResult(**facts, **at, passed=not count, reason=reason, differing=count, stat="equality")


def _integers(facts: dict[str, Any], got: np.ndarray, expected: np.ndarray, rule: Rule) -> OutputResult:
    wrong = got != expected
    if got.dtype.kind in "iu":
        # The larger minus the smaller, read without a sign, is right even where the signed difference wraps around.
        larger, smaller = np.maximum(got, expected), np.minimum(got, expected)
        difference = (larger - smaller).view(f"u{got.dtype.itemsize}").astype(np.float64)
    else:
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    wide = got.astype(np.float64), expected.astype(np.float64)
    count = int(wrong.sum())
    largest = float(difference.max())
    if rule.stat != "tensor":
        passed, reason = _judged(*wide, rule)
    else:
        passed = largest <= rule.atol
        reason = (
            "" if passed else f"{count} of {got.size} elements differ, by up to {largest:.6g}; atol is {rule.atol:g}"
        )
    return OutputResult(
        **facts,
        **_at(difference, got, expected),
        **_rule(rule),
        passed=passed,
        reason=reason,
        differing=count,
        max_abs=largest,
        max_rel=_max_rel(difference, wide[1]),
        mean_abs=float(difference.mean()),
        cosine=cosine(*wide),
    )


def _floats(
    facts: dict[str, Any], sides: tuple[np.ndarray, np.ndarray], dtype: np.dtype[Any], rule: Rule
) -> OutputResult:
    got, expected = sides
    nan, inf, misplaced = _not_finite(got, expected)
    finite = np.isfinite(got) & np.isfinite(expected)
    figures: dict[str, Any] = {"nan": nan, "inf": inf, "differing": int((got != expected)[finite].sum())}
    figures["differing"] += int(misplaced.sum())
    where = misplaced
    a, b = got[finite], expected[finite]
    passed, reason = True, ""
    if a.size:
        difference = np.zeros(got.shape)
        np.subtract(got, expected, out=difference, where=finite)
        np.abs(difference, out=difference)
        largest = float(difference.max())
        figures |= {
            "max_abs": largest,
            "max_rel": _max_rel(difference[finite], b),
            "mean_abs": float(difference[finite].mean()),
            "cosine": cosine(a, b),
        }
        passed, reason = _within(largest, b, dtype, rule) if rule.stat == "tensor" else _judged(a, b, rule)
        where = difference if not misplaced.any() else misplaced
    if rule.finite and not finite.all():
        where = ~finite if not misplaced.any() else misplaced
        passed, reason = False, f"{int((~finite).sum())} elements are NaN or infinite (--validate)"
    if misplaced.any():
        passed, reason = (
            False,
            f"NaN or infinity at {int(misplaced.sum())} places where the other side has another value",
        )
    return OutputResult(**facts, **_at(where, got, expected), **_rule(rule), **figures, passed=passed, reason=reason)


def _within(largest: float, expected: np.ndarray, dtype: np.dtype[Any], rule: Rule) -> tuple[bool, str]:
    top = float(np.abs(expected).max())
    allowed = Tolerance(rule.atol, rule.rtol).allowed(dtype, top) if rule.coarse else rule.atol + rule.rtol * top
    return largest <= allowed, "" if largest <= allowed else f"differs by {largest:.3g}, {allowed:.3g} is allowed"


def _judged(got: np.ndarray, expected: np.ndarray, rule: Rule) -> tuple[bool, str]:
    judged = judge(got, expected, rule)
    if judged.passed:
        return True, ""
    if judged.needed is None:
        return False, f"an element is beyond both atol {rule.atol:g} and rtol {rule.rtol:g}"
    absolute, relative = judged.needed
    return (
        False,
        f"the {rule.stat} error is {absolute:.3g} absolute and {relative:.3g} relative, beyond both tolerances",
    )


def _not_finite(got: np.ndarray, expected: np.ndarray) -> tuple[dict[str, int], dict[str, int], np.ndarray]:
    """Count NaN and infinities, and mark the places where the two sides disagree about them."""
    a, b = np.isnan(got), np.isnan(expected)
    nan = {"both": a & b, "got": a & ~b, "expected": ~a & b}
    i, j = np.isinf(got), np.isinf(expected)
    same = i & j & (got == expected)
    inf = {"both": same, "opposite": i & j & ~same, "got": i & ~j, "expected": ~i & j}
    misplaced = (a != b) | (i != j) | inf["opposite"]
    return _counts(nan), _counts(inf), misplaced


def _counts(places: dict[str, np.ndarray]) -> dict[str, int]:
    found = {name: int(at.sum()) for name, at in places.items()}
    return found if any(found.values()) else {}


def _max_rel(difference: np.ndarray, expected: np.ndarray) -> float | None:
    known = expected != 0
    return float((difference[known] / np.abs(expected[known])).max()) if known.any() else None


def _at(amount: np.ndarray, got: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Return the place of the largest amount, and both values there."""
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(amount)), amount.shape))
    return {"where": where, "got": _shown(got[where]), "expected": _shown(expected[where])}


def _shown(value: Any) -> Any:
    """Return a value that JSON can hold; what is not finite becomes its name."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not np.isfinite(plain):
        return str(plain)
    return plain if isinstance(plain, bool | int | float) else str(plain)


def _rule(rule: Rule) -> dict[str, Any]:
    return {"stat": rule.stat, "atol": rule.atol, "rtol": rule.rtol}


def _dtype(array: np.ndarray) -> str:
    return "string" if array.dtype.kind in "OUST" else array.dtype.name


def _failed(name: str, reason: str) -> OutputResult:
    return OutputResult(output=name, passed=False, reason=reason)


def _equal(got: Any, expected: Any) -> bool:
    """Compare sequences and maps, whose items may be arrays."""
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(_equal(got[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(got) == len(expected) and all(_equal(a, b) for a, b in zip(got, expected, strict=True))
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        a, b = np.asarray(got), np.asarray(expected)
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return bool(type(got) is type(expected) and got == expected)
