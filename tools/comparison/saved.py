"""Inputs and outputs in files: ``.npz`` for one request, Polygraphy's JSON for any number. Never a pickle.

Polygraphy writes arrays as base64 of ``.npy``. Its PyTorch tensors are pickles and are refused.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from trtc.engines.array_files import ReadBudget, read_npy_stream, read_npz, tensor_name, write_npz
from trtc.engines.files import host_error, replacing, sync_folder
from trtc.profiles import UsageError
from trtc.tools.places import require_file_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    Feeds = dict[str, Any]

MAX_BYTES = 8 * 2**30
_TYPE, _OLD_TYPE, _OLD_MARK = "polygraphy_class", "polygraphy_serialized_json_type", "__polygraphy_encoded_"
_LAZY = ("LazyArray", "LazyNumpyArray")


def load_requests(paths: Sequence[Path], known: Sequence[str]) -> list[Feeds]:
    """Read inputs: one request from each ``.npz``, as many as it holds from a file of Polygraphy's ``--save-inputs``.

    Args:
        paths: of files.
        known: names of the inputs; a member named exactly so is not percent-decoded.

    Raises:
        UsageError: for what is no such file.
    """
    budget = ReadBudget(MAX_BYTES)
    found: list[Feeds] = []
    for path in paths:
        if _is_npz(path):
            found.append(_npz(path, known, budget))
            continue
        plain = _decoded(_json(path), str(path), budget)
        if not isinstance(plain, list) or not all(_is_feed(item) for item in plain):
            raise UsageError(f"{path}: not a list of inputs by name; write it with `polygraphy run --save-inputs`")
        found += plain
    return found


def load_results(paths: Sequence[Path], known: Sequence[str]) -> list[Feeds]:
    """Read outputs: of one request from each ``.npz``, or those of the first runner in a file of ``--save-outputs``.

    Args:
        paths: of files.
        known: names of the outputs.

    Raises:
        UsageError: for what is no such file, or one that holds no runner.
    """
    budget = ReadBudget(MAX_BYTES, "outputs")
    found: list[Feeds] = []
    for path in paths:
        if _is_npz(path):
            found.append(_npz(path, known, budget))
            continue
        plain = _decoded(_json(path), str(path), budget)
        runners = plain.get("lst") if isinstance(plain, dict) else None
        if not isinstance(runners, list) or not runners or not all(_is_runner(runner) for runner in runners):
            raise UsageError(f"{path}: not results of Polygraphy; write it with --save-outputs")
        found += [iteration["outputs"] for iteration in runners[0][1]]
    return found


def save_results(path: Path, runner: str, results: Sequence[Feeds]) -> None:
    """Write outputs: ``.json`` as Polygraphy's ``--load-outputs`` reads it, ``.npz`` for one request.

    Args:
        path: ends in ``.json`` or ``.npz``.
        runner: what the file says that they came from.
        results: outputs by name, of each request.

    Raises:
        UsageError: for another ending, several requests for ``.npz``, or a folder that is not there.
        HostError: when the file system refuses.
    """
    if path.suffix == ".npz":
        if len(results) != 1:
            raise UsageError(f"{path}: .npz holds one request, these are {len(results)}; write a .json file")
        write_npz(path, results[0])
        return
    iterations = [
        {
            "outputs": {name: {"values": _array(name, v), _TYPE: "LazyArray"} for name, v in result.items()},
            "runtime": None,
            "runner_name": runner,
            _TYPE: "IterationResult",
        }
        for result in results
    ]
    _write(path, {"lst": [[runner, iterations]], _TYPE: "RunResults"})


def save_requests(path: Path, requests: Sequence[Feeds]) -> None:
    """Write inputs: ``.json`` as Polygraphy's ``--load-inputs`` reads it, ``.npz`` for one request.

    Raises:
        UsageError, HostError: as ``save_results``.
    """
    if path.suffix == ".npz":
        if len(requests) != 1:
            raise UsageError(f"{path}: .npz holds one request, these are {len(requests)}; write a .json file")
        write_npz(path, requests[0])
        return
    _write(path, [{name: _array(name, value) for name, value in feeds.items()} for feeds in requests])


def require_saved_place(path: Path | None, option: str) -> None:
    """Refuse a path that cannot be written, before any work is done for it; None is none.

    Raises:
        UsageError: for another ending than ``.json`` and ``.npz``; likewise as ``require_file_place``.
        HostError: as there.
    """
    if path is not None and path.suffix not in (".json", ".npz"):
        raise UsageError(f"{path}: end the name in .json (any number of requests) or .npz (one)")
    require_file_place(path, option)


def _write(path: Path, content: Any) -> None:
    require_saved_place(path, "")
    data = msgspec.json.encode(content)
    try:
        with replacing(path) as fd, os.fdopen(os.dup(fd), "wb") as stream:
            stream.write(data)
        sync_folder(path.parent)
    except OSError as error:
        raise host_error(error, path, len(data)) from error


def _array(name: str, value: Any) -> dict[str, str]:
    array = np.asarray(value)
    if array.dtype.type.__module__ == "ml_dtypes":
        raise UsageError(f"{name!r} is {array.dtype}, which Polygraphy's JSON does not hold; write a .npz file")
    if array.dtype.hasobject:
        array = np.array([str(item) for item in array.reshape(-1)], np.str_).reshape(array.shape)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return {"array": base64.b64encode(stream.getvalue()).decode(), _TYPE: "ndarray"}


def _is_npz(path: Path) -> bool:
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give a .npz file, or a .json file as Polygraphy saves it")
    with path.open("rb") as stream:
        return stream.read(2) == b"PK"


def _npz(path: Path, known: Sequence[str], budget: ReadBudget) -> Feeds:
    return {tensor_name(member, known): array for member, array in read_npz(path, budget)}


def _json(path: Path) -> Any:
    if path.stat().st_size > MAX_BYTES:
        raise UsageError(f"{path}: more than {MAX_BYTES} bytes; give fewer requests at a time")
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: neither a .npz file nor JSON ({error})") from error


def _decoded(value: Any, where: str, budget: ReadBudget) -> Any:
    """Replace what Polygraphy encoded by what it stands for; nothing is executed, nothing is imported by name."""
    if isinstance(value, list):
        return [_decoded(item, where, budget) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TYPE) or next((k.removeprefix(_OLD_MARK) for k, v in value.items() if v == _OLD_TYPE), None)
    if kind == "ndarray":
        return _decoded_array(value.get("array"), where, budget)
    if kind in _LAZY:
        return _decoded(value.get("values"), where, budget)
    if kind in (None, "IterationResult", "RunResults"):
        return {key: _decoded(item, where, budget) for key, item in value.items() if key != _TYPE}
    raise UsageError(f"{where}: holds a {kind}, arrays of numpy are read only; save the results as numpy arrays")


def _decoded_array(text: Any, where: str, budget: ReadBudget) -> np.ndarray:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise UsageError(f"{where}: an array is not base64 ({error}); save the file again") from error
    return read_npy_stream(io.BytesIO(data), len(data), where, budget)


def _is_feed(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(array, np.ndarray) for array in value.values())


def _is_runner(value: Any) -> bool:
    """Tell whether this is a name with iterations, each of which has outputs."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], list):  # noqa: PLR2004 (a pair)
        return False
    return all(isinstance(item, dict) and _is_feed(item.get("outputs")) for item in value[1])
