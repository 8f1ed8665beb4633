"""What is inside the standalone program, and what must not be."""

from __future__ import annotations

import re

from trtc.tools.binary import gpu_half

NEEDS = ("numpy", "msgspec", "click", "rich", "onnxruntime")
HIDDEN = (
    *("trtc.engines.onnxruntime.load", "trtc.engines.onnxruntime.profile", "trtc.engines.null.load"),
    *("trtc.tools.bench.run", "trtc.tools.bench.show", "trtc.tools.bench.trace_summary"),
    "trtc.engines.tensorrt.load",
)
"""Modules that are imported by name when they are used, which PyInstaller cannot see."""
LEFT_OUT = (
    *(
        "trtc.compiler",
        "trtc.tools.bench.page",
        "trtc.tools.report.plots",
        "onnx",
        "onnx_ir",
        "ml_dtypes",
        "matplotlib",
        "PIL",
    ),
    *(
        "openvino",
        "torch",
        "tensorrt",
        "cuda",
        *gpu_half.FRONTS,
        "polygraphy",
        "sympy",
        "mpmath",
        "google",
        "flatbuffers",
        "packaging",
        "tkinter",
    ),
    *(
        "setuptools",
        "pip",
        "pytest",
        "lib2to3",
        "pydoc_data",
        "numpy.f2py",
        "numpy.distutils",
        "scipy",
        "onnxruntime.tools",
        "pyarrow",
        "tokenizers",
    ),
    *("onnxruntime.transformers", "onnxruntime.quantization", "onnxruntime.backend", "onnxruntime.datasets"),
)
FORBIDDEN = ("onnx", "onnx_ir", "trtc.compiler", "matplotlib", "polygraphy", "torch", "openvino")
"""Nothing of the compiler may be inside; looked for in the finished file."""
HOST_LIBRARIES = re.compile(r"(^|\.)lib(cuda|cudart|nvinfer|tensorrt|nvonnxparser|nvidia|nvrtc)[\w-]*\.so")
"""Nor large libraries of NVIDIA, which are found on the host."""
