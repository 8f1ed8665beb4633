"""Other ways to run the same model, so that both can be timed in turns in one process."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import HostError, RequestError, TrtcError, UsageError, unknown_name
from trtc.runtime.choice import choose
from trtc.tools.extras import install

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.manifest import Manifest

LIBRARIES = {
    "onnxruntime": "pip install 'trtc[cpu]'",
    "openvino": "pip install 'trtc[openvino]'",
    "torch": "pip install torch",
}
_TORCH_ENDINGS = frozenset([".pt2", ".pt"])


class Peer(Protocol):
    """One way to run the model.

    Attributes:
        name, version: for the report.
        threads: of one call; None where it cannot be told.
        spinning: whether its idle threads wait actively for work; None where its library decides.
    """

    name: str
    version: str
    threads: int | None
    spinning: bool | None

    def request(self, feeds: dict[str, Any]) -> Any:
        """Turn inputs into what ``run`` takes, before the clock starts."""

    def run(self, request: Any) -> Any:
        """Run once; the results belong to the caller, as those of ``session.run`` do."""

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        """Read a result by output name."""

    def close(self) -> None:
        """Free it."""


def require_peer(name: str, model: Path | None) -> None:
    """Refuse a peer that cannot be opened, before anything is measured.

    Args:
        name: ``onnxruntime``, ``openvino``, ``torch``, or the path of another bundle.
        model: that the peer runs; bundles need none.

    Raises:
        UsageError: for an unknown peer, or a model that is missing.
        HostError: when its library is not installed, or none of its engines can run here.
        BundleError: for a bundle that is not whole.
    """
    if name not in LIBRARIES:
        if not Path(name).is_dir():
            known = [*LIBRARIES, "NAME.trtc"]
            raise UsageError(f"--vs: {unknown_name('peer', name, known)}; a path must lead to a bundle")
        try:
            choose(read_manifest(Path(name)), this_host())
        except HostError as error:
            raise HostError(f"--vs {name}: {error}") from error
        return
    if name == "torch" and model is not None and model.suffix not in _TORCH_ENDINGS:
        raise UsageError(
            f"--vs torch runs .pt2 (torch.export) or .pt (TorchScript) files, not {model}; save it as one of these"
        )
    if find_spec(name) is None:
        raise HostError(f"--vs {name}: {name} is not installed; {install(LIBRARIES[name])}")
    kinds = ".pt2 (torch.export) or .pt (TorchScript)" if name == "torch" else ".onnx"
    if model is None:
        raise UsageError(
            f"--vs {name} needs the model as a {kinds} file, because a bundle does not hold it: add --model"
        )
    if not model.is_file():
        raise UsageError(f"{model}: no such file; give the model that the bundle was built from, as a {kinds} file")


def open_peer(name: str, model: Path | None, manifest: Manifest, threads: int, *, spinning: bool = True) -> Peer:
    """Open a peer that ``require_peer`` let pass.

    Args:
        name: as for ``require_peer``.
        model: likewise.
        manifest: of our bundle.
        threads: of one call, as ours.
        spinning: whether idle threads wait actively for work, as ours, where that can be chosen.

    Raises:
        HostError: when its library refuses the model.
    """
    if name not in LIBRARIES:
        return _Bundle(name, threads, spinning=spinning)
    if model is None:
        raise UsageError(f"--vs {name} needs a model: add --model")
    found = version(name)
    opened: dict[str, Callable[[], Peer]] = {
        "onnxruntime": lambda: _OnnxRuntime(model, (threads, spinning), found),
        "openvino": lambda: _OpenVino(model, threads, found),
        "torch": lambda: _Torch(model, manifest, threads, found),
    }
    try:
        return opened[name]()
    except TrtcError:
        raise
    except Exception as error:
        raise HostError(f"--vs {name}: it does not open {model}: {_first_line(error)}") from error


def called(peer: Peer, request: Any) -> Any:
    """Run a peer once, its own failure as an error of ours.

    Raises:
        RequestError: when it refuses the inputs.
    """
    try:
        return peer.run(request)
    except TrtcError:
        raise
    except Exception as error:
        raise RequestError(
            f"--vs {peer.name}: it refuses the inputs that our bundle takes ({_first_line(error)}); give all inputs of "
            "the model with --inputs, and the model that the bundle was built from"
        ) from error


class _OnnxRuntime:
    """Plain ONNX Runtime, its optimizations on, with as many threads as we have, which wait as ours do."""

    name = "onnxruntime"
    threads: int | None
    spinning: bool | None

    def __init__(self, model: Path, workers: tuple[int, bool], found: str) -> None:
        from trtc.engines.onnxruntime import onnxruntime

        threads, spinning = workers
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spinning else "0")
        self.version, self.threads, self.spinning = found, threads, spinning
        self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in self._session.get_outputs()]
        self._takes = {value.name for value in self._session.get_inputs()}

    def request(self, feeds: dict[str, Any]) -> Any:
        return {name: value for name, value in feeds.items() if name in self._takes}

    def run(self, request: Any) -> Any:
        return self._session.run(self._names, request)

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        return dict(zip(self._names, result, strict=True))

    def close(self) -> None:
        self._session = None


class _OpenVino:
    """OpenVINO on the CPU, compiled for latency, with as many threads as we have."""

    name = "openvino"
    threads: int | None
    spinning: bool | None = None

    def __init__(self, model: Path, threads: int, found: str) -> None:
        import openvino

        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        self.version, self.threads = found, threads
        compiled = openvino.Core().compile_model(str(model), "CPU", settings)
        self._request: Any = compiled.create_infer_request()
        self._names = [port.get_any_name() for port in compiled.outputs]
        self._takes = {name for port in compiled.inputs for name in port.get_names()}

    def request(self, feeds: dict[str, Any]) -> Any:
        return {name: np.ascontiguousarray(value) for name, value in feeds.items() if name in self._takes}

    def run(self, request: Any) -> Any:
        # The results are copied, as ours are: the next call overwrites what stays inside.
        return [np.array(value) for value in self._request.infer(request).values()]

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        return dict(zip(self._names, result, strict=True))

    def close(self) -> None:
        self._request = None


class _Torch:
    """A model of PyTorch on the CPU. Its file is loaded by torch: give one that you trust."""

    name = "torch"
    threads: int | None
    spinning: bool | None = None

    def __init__(self, model: Path, manifest: Manifest, threads: int, found: str) -> None:
        import torch

        torch.set_num_threads(threads)
        self.version, self.threads = found, threads
        self._torch = torch
        exported = model.suffix == ".pt2"
        script: Any = torch.jit
        self._model: Any = torch.export.load(str(model)).module() if exported else script.load(str(model)).eval()
        self._inputs = [spec.name for spec in manifest.signature.inputs]
        self._names = [spec.public_name for spec in manifest.signature.outputs]

    def request(self, feeds: dict[str, Any]) -> Any:
        return tuple(
            self._torch.from_numpy(np.ascontiguousarray(feeds[name])) for name in self._inputs if name in feeds
        )

    def run(self, request: Any) -> Any:
        with self._torch.inference_mode():
            return self._model(*request)

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        values = list(result.values()) if isinstance(result, dict) else [result] if hasattr(result, "numpy") else result
        return {name: value.numpy() for name, value in zip(self._names, values, strict=False)}

    def close(self) -> None:
        self._model = None


class _Bundle:
    """Another bundle."""

    threads: int | None
    spinning: bool | None

    def __init__(self, path: str, threads: int, *, spinning: bool) -> None:
        from trtc.runtime import load
        from trtc.tools.bench.waiting import spinning_of

        self._session = load(path, threads=threads, spinning=spinning)
        self.spinning = spinning_of(self._session)
        self.name, self.version, self.threads = path, self._session.explain().engine, threads
        self.run: Callable[[Any], Any] = self._session.run

    def request(self, feeds: dict[str, Any]) -> Any:
        return feeds

    def outputs(self, result: Any) -> dict[str, np.ndarray]:
        return dict(result)

    def close(self) -> None:
        self._session.close()


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
