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


def engine_error(error: Exception, doing: str) -> EngineError:
    """Return our error for one of ONNX Runtime's, with its message and without its source paths.

    Args:
        error: what ONNX Runtime raised.
        doing: what was being done, for the start of the message.
    """
    text = re.sub(r"/\S*?/([\w.]+\.(?:cc|h)):(\d+) \S.*?(?=\s[A-Z])", r"[\1:\2]", str(error)).strip()
    if "terminate flag" in text or "Exiting due to terminate" in text:
        return CancelledError(f"{doing}: the call was cancelled")
    return EngineError(f"{doing}: ONNX Runtime says: {text}")
