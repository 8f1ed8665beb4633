"""Real samples: read from ``.npz`` files and folders of ``.npy`` files, without ever running code of theirs.

A sample is one feed of the model. Accepted are

* ``name.npz``: one sample, a member for each input;
* a folder of ``.npz`` files: one sample each;
* a folder with one subfolder for each sample, which holds ``<input>.npy`` for each input.

Input names that cannot be file names, or that ``numpy.savez`` does not take (``file``), are written
percent-encoded, as in URLs: ``a/b:0`` is ``a%2Fb%3A0.npy`` and ``file`` may be ``%66ile.npy``. A member whose plain
name is an input of the model is that input. ``engines/array_files.py`` writes files in this form.

Strings are numpy ``U`` arrays (``np.array(["a", "b"])``); object arrays are pickles and are refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.array_files import ReadBudget, read_npy, read_npz, stored_as, tensor_name
from trtc.profiles import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from trtc.engines.signature import TensorSpec


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """How samples are read.

    Attributes:
        known_inputs: names of the model's inputs; a member named exactly so is not percent-decoded.
        allow_nan: take NaN in floating-point inputs.
        max_bytes: of all samples together, in memory.
        max_samples: how many samples are read at most; more is an error.
    """

    known_inputs: frozenset[str] = frozenset()
    allow_nan: bool = False
    max_bytes: int = 2 * 2**30
    max_samples: int = 10_000


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in memory.

    Attributes:
        feeds: one dict of arrays for each sample; do not write into them.
        origins: where each came from, for reports.
        digest: SHA-256 over names, dtypes, shapes and values, in order; no path, no time.
    """

    feeds: tuple[dict[str, np.ndarray], ...]
    origins: tuple[str, ...]
    digest: str


def load_samples(paths: Sequence[Path], options: SampleOptions | None = None) -> Samples:
    """Read samples from files and folders, in the order given; inside a folder by name.

    Raises:
        UsageError: a path that is missing or holds no sample, a file that is no ``.npy`` or ``.npz``, pickled
            objects, member names that leave their place, NaN, or more data than the limits allow.
    """
    options = options or SampleOptions()
    budget = ReadBudget(options.max_bytes, "samples")
    feeds: list[dict[str, np.ndarray]] = []
    origins: list[str] = []
    for origin, feed in _read_all(paths, options, budget):
        if len(feeds) == options.max_samples:
            raise UsageError(
                f"{origin}: more than {options.max_samples} samples; give fewer, they are probed one by one"
            )
        feeds.append(feed)
        origins.append(origin)
    if not feeds:
        raise UsageError("no samples given; name .npz files, folders of them, or folders of <sample>/<input>.npy")
    if not options.allow_nan:
        _refuse_nan(feeds, origins)
    return Samples(tuple(feeds), tuple(origins), _digest(feeds))


def check_samples(samples: Samples, inputs: Sequence[TensorSpec]) -> Samples:
    """Check samples against the model's inputs, all problems in one error.

    Args:
        samples: as loaded.
        inputs: specs of the graph inputs.

    Returns:
        The samples with strings as object arrays and 16-bit or 8-bit ml_dtypes values viewed as such.

    Raises:
        UsageError: unknown or missing inputs, other dtypes, ranks or static sizes, or one symbol with two sizes.
    """
    problems: list[str] = []
    feeds = [
        _checked(feed, inputs, f"{origin}: ", problems)
        for feed, origin in zip(samples.feeds, samples.origins, strict=True)
    ]
    if problems:
        shown = "\n  ".join(problems[:20])
        count = f"{len(problems)} problem{'s' * (len(problems) != 1)}"
        raise UsageError(f"{count} in the samples:\n  {shown}\n  fix the files, or leave them out")
    return Samples(tuple(feeds), samples.origins, samples.digest)


