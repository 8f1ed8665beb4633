"""Inputs of a run: arrays from files by input name, and the sizes that are asked for where values are generated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.array_files import ReadBudget, read_npy, read_npz, stored_as, tensor_name
from trtc.engines.signature import numpy_dtype
from trtc.profiles import RequestError, UsageError, dim_value, shape_text, sizes_text, unknown_name
from trtc.profiles.grammar import ShapeOptions, profiles_from_options, quote_name
from trtc.profiles.grammar.names import read_quoted, split_items, split_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.engines.signature import Signature, TensorSpec

MAX_INPUT_BYTES = 8 * 2**30
"""Of all input files together; a request beyond this would not fit the planned memory of any bundle so far."""
_NPY_MAGIC = b"\x93NUMPY"


def read_inputs(
    npz: Sequence[Path], named: Sequence[str], signature: Signature, sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Read inputs from files. Names are looked at here, shapes when the request is checked.

    Args:
        npz: ``.npz`` files with a member for each input.
        named: texts ``NAME=FILE`` or ``NAME:FILE``; the file is ``.npy``, or raw values as trtexec takes them.
        signature: of the bundle.
        sizes: of the symbols, for raw files, which hold no shape.

    Raises:
        UsageError: for files that are missing or are no arrays, unknown names, or an input given twice.
        RequestError: for another dtype than the model's.
    """
    specs = {spec.name: spec for spec in signature.inputs}
    budget = ReadBudget(MAX_INPUT_BYTES)
    found: dict[str, np.ndarray] = {}
    for name, array, where in _arrays(npz, named, specs, budget, sizes):
        if name not in specs:
            raise UsageError(f"{where}: {unknown_name('input', name, specs)}")
        if name in found:
            raise UsageError(f"{where}: a second value for input {name!r}; keep one")
        found[name] = _typed(array, specs[name], where)
    return found


def _arrays(
    npz: Sequence[Path],
    named: Sequence[str],
    specs: Mapping[str, TensorSpec],
    budget: ReadBudget,
    sizes: Mapping[str, int],
) -> Iterator[tuple[str, np.ndarray, str]]:
    for path in npz:
        _require_file(path, "a .npz file with a member for each input")
        if _is_npy(path):
            raise UsageError(f"{path}: a single array; write --input NAME={path} to say which input it is")
        for member, array in read_npz(path, budget):
            yield tensor_name(member, specs), array, f"{path}: member {member!r}"
    for text in named:
        name, path = split_assignment(text, specs)
        _require_file(path, "a .npy file")
        if _is_npy(path):
            yield name, read_npy(path, budget), str(path)
        else:
            if name not in specs:
                raise UsageError(f"{path}: {unknown_name('input', name, specs)}")
            yield name, _read_raw(path, specs[name], sizes, budget), str(path)


def split_assignment(text: str, names: Mapping[str, object]) -> tuple[str, Path]:
    """Split ``NAME=FILE`` or ``NAME:FILE``, where both name and file may hold those characters.

    Raises:
        UsageError: when it is neither.
    """
    if text[:1] in ("'", '"'):
        name, end = read_quoted(text, 0)
        if text[end : end + 1] in ("=", ":"):
            return name, Path(text[end + 1 :])
    for name in sorted(names, key=len, reverse=True):
        if text.startswith((f"{name}=", f"{name}:")):
            return name, Path(text[len(name) + 1 :])
    for separator in "=:":
        head, found, tail = text.partition(separator)
        if found and head and tail:
            return head, Path(tail)
    raise UsageError(
        f"{text!r} does not name an input and a file; write --input NAME=FILE.npy (inputs: {_listed(names)})"
    )


def requested_sizes(sizes: Sequence[str], shapes: ShapeOptions, signature: Signature) -> dict[str, int]:
    """Read the sizes that were asked for; symbols that nobody named are absent.

    Args:
        sizes: texts of ``--sizes``: ``batch=2,seq=17``.
        shapes: the shape grammars; each range must be one size.
        signature: of the bundle.

    Raises:
        ProfileError: for texts that do not follow their grammar, unknown names, contradictory sizes.
        UsageError: for a range where one size is needed, or several profiles.
    """
    items = [split_name(item, "=", "--sizes batch=2,seq=17") for text in sizes for item in split_items(text)]
    merged = ShapeOptions(
        dim=(*shapes.dim, *(f"{quote_name(symbol)}={size}" for symbol, size in items)),
        shape=shapes.shape,
        trtexec=shapes.trtexec,
    )
    profiles = profiles_from_options(merged, signature.input_dims)
    if len(profiles) != 1:
        raise UsageError(f"{len(profiles)} sets of shapes were given, a run takes one; run once for each")
    found = {}
    for symbol, r in profiles[0].ranges.items():
        if r.max is None and r.min == 0:
            continue
        if r.min != r.max:
            raise UsageError(f"{symbol} {r} is a range, a run needs one size; write --sizes {quote_name(symbol)}=SIZE")
        found[symbol] = r.min
    return found


