"""Protobufs: edited bytes and edited messages, imported as a build imports them; what passes is opened and run."""

from __future__ import annotations

import random
import shutil
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import EncodeError
from mutations import NUMBERS, PATHS, REALS, TEXTS, edited_bytes
from seeds import model_folder, models

from trtc.compiler.importer import load_model_bytes
from trtc.engines.onnxruntime.errors import ORT_ERRORS
from trtc.profiles import TrtcError

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.message import Message

LOCATIONS = [*PATHS, "w.bin", "./w.bin", "deep/../w.bin", "up/secret.txt", "twice", "deep", "weights.bin", "deep/x"]
MAX_DEPTH = 12
RUN_S = 5
"""An edited model may be a right one that loops for years; it is stopped."""


class Importer:
    """A third of the cases edit bytes, the others edit messages; one in ten edits where external data lies."""

    name = "importer"
    outcomes = ("refused", "imported, but ONNX Runtime refuses it", "imported and opened", "imported and run")

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed = seed
        self._inside = model_folder(folder)
        self._work = folder / "work"
        self._outside = str(folder / "outside" / "secret.txt")
        self._protos = models()
        self._originals = [proto.SerializeToString() for proto in self._protos]
        self._pool: dict[str, list[Message]] = {}
        for proto in self._protos:
            for message in messages(proto):
                self._pool.setdefault(message.DESCRIPTOR.full_name, []).append(message)
        self.folders = (self._inside, self._work)
        self.secrets = folder / "outside"

    def case(self, number: int) -> bytes:
        rng = random.Random(f"{self._seed} {number}")  # noqa: S311 (repeatable, not secret)
        index = rng.randrange(len(self._protos))
        if rng.random() < 1 / 3:
            return edited_bytes(self._originals[index], rng)
        proto = onnx.ModelProto()
        proto.CopyFrom(self._protos[index])
        if rng.random() < 0.15:
            proto.CopyFrom(self._protos[0])
            self._move_data(proto.graph.initializer[0], rng)
        for _ in range(rng.choice([0, 1]) if index == 0 else rng.choice([1, 1, 1, 2, 4])):
            self._edit(rng.choice(messages(proto)), rng)
        try:
            return bytes(proto.SerializeToString())
        except (EncodeError, ValueError):
            return edited_bytes(self._originals[index], rng)

    def run(self, case: bytes) -> str:
        shutil.rmtree(self._work, ignore_errors=True)
        try:
            model = load_model_bytes(case, self._inside, self._work)
        except TrtcError:
            return "refused"
        if b"secretsecret" in b"".join(path.read_bytes() for path in self._work.iterdir()):
            raise AssertionError("the model holds bytes of a file outside of its folder")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])
        except (*ORT_ERRORS, MemoryError):
            return "imported, but ONNX Runtime refuses it"
        feeds = {}
        for item in session.get_inputs():
            if item.type not in _ARRAYS or any(isinstance(d, int) and d > 64 for d in item.shape):
                return "imported and opened"
            feeds[item.name] = np.ones([d if isinstance(d, int) else 2 for d in item.shape], _ARRAYS[item.type])
        limits = onnxruntime.RunOptions()
        timer = Timer(RUN_S, partial(stop, limits))
        timer.start()
        try:
            session.run(None, feeds, limits)
        except (*ORT_ERRORS, MemoryError):
            return "imported and opened"
        finally:
            timer.cancel()
        return "imported and run"

    def saved(self, case: bytes) -> bytes:
        return case

    def _move_data(self, tensor: onnx.TensorProto, rng: random.Random) -> None:
        """Let a tensor's data lie elsewhere, in a file of the right size or of another."""
        tensor.dims[0] = rng.choice([1, 20, 20, 25, 2**40])
        size_bytes = 4 * tensor.dims[0] * tensor.dims[1]
        texts = {
            "location": rng.choice([*LOCATIONS, "link", "up/secret.txt", "twice", self._outside]),
            "offset": rng.choice(["0", "600", "-1", "4096", str(2**63), "1e3", ""]),
            "length": rng.choice([str(size_bytes), str(size_bytes), "2400", "-2400", ""]),
        }
        for entry in tensor.external_data:
            entry.value = texts[entry.key]
        if rng.random() < 0.5:
            del tensor.external_data[1:]

    def _edit(self, message: Any, rng: random.Random) -> None:
        """Change one field: drop it, change its value, repeat it, or put a message of its kind from elsewhere in."""
        fields = list(message.DESCRIPTOR.fields)
        present = [descriptor for descriptor, _ in message.ListFields()]
        descriptor = rng.choice(present if present and rng.random() < 0.7 else fields)
        if rng.random() < 0.15:
            message.ClearField(descriptor.name)
        elif descriptor.message_type is not None:
            others = self._pool.get(descriptor.message_type.full_name, [])
            self._edit_messages(getattr(message, descriptor.name), repeated(descriptor), others, rng)
        elif repeated(descriptor):
            self._edit_scalars(getattr(message, descriptor.name), descriptor, rng)
        else:
            setattr(message, descriptor.name, self._scalar(descriptor, getattr(message, descriptor.name), rng))

    def _edit_messages(self, at: Any, many: bool, others: list[Message], rng: random.Random) -> None:  # noqa: FBT001
        if not many:
            if others:
                at.CopyFrom(rng.choice(others))
            return
        match rng.randrange(4):
            case 0 if at:
                del at[rng.randrange(len(at))]
            case 1 if at:
                at.add().CopyFrom(rng.choice(at))
            case 2 if len(at) > 1:
                a, b = rng.sample(range(len(at)), 2)
                kept = type(at[a])()
                kept.CopyFrom(at[a])
                at[a].CopyFrom(at[b])
                at[b].CopyFrom(kept)
            case _:
                if others:
                    at.add().CopyFrom(rng.choice(others))

    def _edit_scalars(self, at: Any, descriptor: Any, rng: random.Random) -> None:
        match rng.randrange(3):
            case 0 if at:
                del at[rng.randrange(len(at))]
            case 1 if at:
                index = rng.randrange(len(at))
                at[index] = self._scalar(descriptor, at[index], rng)
            case _:
                at.append(self._scalar(descriptor, at[0] if at else None, rng))

    def _scalar(self, descriptor: Any, old: Any, rng: random.Random) -> Any:
        if descriptor.enum_type is not None:
            return rng.choice([v.number for v in descriptor.enum_type.values])
        if descriptor.cpp_type in _WHOLE:
            low, high = _WHOLE[descriptor.cpp_type]
            near = [old + 1, old - 1, -old] if isinstance(old, int) else []
            return min(max(rng.choice([*near, *range(26), *NUMBERS]), low), high)
        if descriptor.cpp_type in (descriptor.CPPTYPE_FLOAT, descriptor.CPPTYPE_DOUBLE):
            return rng.choice([*[r for r in REALS if abs(r) < 1e30], float("nan"), float("inf")])
        if descriptor.type == descriptor.TYPE_BYTES:
            return edited_bytes(old, rng) if old else rng.randbytes(rng.randrange(20))
        names = ["x", "y", "c", "t", "w", "u", "F", "my", "", "ai.onnx", "If", "Loop", "Add", "Cast", "location", "B"]
        return rng.choice([*names, *LOCATIONS, self._outside, *[t for t in TEXTS if t.isprintable()], f"{old}x"])


_ARRAYS = {
    "tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(double)": np.float64,
    "tensor(int32)": np.int32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8,
}  # fmt: skip
_WHOLE = {1: (-(2**31), 2**31 - 1), 2: (-(2**63), 2**63 - 1), 3: (0, 2**32 - 1), 4: (0, 2**64 - 1), 7: (0, 1)}
"""Ranges by C++ type: int32, int64, uint32, uint64, bool."""


def stop(limits: onnxruntime.RunOptions) -> None:
    limits.terminate = True


def repeated(descriptor: Any) -> bool:
    return bool(descriptor.is_repeated)


def messages(proto: Message, depth: int = 0) -> list[Message]:
    """List a message and every message inside it."""
    found = [proto]
    if depth < MAX_DEPTH:
        for descriptor, value in proto.ListFields():
            if descriptor.message_type is not None:
                for inner in value if repeated(descriptor) else [value]:
                    found += messages(inner, depth + 1)
    return found
