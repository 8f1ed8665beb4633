"""Which model a built engine came from: the simulator runs that model where a GPU would run the engine.

A blob that was not put in here is refused, so what is run is always what ``build.py`` really built.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import onnxruntime

from trtc.engines.onnxruntime.raw import foreign_types, run_raw
from trtc.engines.signature import numpy_dtype

Shape = tuple[int, ...]


@dataclass(eq=False)
class BuiltModel:
    """What is known about one engine.

    Attributes:
        onnx: bytes of the model that was built.
        profiles: smallest and largest shape of each input, by name, for each profile.
        on_host: inputs that the engine reads from host memory.
        scratch_bytes: of each profile.
    """

    onnx: bytes
    profiles: tuple[dict[str, tuple[Shape, Shape]], ...]
    on_host: frozenset[str] = frozenset()
    scratch_bytes: tuple[int, ...] = ()
    _shapes: dict[object, dict[str, Shape]] = field(default_factory=dict)
    _foreign: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(self.onnx, options, providers=["CPUExecutionProvider"])
        self._foreign = foreign_types(self.session)
        self.inputs = {i.name: _dtype(i.type) for i in self.session.get_inputs()}
        self.outputs = {o.name: _dtype(o.type) for o in self.session.get_outputs()}

    def scratch(self, profile: int) -> int:
        """Bytes that a profile works in."""
        return self.scratch_bytes[profile] if self.scratch_bytes else 1000 * (profile + 1)

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute every output."""
        names = list(self.outputs)
        if self._foreign:
            return run_raw(self.session, feeds, self._foreign, None, names)
        return dict(zip(names, self.session.run(names, feeds), strict=True))

    def shapes(self, inputs: dict[str, Shape], values: dict[str, np.ndarray]) -> dict[str, Shape]:
        """Return the output shapes for input shapes, and for the values that sizes follow from."""
        key = (tuple(inputs.items()), tuple((name, array.tobytes()) for name, array in values.items()))
        if key not in self._shapes:
            feeds = {name: values.get(name, np.zeros(shape, self.inputs[name])) for name, shape in inputs.items()}
            self._shapes[key] = {name: array.shape for name, array in self.run(feeds).items()}
        return self._shapes[key]


class EngineStore:
    """Built engines by the digest of their bytes."""

    def __init__(self) -> None:
        self._known: dict[str, BuiltModel] = {}

    def add(self, blob: bytes, model: BuiltModel) -> None:
        """Remember where a blob came from."""
        self._known[hashlib.sha256(blob).hexdigest()] = model

    def find(self, blob: bytes) -> BuiltModel | None:
        """Return the model of a blob; None for one that nobody built."""
        return self._known.get(hashlib.sha256(blob).hexdigest())


def _dtype(text: str) -> np.dtype:
    return np.dtype(numpy_dtype(text.removeprefix("tensor(").removesuffix(")")))