def _read_all(
    paths: Sequence[Path], options: SampleOptions, budget: ReadBudget
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for path in paths:
        if path.is_dir():
            yield from _read_folder(path, options, budget)
        elif path.is_file():
            yield path.name, _read_npz(path, options, budget)
        else:
            raise UsageError(f"{path}: no such file or folder; samples are .npz files or folders")


def _read_folder(
    folder: Path, options: SampleOptions, budget: ReadBudget
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    entries = sorted(folder.iterdir())
    found = False
    for entry in entries:
        _refuse_outside(entry, folder)
        if entry.suffix == ".npz" and entry.is_file():
            found = True
            yield f"{folder.name}/{entry.name}", _read_npz(entry, options, budget)
        elif entry.is_dir() and (files := sorted(entry.glob("*.npy"))):
            found = True
            yield f"{folder.name}/{entry.name}", _read_npy_files(files, folder, options, budget)
    if not found and (files := [e for e in entries if e.suffix == ".npy"]):
        found = True
        yield folder.name, _read_npy_files(files, folder, options, budget)
    if not found:
        raise UsageError(
            f"{folder}: no samples inside; it needs .npz files, or a folder of <input>.npy for each sample"
        )


def _read_npy_files(
    files: Sequence[Path], root: Path, options: SampleOptions, budget: ReadBudget
) -> dict[str, np.ndarray]:
    feed: dict[str, np.ndarray] = {}
    for file in files:
        _refuse_outside(file, root)
        array = read_npy(file, budget)
        _add(feed, file.name, array, str(file), options)
    return feed


def _read_npz(path: Path, options: SampleOptions, budget: ReadBudget) -> dict[str, np.ndarray]:
    feed: dict[str, np.ndarray] = {}
    for member, array in read_npz(path, budget):
        _add(feed, member, array, f"{path}: member {member!r}", options)
    return feed


def _add(feed: dict[str, np.ndarray], file_name: str, array: np.ndarray, where: str, options: SampleOptions) -> None:
    name = tensor_name(file_name, options.known_inputs)
    if name in feed:
        raise UsageError(f"{where}: a second value for input {name!r}; keep one")
    feed[name] = array


def _refuse_outside(path: Path, folder: Path) -> None:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{path}: leads out of the samples folder {folder}; copy the file into it")


def _refuse_nan(feeds: Sequence[dict[str, np.ndarray]], origins: Sequence[str]) -> None:
    for feed, origin in zip(feeds, origins, strict=True):
        for name, array in feed.items():
            count = int(np.isnan(array).sum()) if array.dtype.kind in "fc" else 0
            if count:
                raise UsageError(
                    f"{origin}: input {name!r} holds NaN at {count} of {array.size} positions; "
                    "nothing can be compared there: repair the sample, or allow NaN"
                )


def _digest(feeds: Sequence[dict[str, np.ndarray]]) -> str:
    digest = hashlib.sha256()
    for feed in feeds:
        digest.update(f"sample {len(feed)}\n".encode())
        for name in sorted(feed):
            array = feed[name]
            digest.update(f"{name!r} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _checked(
    feed: dict[str, np.ndarray], inputs: Sequence[TensorSpec], where: str, problems: list[str]
) -> dict[str, np.ndarray]:
    specs = {spec.name: spec for spec in inputs}
    problems.extend(where + unknown_name("input", name, specs) for name in feed if name not in specs)
    problems.extend(
        f"{where}input {spec.name!r} is missing; the model needs it"
        for spec in inputs
        if spec.name not in feed and spec.used and not spec.has_default
    )
    sizes: dict[str, tuple[int, str]] = {}
    result = {}
    for spec in inputs:
        if spec.name not in feed:
            continue
        if not spec.is_tensor:
            problems.append(f"{where}input {spec.name!r} is {spec.dtype}, files hold tensors only; leave samples out")
            continue
        array = stored_as(feed[spec.name], spec.dtype)
        if array is None:
            problems.append(
                f"{where}input {spec.name!r} has dtype {feed[spec.name].dtype}, the model takes {spec.dtype}; "
                "convert it"
            )
            continue
        problems.extend(where + problem for problem in _shape_problems(array.shape, spec, sizes))
        result[spec.name] = array
    return result


def _shape_problems(shape: tuple[int, ...], spec: TensorSpec, sizes: dict[str, tuple[int, str]]) -> Iterator[str]:
    if spec.dims is None:
        return
    if len(shape) != len(spec.dims):
        yield f"input {spec.name!r} has {len(shape)} axes {list(shape)}, the model takes {len(spec.dims)}: {spec}"
        return
    for axis, (size, dim) in enumerate(zip(shape, spec.dims, strict=True)):
        if isinstance(dim, int) and size != dim:
            yield f"input {spec.name!r} axis {axis} has size {size}, the model takes {dim}"
        if isinstance(dim, str):
            known, owner = sizes.setdefault(dim, (size, spec.name))
            if known != size:
                yield f"{dim} is {known} in input {owner!r} and {size} in input {spec.name!r}; they must be equal"
