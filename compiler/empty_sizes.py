"""Does a model run at empty sizes? Tried in a process of its own: kernels that never meet an empty axis may end it.

ONNX Runtime 1.32 ends the process (``terminate called``) for an LSTM with no rows, so this cannot be asked in ours.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trtc.engines.array_files import ReadBudget, read_npz, stored_as, tensor_name, write_npz
from trtc.engines.signature import Signature
from trtc.profiles import TrtcError, dim_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.compiler.model import Model
    from trtc.compiler.values import ValueSource

_TIMEOUT_S = 60
_MAX_BYTES = 2**30
_ANSWER = b"empty-size: "
"""Begins each line of the child that is an answer: libraries may print as well."""
_ENDED = "running it ends the process"
_CHILD = "import sys; from trtc.compiler.empty_sizes import try_here; try_here(sys.stdin.buffer.read())"


class EmptySizesJob(msgspec.Struct, frozen=True):
    """What the child tries.

    Attributes:
        model: path of the checked model.
        signature: with the relations that the outputs must keep.
        sizes: sizes by symbol, to be tried in this order.
        feeds: a .npz file for each entry of ``sizes``.
    """

    model: str
    signature: Signature
    sizes: tuple[dict[str, int], ...]
    feeds: tuple[str, ...]


def why_not_empty(
    model: Model, signature: Signature, values: ValueSource, base: Mapping[str, int], symbols: Sequence[str]
) -> dict[str, str]:
    """Return the symbols for which the model does not run at size 0, or does not give what the relations say; and why.

    Args:
        model: checked model.
        signature: with relations.
        values: makes the feeds.
        base: sizes that run; one symbol at a time is made empty.
        symbols: to be tried.
    """
    rng = np.random.default_rng(0)
    refused: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="trtc-empty-") as folder:
        trials: list[tuple[str, dict[str, int], str]] = []
        for i, symbol in enumerate(symbols):
            sizes = {**base, symbol: 0}
            path = Path(folder) / f"{i}.npz"
            try:
                write_npz(path, values.feeds(sizes, rng))
            except (TrtcError, ValueError, ArithmeticError) as error:
                refused[symbol] = f"no such inputs can be made ({error})"
                continue
            trials.append((symbol, sizes, str(path)))
        while trials:
            answers = _answers(model, signature, trials)
            refused |= {symbol: reason for (symbol, _, _), reason in zip(trials, answers, strict=False) if reason}
            refused |= {symbol: _ENDED for symbol, _, _ in trials[len(answers) : len(answers) + 1]}
            trials = trials[len(answers) + 1 :]
    return refused


def _answers(model: Model, signature: Signature, trials: Sequence[tuple[str, dict[str, int], str]]) -> list[str]:
    """Run one child; it answers one line a trial, empty or the reason, for as long as it lives."""
    job = EmptySizesJob(
        str(model.path), signature, tuple(sizes for _, sizes, _ in trials), tuple(feeds for _, _, feeds in trials)
    )
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter, and a module of ours)
            [sys.executable, "-c", _CHILD],
            input=msgspec.json.encode(job),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        written = done.stdout
    except subprocess.TimeoutExpired as error:
        written = error.stdout or b""
    except OSError:
        written = b""
    lines = [line for line in written.splitlines() if line.startswith(_ANSWER)]
    return [msgspec.json.decode(line.removeprefix(_ANSWER), type=str) for line in lines]


def try_here(data: bytes) -> None:
    """Run one job in this process; print an answer for each trial."""
    import onnx

    from trtc.compiler.model import Model
    from trtc.compiler.reference import open_reference

    job = msgspec.json.decode(data, type=EmptySizesJob)
    path = Path(job.model)
    proto = onnx.load(path, load_external_data=False)
    reference = open_reference(Model(proto, path.parent, path, "", 0), threads=1)
    dtypes = {spec.name: spec.dtype for spec in job.signature.inputs}
    for sizes, file in zip(job.sizes, job.feeds, strict=True):
        try:
            stored = {tensor_name(name): array for name, array in read_npz(Path(file), ReadBudget(_MAX_BYTES))}
            outputs = reference.run({name: stored_as(array, dtypes[name]) for name, array in stored.items()})
        except (TrtcError, ValueError, ArithmeticError) as error:
            reason = str(error) or type(error).__name__
        else:
            reason = _other_shape(job.signature, outputs, sizes)
        print((_ANSWER + msgspec.json.encode(reason)).decode(), flush=True)  # noqa: T201 (the answer to the parent)


def _other_shape(signature: Signature, outputs: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Name an output that does not have the sizes that the relations say; empty when all have."""
    for spec in signature.outputs:
        if not spec.in_memory or spec.dims is None or None in spec.dims:
            continue
        shape, planned = getattr(outputs[spec.name], "shape", None), tuple(dim_value(dim, sizes) for dim in spec.dims)
        if shape != planned:
            return f"output {spec.name!r} has shape {shape}, which breaks its rule {spec}"
    return ""
