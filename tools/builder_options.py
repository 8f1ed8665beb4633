"""Options of TensorRT's builder, in our spelling and in trtexec's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.engines.builder_options import BuilderOptions
from trtc.profiles import UsageError
from trtc.tools.quantities import MemorySize, WholeRange

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = {
    "none": "none",
    "ampere+": "ampere+",
    "amperePlus": "ampere+",
    "same-compute-capability": "same-compute-capability",
    "sameComputeCapability": "same-compute-capability",
}
DEFAULTS = BuilderOptions()
_POOL = re.compile(r"([A-Za-z]+):(.+)")


class Pools(click.ParamType[int]):
    """trtexec's ``--memPoolSize=workspace:4096``; the other pools belong to hardware that trtc has no target for."""

    name = "pool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the workspace's size in bytes."""
        if isinstance(value, int):
            return value
        found = _POOL.fullmatch(str(value))
        if found is None or found[1] != "workspace":
            self.fail(f"{value!r}: trtc sets the workspace only, such as workspace:4096 (MiB)", param, ctx)
        size: int = MemorySize().convert(found[2], param, ctx)
        return size


def builder_options() -> Sequence[Any]:
    """Return the options, for click."""
    return [
        click.option("--workspace", type=MemorySize(), metavar="SIZE",
                     help="TensorRT: most scratch memory of one layer, such as 512M or 2G."),
        click.option("--memPoolSize", "--mem-pool-size", "pool", type=Pools(), metavar="workspace:MIB",
                     help="As trtexec's."),
        click.option("--optimization-level", "--builderOptimizationLevel", "--builder-optimization-level",
                     "optimization_level", type=WholeRange(0, 5),
                     help="TensorRT: 0 builds fast, 5 searches long; its own default is 3."),
        click.option("--version-compatible", "--versionCompatible", "--vc", "version_compatible", is_flag=True,
                     help="TensorRT: use only what its lean runtime can run."),
        click.option("--runtime", "--useRuntime", "--use-runtime", "runtime", type=click.Choice(["full", "lean"]),
                     default=DEFAULTS.runtime, show_default=True,
                     help="TensorRT: library that runs the engine; lean is the small one, with --version-compatible."),
        click.option("--plugin", "--plugins", "--staticPlugins", "--static-plugins", "--dynamicPlugins",
                     "--dynamic-plugins", "plugins", multiple=True, type=click.Path(path_type=Path),
                     metavar="FILE.so", help="TensorRT: library of plug-ins; it travels in the bundle. Repeat."),
        click.option("--hardware-compatibility", "--hardwareCompatibilityLevel", "--hardware-compatibility-level",
                     "hardware_compatibility", type=click.Choice(list(_LEVELS)), default="none", show_default=True,
                     help="TensorRT: run on other GPUs than the one that builds."),
        click.option("--strip-weights", "--stripWeights", "strip_weights", is_flag=True, hidden=True),
        click.option("--tf32", is_flag=True, help="TensorRT: let float32 products keep 10 bits of mantissa."),
        click.option("--timing-cache", "--timingCacheFile", "--timing-cache-file", "timing_cache",
                     type=click.Path(path_type=Path, dir_okay=False),
                     help="TensorRT: file of measured kernels; read, never written."),
    ]  # fmt: skip


def builder_from(given: dict[str, Any]) -> BuilderOptions:
    """Read the options of a command into one frozen value.

    Raises:
        UsageError: for a workspace that is given twice.
    """
    if given["workspace"] is not None and given["pool"] is not None:
        raise UsageError("--workspace and --memPoolSize are one option in two spellings; give one of them")
    return BuilderOptions(
        workspace_bytes=given["workspace"] if given["pool"] is None else given["pool"],
        optimization_level=given["optimization_level"],
        version_compatible=given["version_compatible"],
        hardware_compatibility=_LEVELS[given["hardware_compatibility"]],  # type: ignore[arg-type]  # one of the literals
        strip_weights=given["strip_weights"],
        tf32=given["tf32"],
        timing_cache=given["timing_cache"],
        runtime=given["runtime"],
        plugins=given["plugins"],
    )
