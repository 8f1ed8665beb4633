"""What a bundle is compared with: its model in some backend, another bundle, or saved outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trtc.engines.errors import EngineError
from trtc.profiles import HostError, ModelError, UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from trtc.compiler.model import Model
    from trtc.engines.manifest import Manifest
    from trtc.runtime import Session

BACKENDS = {
    "onnxruntime": "ONNX Runtime on the CPU, optimizations off: what builds compare with",
    "onnxruntime-optimized": "ONNX Runtime on the CPU as programs use it",
    "onnx": "onnx's own evaluator, which shares no kernel with ONNX Runtime; slow",
}
EVALUATOR_S = 120.0
"""For one run of onnx's evaluator."""


class Side(Protocol):
    """Answers requests.

    Attributes:
        name: for people.
    """

    name: str

    def run(self, number: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request.

        Args:
            number: of the request, from 0.
            feeds: inputs by name.

        Raises:
            TrtcError: when it cannot.
        """


class SessionSide:
    """A bundle as programs run it.

    Args:
        session: loaded; the caller closes it.
        name: for people.
    """

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    def run(self, number: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the request."""
        del number
        known = {spec.name for spec in self._session.signature.inputs}
        if missing := [name for name in feeds if name not in known]:
            raise UsageError(f"{self.name}: {unknown_name('input', missing[0], sorted(known))}")
        return self._session.run(feeds)


class SavedSide:
    """Outputs from a file.

    Args:
        outputs: of each request, in order; strings as object or ``U`` arrays.
        manifest: of the bundle that is compared: files cannot hold its narrow types.
        name: for people.
    """

    def __init__(self, outputs: Sequence[Mapping[str, Any]], manifest: Manifest, name: str) -> None:
        from trtc.engines.array_files import stored_as

        dtypes = {spec.public_name: spec.dtype for spec in manifest.signature.outputs}
        self._outputs = [
            {n: _or(stored_as(v, dtypes[n]), v) if n in dtypes else v for n, v in one.items()} for one in outputs
        ]
        self.name = name

    def run(self, number: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was saved for this request."""
        del feeds
        return self._outputs[number]


class ModelSide:
    """A model in a backend.

    Args:
        model: as the importer gives it.
        backend: one of ``BACKENDS``.
        threads: of one run.
        name: for people.

    Raises:
        ModelError: when the backend does not take the model.
        HostError: when the backend cannot be used here.
    """

    def __init__(self, model: Model, backend: str, threads: int, name: str) -> None:
        self.name = f"{name} in {BACKENDS[backend].partition(':')[0]}"
        self._public = model.public_outputs
        self._run = _OPENERS[backend](model, threads)

    def run(self, number: int, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model; outputs have the names that callers know."""
        del number
        return {self._public.get(name, name): value for name, value in self._run(feeds).items()}


def _reference(model: Model, threads: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    from trtc.compiler.reference import open_reference

    return open_reference(model, threads).run


def _evaluator(model: Model, threads: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Open onnx's evaluator when the first request is there: it is tried with that."""
    from trtc.compiler.reference import Unavailable, onnx_evaluator

    del threads
    opened: list[Any] = []

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        if not opened:
            found = onnx_evaluator(model, feeds, EVALUATOR_S)
            if isinstance(found, Unavailable):
                raise HostError(f"--backend onnx: {found.reason}; compare with another backend")
            opened.append(found)
        answer: dict[str, Any] = opened[0].run(feeds)
        return answer

    return run


def _optimized(model: Model, threads: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    from trtc.engines.onnxruntime import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"ONNX Runtime cannot open the model: {error}; compare with --backend onnxruntime") from error
    names = [out.name for out in session.get_outputs()]

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(zip(names, session.run(names, dict(feeds)), strict=True))
        except Exception as error:
            raise EngineError(f"ONNX Runtime failed: {(str(error).splitlines() or [''])[0]}") from error

    return run


_OPENERS: dict[str, Callable[[Model, int], Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "onnxruntime": _reference,
    "onnxruntime-optimized": _optimized,
    "onnx": _evaluator,
}


def _or(value: np.ndarray | None, other: Any) -> Any:
    return other if value is None else value
