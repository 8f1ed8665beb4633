"""Judge one test: what trtc gives and what plain ONNX Runtime gives, both against the test's own expected values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plain

import trtc.tools.onnx_backend as backend
from trtc.compiler import BuildOptions
from trtc.profiles import RequestError, TrtcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from suite import Case

PASSED, REFUSED, FAILED, WRONG, CRASHED, HUNG = "passed", "refused", "failed", "wrong", "crashed", "hung"
OPTIONS = BuildOptions(measure_s=0.0, verify_s=5.0, use_cache=False, threads=1)
_TWO_BFLOAT16_STEPS = 2.0**-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one side gave.

    Attributes:
        verdict: ``passed``; ``refused`` with a reason before anything ran; ``failed`` while running; ``wrong``, an
            answer that is not the expected one; ``crashed`` or ``hung``.
        reason: empty when it passed.
    """

    verdict: str
    reason: str = ""


def judge_ours(case: Case) -> Outcome:
    """Build a bundle, load it, run it, and compare."""

    def answer() -> list[Any]:
        return list(backend.run_model(case.model, case.inputs, options=OPTIONS, samples=[case.inputs]))

    try:
        return _compared(case, answer)
    except RequestError as error:
        return Outcome(FAILED, str(error))
    except TrtcError as error:
        return Outcome(REFUSED, f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 (anything else is ours to repair, and is counted)
        return Outcome(FAILED, f"{type(error).__name__}: {error}")


def judge_plain(case: Case) -> Outcome:
    """Run plain ONNX Runtime and compare."""
    try:
        return _compared(case, lambda: plain.run(case))
    except plain.NotSupportedError as error:
        return Outcome(REFUSED, str(error))
    except Exception as error:  # noqa: BLE001 (the library has a class of its own for each way to fail)
        return Outcome(FAILED, str(error))


def _compared(case: Case, answer: Callable[[], list[Any]]) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = answer()
        difference = _difference(list(case.expected), got, case)
    return Outcome(WRONG, difference) if difference else Outcome(PASSED)


def _difference(expected: Any, got: Any, case: Case) -> str:
    """Say how an answer differs, or nothing."""
    if expected is None or isinstance(expected, list):
        if type(got) is not type(expected):
            return f"{type(got).__name__} instead of {type(expected).__name__}"
        if expected is None:
            return ""
        if len(got) != len(expected):
            return f"{len(got)} items instead of {len(expected)}"
        found = (_difference(e, g, case) for e, g in zip(expected, got, strict=True))
        return next((f"item {i}: {text}" for i, text in enumerate(found) if text), "")
    expected, got = np.asarray(expected), np.asarray(got)
    if got.shape != expected.shape:
        return f"shape {list(got.shape)} instead of {list(expected.shape)}"
    if expected.dtype.kind in "OUT":
        same = [str(a) for a in got.flat] == [str(b) for b in expected.flat]
        return "" if same else "other strings"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype} instead of {expected.dtype}"
    rtol = max(case.rtol, _TWO_BFLOAT16_STEPS) if expected.dtype.name == "bfloat16" else case.rtol
    if expected.dtype.kind == "V":  # element types of ml_dtypes
        expected, got = expected.astype(np.float32), got.astype(np.float32)
    try:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=case.atol)
    except AssertionError as error:
        telling = ("Mismatched", "Max absolute", "nan", "x and y")
        return "; ".join(line for line in str(error).splitlines() if line.startswith(telling)) or "other values"
    return ""
