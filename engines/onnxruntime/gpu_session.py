"""Opening a model with a GPU provider of ONNX Runtime, or not at all.

ONNX Runtime takes the CPU, without an error, where a provider's libraries do not load or where a run fails in the
provider. Both are errors here.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.cachedir import cache_dir, cache_fault
from trtc.engines.errors import EngineError
from trtc.engines.onnxruntime import onnxruntime
from trtc.engines.onnxruntime.errors import ORT_ERRORS, engine_error
from trtc.engines.onnxruntime.providers import CPU, PROVIDERS

if TYPE_CHECKING:
    from trtc.engines.opening import Opening

_LIBRARIES = {"cuda": "libonnxruntime_providers_cuda.so", "tensorrt": "libonnxruntime_providers_tensorrt.so"}
_SILENT, _WARNINGS = 4, 2


def open_session(
    path: Path, provider: str, providers: list[tuple[str, dict[str, str]]], threads: int
) -> onnxruntime.InferenceSession:
    """Open a model with the providers that were asked for, or not at all.

    Args:
        path: of the ``.onnx`` file.
        provider: a key of ``PROVIDERS``: the one that must be there.
        providers: with their options.
        threads: of nodes that stay on the CPU.

    Raises:
        EngineError: when it does not load; it says which library is missing.
    """
    wanted = PROVIDERS[provider]
    if wanted not in onnxruntime.get_available_providers():
        raise EngineError(
            f"this build of ONNX Runtime ({onnxruntime.__version__}) has no {wanted}; pip uninstall onnxruntime, "
            "then pip install 'trtc[gpu]': both packages write the same files"
        )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # kept for every shape ever seen, and sizes vary here
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    said = io.StringIO()
    # Loading a provider writes to the terminal whatever goes wrong; the error below says it instead.
    onnxruntime.set_default_logger_severity(_SILENT)
    try:
        with contextlib.redirect_stdout(said):
            if hasattr(onnxruntime, "preload_dlls"):
                onnxruntime.preload_dlls()
            session = onnxruntime.InferenceSession(str(path), options, providers=providers, enable_fallback=0)
    except ORT_ERRORS as error:
        raise engine_error(error, f"opening the engine with {wanted}") from error
    finally:
        onnxruntime.set_default_logger_severity(_WARNINGS)
    if wanted not in session.get_providers():
        raise EngineError(
            f"{wanted} did not load, and ONNX Runtime would run on the CPU instead, silently: "
            f"{_why_not_loaded(provider) or ' '.join(said.getvalue().split()) or 'it does not say why'}; "
            "install CUDA and cuDNN of the versions that onnxruntime-gpu was built with, such as "
            "pip install 'onnxruntime-gpu[cuda,cudnn]'"
        )
    _refuse_idle_gpu(session, wanted)
    return session


def _refuse_idle_gpu(session: onnxruntime.InferenceSession, wanted: str) -> None:
    """Refuse a session whose every node runs on the CPU: its provider is there, and takes nothing."""
    if not hasattr(session, "get_provider_graph_assignment_info"):  # before 1.24
        return
    taken = {part.ep_name for part in session.get_provider_graph_assignment_info()}
    if taken and taken <= {CPU}:
        raise EngineError(f"{wanted} takes no node of this model, all would run on the CPU; build it for --target cpu")


def _why_not_loaded(provider: str) -> str:
    """Return what the system's loader says of a provider that did not load.

    To be called after ONNX Runtime tried it: the library expects to be loaded by it first.
    """
    folder = Path(str(onnxruntime.__file__)).parent / "capi"
    try:
        ctypes.CDLL(str(folder / _LIBRARIES[provider]))
    except OSError as error:
        return str(error)
    return ""


def engine_cache(opening: Opening) -> Path | None:
    """Return the folder where TensorRT keeps engines of this bundle; None where none may be trusted.

    Engines are executable content: the folder is of this user, and nobody else may write it.
    """
    folder = cache_dir() / "ort-tensorrt" / Path(opening.record.entry).stem
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        faults = [cache_fault(each) for each in (folder, folder.parent, folder.parent.parent)]
    except OSError:
        return None
    return None if any(faults) else folder
