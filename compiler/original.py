"""What ONNX Runtime says about a model file, kept for programs that ask an open session about its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtc.engines.manifest import ExternalPiece, ModelInfo, Original, ValueInfo

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trtc.compiler.model import Model
    from trtc.engines.manifest import RecordedCalls

_FATAL = 4
_MAX_VERSION = 2**63 - 1


def original_of(
    model: Model, path: Path, metadata: Mapping[str, str], recorded: tuple[RecordedCalls, ...] = ()
) -> Original | None:
    """Open a model file once with ONNX Runtime, and write down what it says.

    Args:
        model: what was read from the file, and checked.
        path: of the file. Other content there by now gives None: what is written down must be about ``model``.
        metadata: that the bundle keeps.
        recorded: what calls of it took in a program.

    Returns:
        None where ONNX Runtime does not open the file as it lies there.
    """
    from hashlib import file_digest

    from trtc.engines.onnxruntime import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0
        )
        with path.open("rb") as file:
            same = file_digest(file, "sha256").hexdigest() == model.file_sha256
    except Exception:  # noqa: BLE001 (whatever the library or the disk says: programs then ask ONNX Runtime itself)
        return None
    if not same:
        return None
    return Original(
        file_sha256=model.file_sha256,
        inputs=_values(session.get_inputs()),
        outputs=_values(session.get_outputs()),
        overridable=_values(session.get_overridable_initializers()),
        external=tuple(ExternalPiece(location=p.location, start=p.start, stop=p.stop) for p in model.external),
        info=_info(session.get_modelmeta(), metadata),
        recorded=recorded,
    )


def _values(args: Any) -> tuple[ValueInfo, ...]:
    return tuple(ValueInfo(name=arg.name, type=arg.type, shape=tuple(arg.shape)) for arg in args)


def _info(meta: Any, metadata: Mapping[str, str]) -> ModelInfo | None:
    if dict(meta.custom_metadata_map) != metadata or not -_MAX_VERSION <= meta.version <= _MAX_VERSION:
        return None
    return ModelInfo(
        producer_name=meta.producer_name,
        graph_name=meta.graph_name,
        domain=meta.domain,
        description=meta.description,
        graph_description=meta.graph_description,
        version=meta.version,
    )
