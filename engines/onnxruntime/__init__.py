"""ONNX Runtime on the CPU. Whatever in trtc needs the library takes it from here: ``onnxruntime``.

ONNX Runtime 1.32 starts a thread on import that sends usage events to its vendor, and keeps a file for it in the
temporary folder; after ``fork`` that thread's absence hangs a child's exit. trtc asks it not to, unless the environment
says otherwise: set ``ORT_DISABLE_TELEMETRY`` yourself to decide. A program that imports ONNX Runtime first decided.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

__all__ = ["onnxruntime"]