def shown_sizes(feeds: Mapping[str, Any], signature: Signature) -> dict[str, int]:
    """Read the size of each symbol off the shapes of inputs; the request's check judges contradictions."""
    found: dict[str, int] = {}
    for spec in signature.inputs:
        shape = np.shape(feeds[spec.name]) if spec.name in feeds and spec.is_tensor else ()
        if spec.dims is not None and len(shape) == len(spec.dims):
            for dim, size in zip(spec.dims, shape, strict=True):
                if isinstance(dim, str):
                    found.setdefault(dim, size)
    return found


def require_sizes(missing: Sequence[str], manifest: Manifest) -> None:
    """Refuse to generate values while sizes are unknown: no shape is invented.

    Raises:
        UsageError: listing the symbols, what the bundle serves, and the ways to give sizes.
    """
    if not missing:
        return
    served = {
        s: " or ".join(dict.fromkeys(str(p.ranges[s]) for p in manifest.ladder.profiles if s in p.ranges))
        for s in missing
    }
    listed = ", ".join(f"{s} ({served[s] or 'any'})" for s in missing)
    typed = ",".join(f"{quote_name(s)}=SIZE" for s in missing)
    closed = all(p.bucket.get(s) is not None for p in manifest.ladder.profiles for s in missing)
    every = ", or --all-profiles to run at the opt sizes of each profile" if closed else ""
    carriers = [spec for spec in manifest.signature.inputs if spec.symbols & set(missing)]
    shape = ",".join(f"{quote_name(s.name)}{shape_text(s.dims).replace(' ', '')}" for s in carriers)
    raise UsageError(
        f"no size for {listed}: give --sizes {typed}, or --shape '{shape}' with numbers, "
        f"or real inputs with --inputs FILE.npz{every}"
    )


def _typed(array: np.ndarray, spec: TensorSpec, where: str) -> np.ndarray:
    if not spec.is_tensor:
        raise UsageError(f"{where}: input {spec.name!r} is {spec.dtype}, files hold tensors only; call the library")
    typed = stored_as(array, spec.dtype)
    if typed is None:
        raise RequestError(
            f"{where}: input {spec.name!r} holds {array.dtype}, but the model takes {spec.dtype}; "
            f"convert it with .astype({numpy_dtype(spec.dtype).name!r})"
        )
    return typed


def _read_raw(path: Path, spec: TensorSpec, sizes: Mapping[str, int], budget: ReadBudget) -> np.ndarray:
    """Read values without a header, in native byte order, as trtexec does."""
    if not spec.in_memory or spec.dims is None:
        raise UsageError(f"{path}: raw values of {spec} cannot be read; give a .npy file")
    unknown = sorted(spec.symbols - sizes.keys())
    if unknown:
        raise UsageError(
            f"{path}: raw values have no shape, and the size of {', '.join(unknown)} is not known; "
            f"give --sizes {','.join(f'{quote_name(s)}=SIZE' for s in unknown)}, or a .npy file"
        )
    shape = tuple(dim_value(dim, sizes) or 0 for dim in spec.dims)
    dtype = numpy_dtype(spec.dtype)
    needed, size_bytes = int(np.prod(shape)) * dtype.itemsize, path.stat().st_size
    if needed != size_bytes:
        raise UsageError(
            f"{path}: {size_bytes} bytes of raw values, but {spec.name!r} takes {needed} at "
            f"{sizes_text({s: sizes[s] for s in sorted(spec.symbols)})} ({list(shape)} of {spec.dtype}); "
            "give the sizes that the file was written with, or a .npy file"
        )
    budget.take(needed, str(path))
    return np.frombuffer(path.read_bytes(), dtype).reshape(shape)


def _require_file(path: Path, what: str) -> None:
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no such file"
        raise UsageError(f"{path}: {kind}; give {what}")


def _is_npy(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(_NPY_MAGIC)) == _NPY_MAGIC


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(repr, names)) or "none"
