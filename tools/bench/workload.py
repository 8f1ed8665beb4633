"""The requests of a measurement: inputs from files, or generated once for each distinct set of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.signature import numpy_dtype
from trtc.profiles import UsageError, dim_value
from trtc.tools.generated import described, generate, value_domains
from trtc.tools.inputs import require_sizes
from trtc.tools.output import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.engines.signature import TensorSpec
    from trtc.tools.bench.sizes import Mix

MAX_WORKLOAD_BYTES = 2 * 2**30
"""Requests are made before the clock starts, so all distinct ones lie in memory together."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests that are measured together.

    Attributes:
        name: for people.
        sizes: of each distinct request.
        feeds: of each distinct request, inputs by name.
        order: indices of requests, in the order in which they are sent.
        generated: what each generated input holds, for people.
    """

    name: str
    sizes: tuple[dict[str, int], ...]
    feeds: tuple[dict[str, Any], ...]
    order: tuple[int, ...]
    generated: dict[str, str]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The inputs of each call, in order; equal requests are the same object."""
        return [self.feeds[i] for i in self.order]


def workload_of(
    mix: Mix, files: Mapping[str, Any], manifest: Manifest, val_ranges: Sequence[str], seed: int
) -> Workload:
    """Make the requests of a mix.

    Args:
        mix: the sizes.
        files: inputs that were given; the others are generated.
        manifest: of the bundle.
        val_ranges: ``--val-range`` texts.
        seed: of generated values.

    Raises:
        UsageError: when a size is missing, no legal value can be made up, or the requests do not fit into memory.
    """
    domains, rng = value_domains(manifest, val_ranges), np.random.default_rng(seed)
    made = {derived.input for derived in manifest.derived}
    wanting = [
        spec
        for spec in manifest.signature.inputs
        if spec.name not in files and spec.used and not spec.has_default and spec.name not in made
    ]
    needed = frozenset[str]().union(*(spec.symbols for spec in wanting))
    size_bytes = 0
    for sizes in mix.sizes:
        require_sizes([s for s in manifest.signature.symbols if s in needed and s not in sizes], manifest)
        size_bytes += sum(_size_bytes(spec, sizes) for spec in wanting)
    if size_bytes > MAX_WORKLOAD_BYTES:
        raise UsageError(
            f"{mix.name}: {len(mix.sizes)} distinct requests are {size_text(size_bytes)} of inputs, at most "
            f"{size_text(MAX_WORKLOAD_BYTES)} are kept; measure fewer or smaller sizes at a time"
        )
    feeds = tuple(
        {**files, **{spec.name: generate(spec, sizes, domains.get(spec.name), rng) for spec in wanting}}
        for sizes in mix.sizes
    )
    texts = {spec.name: described(spec, domains.get(spec.name)) for spec in wanting}
    return Workload(mix.name, mix.sizes, feeds, mix.order, texts)


def _size_bytes(spec: TensorSpec, sizes: Mapping[str, int]) -> int:
    if not spec.is_tensor or spec.dims is None:
        return 0
    shape = [dim_value(dim, sizes) or 0 for dim in spec.dims]
    return int(np.prod(shape, dtype=np.float64)) * numpy_dtype(spec.dtype).itemsize
