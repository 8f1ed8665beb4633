"""From signature and ladder to plain values: the shapes of each input at min, opt and max. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.tensorrt.job import Bounds, ProfileJob, TensorFact
from trtc.profiles import ProfileError, dim_value
from trtc.profiles.grammar import require_closed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.build import EngineRequest
    from trtc.engines.signature import TensorSpec
    from trtc.profiles import Profile


def profile_jobs(request: EngineRequest) -> tuple[ProfileJob, ...]:
    """Return one optimization profile for each profile of the ladder, in its order.

    Inputs that no node reads are left out.

    Raises:
        ProfileError: for a symbol without an upper end, or with sizes that one profile cannot bound.
    """
    profiles, target = request.ladder.profiles, request.target.text
    require_closed(profiles, target)
    specs = [spec for spec in request.signature.inputs if spec.used]
    return tuple(
        ProfileJob(
            profile.name,
            {spec.name: _bounds(spec, profile, target) for spec in specs},
            {name: Bounds(v.low, v.likely, v.high) for name, v in values.items()},
        )
        for profile, values in zip(profiles, request.shape_values or [{}] * len(profiles), strict=True)
    )


def tensor_facts(specs: Sequence[TensorSpec]) -> tuple[TensorFact, ...]:
    """Return what the library has to see of inputs that are read, or of outputs."""
    return tuple(
        TensorFact(
            spec.name,
            spec.dtype,
            None if spec.dims is None else tuple(dim if isinstance(dim, int) else -1 for dim in spec.dims),
        )
        for spec in specs
        if spec.used
    )


def _bounds(spec: TensorSpec, profile: Profile, target: str) -> Bounds:
    if spec.dims is None:
        raise ProfileError(
            f"target {target} needs the rank of input {spec.name!r}, which the model does not say; "
            "export it with a shape, or build for --target cpu"
        )
    ranges = profile.ranges
    lows = {symbol: r.min for symbol, r in ranges.items()}
    opts = {symbol: r.opt for symbol, r in ranges.items() if r.opt is not None}
    highs = {symbol: r.max for symbol, r in ranges.items() if r.max is not None}
    return Bounds(*(tuple(dim_value(dim, sizes) or 0 for dim in spec.dims) for sizes in (lows, opts, highs)))
