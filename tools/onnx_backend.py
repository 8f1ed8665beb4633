"""trtc behind onnx's backend interface, for tools that run models through it and for onnx's own backend tests.

    import trtc.tools.onnx_backend as backend

    prepared = backend.prepare(model)
    outputs = prepared.run([x, y])

Each model goes the whole way: importer, engine, comparison with the model, bundle on disk, ``trtc.runtime.load``.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from trtc.compiler import BuildOptions, build
from trtc.compiler.importer import load_model_bytes
from trtc.compiler.passes.supported import ir_limit, opset_limits
from trtc.compiler.passes.walk import STANDARD_DOMAIN
from trtc.compiler.reference import open_reference
from trtc.engines.array_files import write_npz
from trtc.profiles import ModelError, UsageError
from trtc.runtime import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.runtime import Session

QUICK = BuildOptions(measure_s=0.0, use_cache=False)
"""What is asked of a build here unless the caller says otherwise: everything is compared, nothing is measured."""
_PROTOS = (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto)


class Prepared(BackendRep):
    """A model that was built and loaded; it owns a session and the folder of its bundle until ``close``."""

    def __init__(self, session: Session, folder: tempfile.TemporaryDirectory[str]) -> None:
        self.session = session
        self._folder = folder
        self._inputs = tuple(spec.name for spec in session.signature.inputs if not spec.has_default)
        self._outputs = tuple(spec.public_name for spec in session.signature.outputs)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run once.

        Args:
            inputs: values in the order of the graph's inputs without initializers, or a dict by name; arrays, lists
                of arrays for sequences, None for an empty optional, or onnx's protos of these.
            kwargs: ``outputs``, names to compute; all of them, in the graph's order, when left out.

        Raises:
            RequestError: listing everything that is wrong with the inputs.
            EngineError: the engine failed.
        """
        names = tuple(kwargs.pop("outputs", None) or self._outputs)
        _refuse_unknown(kwargs, "run")
        results = self.session.run(feeds_of(inputs, self._inputs), names)
        return tuple(results[name] for name in names)

    def close(self) -> None:
        """Free the session and remove the bundle."""
        self.session.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class TrtcBackend(Backend):
    """onnx's backend interface over a whole build and run."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tell whether trtc takes the model; nothing runs."""
        del kwargs
        if not cls.supports_device(device):
            return False
        with tempfile.TemporaryDirectory(prefix="trtc-onnx-") as work:
            try:
                open_reference(load_model_bytes(model.SerializeToString(), None, Path(work)), threads=1)
            except ModelError:
                return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Build and load a model.

        Args:
            model: with its weights inside.
            device: ``CPU``.
            kwargs: ``options``, a ``BuildOptions``; ``samples``, a list of inputs as ``run`` takes them: real values
                to find sizes with, and to compare the engine with the model. One that holds a sequence, an optional
                or NaN is left out, since samples are numbers and strings.

        Raises:
            UsageError, ModelError, CheckError, HostError: as ``build`` and ``load``.
        """
        options: BuildOptions = kwargs.pop("options", QUICK)
        samples: Sequence[Any] = kwargs.pop("samples", ())
        _refuse_unknown(kwargs, "prepare")
        if not cls.supports_device(device):
            raise UsageError(f"device {device!r}; this backend runs on CPU")
        folder = tempfile.TemporaryDirectory(prefix="trtc-onnx-")
        try:
            path = Path(folder.name) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            files = _write_samples(Path(folder.name) / "samples", model.graph, samples)
            bundle = Path(folder.name) / "model.trtc"
            build(path, bundle, replace(options, samples=(*options.samples, *files)))
            return Prepared(load(bundle, threads=options.threads or None), folder)
        except BaseException:
            folder.cleanup()
            raise

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Build, load, run once, and remove everything; as ``prepare`` and ``run``."""
        with cls.prepare(model, device, **kwargs) as prepared:
            return prepared.run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Build and run a model of one node, with the inputs' own types and shapes.

        Args:
            node: to run; its input names are those of the inputs given.
            inputs: a value for each named input; arrays only.
            device: ``CPU``.
            outputs_info: dtype and shape of each output, where inference should not find them.
            kwargs: ``opset_version``; the newest that onnx and ONNX Runtime both know when left out; others as for
                ``prepare``.

        Raises:
            TrtcError: as ``prepare`` and ``run``.
        """
        opset = kwargs.pop("opset_version", None)
        return cls.run_model(_node_model(node, inputs, outputs_info, opset), inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether models can run on a device, such as ``CPU`` or ``CUDA:1``."""
        try:
            return bool(Device(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False


prepare = TrtcBackend.prepare
run_model = TrtcBackend.run_model
run_node = TrtcBackend.run_node
supports_device = TrtcBackend.supports_device
is_compatible = TrtcBackend.is_compatible


def feeds_of(inputs: Any, names: Sequence[str]) -> dict[str, Any]:
    """Bring inputs into a dict by name.

    Args:
        inputs: a dict, or values in the order of ``names``; one array alone is the only value.
        names: of the graph's inputs that have no initializer.

    Raises:
        UsageError: for more values than inputs.
    """
    if hasattr(inputs, "keys"):
        return {name: _value(inputs[name]) for name in inputs.keys()}  # noqa: SIM118 (any mapping will do)
    values = [inputs] if isinstance(inputs, np.ndarray | np.generic | onnx.TensorProto) else list(inputs)
    if len(values) > len(names):
        raise UsageError(f"{len(values)} inputs, but the model takes {len(names)}: {', '.join(names)}")
    return {name: _value(value) for name, value in zip(names, values, strict=False)}


def _value(given: Any) -> Any:
    """Read one of onnx's protos; anything else is left as it is."""
    match given:
        case onnx.TensorProto():
            return numpy_helper.to_array(given)
        case onnx.SequenceProto():
            return numpy_helper.to_list(given)
        case onnx.OptionalProto():
            return numpy_helper.to_optional(given)
    return given


def _write_samples(folder: Path, graph: onnx.GraphProto, samples: Sequence[Any]) -> tuple[Path, ...]:
    """Write those samples that files can hold."""
    defaults = {tensor.name for tensor in graph.initializer}
    names = [value.name for value in graph.input if value.name not in defaults]
    folder.mkdir()
    written = []
    for i, sample in enumerate(samples):
        feeds = feeds_of(sample, names)
        if feeds and all(_storable(value) for value in feeds.values()):
            path = folder / f"{i}.npz"
            write_npz(path, {name: np.asarray(value) for name, value in feeds.items()})
            written.append(path)
    return tuple(written)


def _storable(value: Any) -> bool:
    if value is None or isinstance(value, list):
        return False
    array = np.asarray(value)
    return array.dtype.kind not in "fc" or not bool(np.isnan(array).any())


def _node_model(
    node: onnx.NodeProto,
    inputs: Any,
    outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None,
    opset: int | None,
) -> onnx.ModelProto:
    """Make a model of one node."""
    feeds = feeds_of(inputs, list(dict.fromkeys(name for name in node.input if name)))
    outputs = [name for name in node.output if name]
    known = dict(zip(outputs, outputs_info or (), strict=False))
    graph = helper.make_graph(
        [node],
        node.op_type or "node",
        [_declared(name, np.asarray(value).dtype, np.shape(value)) for name, value in feeds.items()],
        [_declared(name, *known[name]) if name in known else onnx.ValueInfoProto(name=name) for name in outputs],
    )
    limit = opset_limits()[STANDARD_DOMAIN].newest
    imports = [helper.make_opsetid("", opset or limit)]
    if node.domain not in ("", "ai.onnx"):
        imports.append(helper.make_opsetid(node.domain, opset_limits()[node.domain].newest))
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_limit().newest)


def _declared(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))


def _refuse_unknown(kwargs: Mapping[str, Any], where: str) -> None:
    if kwargs:
        raise UsageError(f"{where} has no option {next(iter(kwargs))!r}; its options are in its documentation")
