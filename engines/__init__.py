"""The contract between compiler and runtime: manifest, bundle, engines, backends."""

from trtc.engines.build import BuiltEngine, EngineRequest
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
    "BuiltEngine",
    "BundleError",
    "BundleReader",
    "Call",
    "CancelledError",
    "Engine",
    "EngineError",
    "EngineRecord",
    "EngineRequest",
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
