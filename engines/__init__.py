"""The contract between compiler and runtime: manifest, bundle, engines, backends.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "BACKENDS": "trtc.engines.registry",
    "Backend": "trtc.engines.registry",
    "BlobFile": "trtc.engines.manifest",
    "BuildRecord": "trtc.engines.manifest",
    "BundleError": "trtc.engines.errors",
    "BundleReader": "trtc.engines.bundle",
    "Call": "trtc.engines.protocol",
    "CancelledError": "trtc.engines.errors",
    "Engine": "trtc.engines.protocol",
    "EngineError": "trtc.engines.errors",
    "EngineRecord": "trtc.engines.manifest",
    "Evidence": "trtc.engines.manifest",
    "Execution": "trtc.engines.manifest",
    "Finding": "trtc.engines.manifest",
    "InputRoute": "trtc.engines.route",
    "LateOutputs": "trtc.engines.protocol",
    "Layout": "trtc.engines.layout",
    "Manifest": "trtc.engines.manifest",
    "Place": "trtc.engines.layout",
    "ProfileMemory": "trtc.engines.manifest",
    "Requirements": "trtc.engines.manifest",
    "RoutePlan": "trtc.engines.route",
    "Signature": "trtc.engines.signature",
    "Slot": "trtc.engines.protocol",
    "Source": "trtc.engines.manifest",
    "TensorSpec": "trtc.engines.signature",
    "ValueDomain": "trtc.engines.manifest",
    "Verification": "trtc.engines.manifest",
    "backend_named": "trtc.engines.registry",
    "bundle_size_bytes": "trtc.engines.bundle",
    "decode_manifest": "trtc.engines.manifest_json",
    "encode_manifest": "trtc.engines.manifest_json",
    "fill_input": "trtc.engines.route",
    "numpy_dtype": "trtc.engines.signature",
    "open_engine": "trtc.engines.bundle",
    "pad_array": "trtc.engines.route",
    "plan_layout": "trtc.engines.layout",
    "plan_route": "trtc.engines.route",
    "read_manifest": "trtc.engines.bundle",
    "write_bundle": "trtc.engines.bundle",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
