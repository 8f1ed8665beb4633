"""The contract between compiler and runtime: manifest, bundle, engines, backends.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles.on_demand import on_demand

if TYPE_CHECKING:
    from trtc.engines.bundle import BundleReader, bundle_size_bytes, open_engine, read_manifest, write_bundle
    from trtc.engines.errors import BundleError, CancelledError, EngineError
    from trtc.engines.layout import Layout, Place, plan_layout
    from trtc.engines.manifest import (
        BlobFile,
        BuildRecord,
        EngineRecord,
        Evidence,
        Execution,
        Finding,
        Manifest,
        ProfileMemory,
        Requirements,
        Source,
        ValueDomain,
        Verification,
    )
    from trtc.engines.manifest_json import decode_manifest, encode_manifest
    from trtc.engines.protocol import Call, Engine, LateOutputs, Slot
    from trtc.engines.registry import BACKENDS, Backend, backend_named
    from trtc.engines.route import InputRoute, RoutePlan, fill_input, pad_array, plan_route
    from trtc.engines.signature import Signature, TensorSpec, numpy_dtype

__all__ = [
    "BACKENDS",
    "Backend",
    "BlobFile",
    "BuildRecord",
    "BundleError",
    "BundleReader",
    "Call",
    "CancelledError",
    "Engine",
    "EngineError",
    "EngineRecord",
    "Evidence",
    "Execution",
    "Finding",
    "InputRoute",
    "LateOutputs",
    "Layout",
    "Manifest",
    "Place",
    "ProfileMemory",
    "Requirements",
    "RoutePlan",
    "Signature",
    "Slot",
    "Source",
    "TensorSpec",
    "ValueDomain",
    "Verification",
    "backend_named",
    "bundle_size_bytes",
    "decode_manifest",
    "encode_manifest",
    "fill_input",
    "numpy_dtype",
    "open_engine",
    "pad_array",
    "plan_layout",
    "plan_route",
    "read_manifest",
    "write_bundle",
]

if not TYPE_CHECKING:  # else no name would be unknown
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "trtc.engines.bundle": (
                "BundleReader",
                "bundle_size_bytes",
                "open_engine",
                "read_manifest",
                "write_bundle",
            ),
            "trtc.engines.errors": ("BundleError", "CancelledError", "EngineError"),
            "trtc.engines.layout": ("Layout", "Place", "plan_layout"),
            "trtc.engines.manifest": (
                "BlobFile",
                "BuildRecord",
                "EngineRecord",
                "Evidence",
                "Execution",
                "Finding",
                "Manifest",
                "ProfileMemory",
                "Requirements",
                "Source",
                "ValueDomain",
                "Verification",
            ),
            "trtc.engines.manifest_json": ("decode_manifest", "encode_manifest"),
            "trtc.engines.protocol": ("Call", "Engine", "LateOutputs", "Slot"),
            "trtc.engines.registry": ("BACKENDS", "Backend", "backend_named"),
            "trtc.engines.route": ("InputRoute", "RoutePlan", "fill_input", "pad_array", "plan_route"),
            "trtc.engines.signature": ("Signature", "TensorSpec", "numpy_dtype"),
        },
    )
