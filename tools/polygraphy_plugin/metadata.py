"""What a bundle takes, as Polygraphy describes inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.common import TensorMetadata
from polygraphy.datatype import DataType, DataTypeEntry

from trtc.profiles import HostError

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest
    from trtc.engines.signature import TensorSpec

_OTHERWISE_NAMED = {"float": "float32", "double": "float64"}


def input_metadata(manifest: Manifest) -> TensorMetadata:
    """Describe the inputs of a bundle.

    A symbol stays a name, or is a number where the bundle serves one size only. The smallest and the largest shape
    are those that the ladder serves; Polygraphy generates data of the smallest unless shapes are given. Ranges that
    begin at 0 or have no end give no bound.

    Raises:
        HostError: for an input that Polygraphy has no type for.
    """
    metadata = TensorMetadata()
    for spec in manifest.signature.inputs:
        if spec.has_default:
            continue
        metadata.add(spec.name, _dtype(spec), *_shapes(spec, manifest))
    return metadata


def _dtype(spec: TensorSpec) -> DataTypeEntry:
    name = _OTHERWISE_NAMED.get(spec.dtype, spec.dtype).upper()
    if name not in DataType.__members__:
        raise HostError(f"Polygraphy has no type for input {spec}; run this bundle with `trtc run`")
    return DataType.__members__[name]


def _shapes(
    spec: TensorSpec, manifest: Manifest
) -> tuple[list[int | str | None] | None, list[int] | None, list[int] | None]:
    """Return the shape, its least and its greatest, None where they are not known."""
    if spec.dims is None:
        return None, None, None
    low: list[int | None] = []
    high: list[int | None] = []
    for dim in spec.dims:
        if isinstance(dim, int):
            low.append(dim)
            high.append(dim)
            continue
        ranges = [p.ranges[dim] for p in manifest.ladder.profiles if isinstance(dim, str) and dim in p.ranges]
        tops = [r.max for r in ranges if r.max is not None]
        low.append(min((r.min for r in ranges), default=0) or None)
        high.append(max(tops) if ranges and len(tops) == len(ranges) else None)
    shape = [
        a if a is not None and a == b else str(dim) if dim is not None else None
        for dim, a, b in zip(spec.dims, low, high, strict=True)
    ]
    return shape, _known(low), _known(high)


def _known(sizes: list[int | None]) -> list[int] | None:
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None
