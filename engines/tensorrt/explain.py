"""From a failure to an error: node and operator, the library's message, likely causes in order, what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtc.engines.errors import EngineError
from trtc.profiles import HostError, ModelError, TrtcError, UsageError

if TYPE_CHECKING:
    from trtc.engines.target import Target
    from trtc.engines.tensorrt.job import Failure

MOST_PROBLEMS = 5
TO_CPU = "build it for the CPU: trtc build MODEL --target cpu"


@dataclass(frozen=True, slots=True)
class Cause:
    """What usually lies behind a message.

    Attributes:
        pattern: found in the library's message.
        likely: causes, the likeliest first.
        next: what to do; ``{kind}`` is the target's word.
        error: class of the error that a user gets.
    """

    pattern: re.Pattern[str]
    likely: tuple[str, ...]
    next: str
    error: type[TrtcError] = ModelError


CAUSES = (
    Cause(
        re.compile(r"OutOfMemory|Requested size was|within workspace limit", re.IGNORECASE),
        ("--workspace is smaller than one layer needs", "the machine has too little memory left"),
        "give more, such as --workspace 1G, or leave the option out",
        UsageError,
    ),
    Cause(
        re.compile(r"Turing|SM75"),
        ("this kernel does not exist for sm75 (Turing), where matrix products in float32 are not supported",),
        "leave sm75 out of --target, or convert the model to float16",
        ModelError,
    ),
    Cause(
        re.compile(r"no runners that implement it|Could not find any implementation|No implementation"),
        (
            "the library reads this operator but has no kernel for it",
            "not for this element type, or not for this shape",
        ),
        f"replace the operator in the model, or {TO_CPU}",
    ),
    Cause(
        re.compile(r"Attention operation was not supported"),
        ("there is no kernel for Attention at this element type, head size or mask",),
        f"export the model with attention in single operators (an opset below 23), or {TO_CPU}",
    ),
    Cause(
        re.compile(r"MyelinCheckException|compileGraph|Myelin"),
        ("a fault of the library's own compiler with this graph", "control flow inside of control flow"),
        f"simplify the graph around that node, or {TO_CPU}",
    ),
    Cause(
        re.compile(r"contradictory IOptimizationProfile|different constant values"),
        ("two axes share a name in the model but are given other ranges",),
        "give them one range, or rename one axis in the model",
    ),
    Cause(
        re.compile(r"decide shapes, and no range"),
        ("the model reads sizes from the values of that input",),
        "say which values it takes: --val-range INPUT:[LOW,HIGH], or give real ones with --samples",
        UsageError,
    ),
    Cause(
        re.compile(r"(kMIN|kOPT|kMAX) values for profile"),
        ("sizes of one profile do not go together in this model", "values that decide shapes do not fit its sizes"),
        "check the ranges with trtc check, and give real inputs with --samples where values decide shapes",
    ),
    Cause(
        re.compile(r"in the model, and would be"),
        ("TensorRT has no double precision and computes in float without saying so",),
        f"convert the model to float, or {TO_CPU}",
    ),
    Cause(
        re.compile(r"constant of the engine"),
        ("the input has a default in the model, and TensorRT builds that in",),
        f"remove the default from the model, or {TO_CPU}",
    ),
    Cause(
        re.compile(r"does not use it"),
        ("an operator of a newer version has an input that this library passes over",),
        f"export the model without it (an explicit mask instead of lengths), or {TO_CPU}",
    ),
    Cause(
        re.compile(r"convertDtype|Unsupported ONNX data type"),
        ("the element type of an input or output (strings, 16-bit integers, unsigned integers) does not exist there",),
        f"convert it before the model, or {TO_CPU}",
    ),
)
_OTHER = Cause(re.compile(""), ("the operator, or this use of it, is not supported",), TO_CPU)


def failure_error(target: Target, failure: Failure, where: str = "") -> TrtcError:
    """Return the error for a failed build.

    Args:
        target: what was built for.
        failure: what came back.
        where: the profile or the compute capability that fails alone; empty when nothing was isolated.
    """
    if failure.stage == "host":
        return HostError(f"target {target.text}: {failure.problems[0]}")
    cause = cause_of(failure)
    shown = "; ".join(str(problem) for problem in failure.problems[:MOST_PROBLEMS])
    more = len(failure.problems) - MOST_PROBLEMS
    tail = f" (and {more} more)" if more > 0 else ""
    likely = ", or ".join(cause.likely)
    named = f" ({where})" if where else ""
    return cause.error(
        f"target {target.text} cannot be built{named}: {shown}{tail}; likely: {likely}; next: {cause.next}"
    )


def crash_error(target: Target, error: EngineError) -> EngineError:
    """Return the error for a builder that ended without an answer."""
    return EngineError(
        f"target {target.text} cannot be built: {error}; likely: a fault of the library with this model, or too little "
        f"memory; next: {TO_CPU}, and report the model to the library's makers"
    )


def cause_of(failure: Failure) -> Cause:
    """Find what usually lies behind a failure."""
    text = " ".join(str(problem) for problem in failure.problems)
    return next((cause for cause in CAUSES if cause.pattern.search(text)), _OTHER)
