"""The one place where failures of ONNX Runtime become ours."""

from __future__ import annotations

import re

from onnxruntime.capi import onnxruntime_pybind11_state as ort

from trtc.engines.errors import CancelledError, EngineError

ORT_ERRORS: tuple[type[Exception], ...] = (
    ort.Fail,
    ort.InvalidArgument,
    ort.InvalidGraph,
    ort.InvalidProtobuf,
    ort.NoModel,
    ort.NoSuchFile,
    ort.NotImplemented,
    ort.RuntimeException,
    ort.EPFail,
    ort.EngineError,
    RuntimeError,
    ValueError,
)


_SOURCE = re.compile(r"/\S*/([\w.]+\.(?:cc|cpp|h|hpp)):(\d+)\s*")
_QUALIFIERS = re.compile(r"(?: const| noexcept| \[with [^\]]*\])*\s*")


def engine_error(error: Exception, doing: str) -> EngineError:
    """Return our error for one of ONNX Runtime's, with its message and without its source paths.

    Args:
        error: what ONNX Runtime raised.
        doing: what was being done, for the start of the message.
    """
    text = _without_sources(str(error)).strip()
    if "terminate flag" in text or "Exiting due to terminate" in text:
        return CancelledError(f"{doing}: the call was cancelled")
    return EngineError(f"{doing}: ONNX Runtime says: {text}")


def _without_sources(text: str) -> str:
    """Write ``/path/file.cc:12 type name(arguments) message`` as ``[file.cc:12] message``."""
    parts: list[str] = []
    at = 0
    while found := _SOURCE.search(text, at):
        parts += [text[at : found.start()], f"[{found[1]}:{found[2]}] "]
        at = _after_function(text, found.end())
    return "".join([*parts, text[at:]])


def _after_function(text: str, start: int) -> int:
    """Return where the function's description ends: after the parenthesis that closes its arguments."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0 and text[i] == ")":
            rest = _QUALIFIERS.match(text, i + 1)
            return rest.end() if rest else i + 1
    return start
