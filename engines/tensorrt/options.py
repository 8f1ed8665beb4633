"""Which of the builder's options a library has. What it would pass over, or could not show to work, is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.tensorrt.library import RTX
from trtc.profiles import UsageError

if TYPE_CHECKING:
    from trtc.engines.builder_options import BuilderOptions
    from trtc.engines.target import Target

_RTX_LACKS = {
    "version_compatible": (
        "TensorRT for RTX has no lean runtime: its engines run with the version that built them; leave it out"
    ),
    "hardware_compatibility": (
        "TensorRT for RTX does not have it (its builder only warns); name the GPUs instead, "
        "such as --target rtx:sm86,sm89,sm120"
    ),
    "timing_cache": "TensorRT for RTX measures nothing while it builds, so it has no timing cache; leave it out",
}
_STRIPPED = (
    "engines without weights are not built: they would have to be refitted at load, which could not be shown to work "
    "with several profiles (TensorRT for RTX builds them only beside a GPU); leave it out"
)


def refuse_options(target: Target, options: BuilderOptions) -> None:
    """Refuse options that a target does not have, before anything is built.

    Raises:
        UsageError: it says why, and what to do instead.
    """
    if options.strip_weights:
        raise UsageError(f"--strip-weights: {_STRIPPED}")
    if target.backend == RTX:
        for name, why in _RTX_LACKS.items():
            if getattr(options, name) not in (None, False, "none"):
                raise UsageError(f"--{name.replace('_', '-')} with target {target.text}: {why}")
