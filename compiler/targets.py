"""What the targets of a build refuse by themselves, asked before anything slow begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets
from trtc.profiles import HostError, ModelError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Setting
    from trtc.engines.build import NodeProblem
    from trtc.engines.target import Target

BUILDERS = ("tensorrt", "tensorrt_rtx")
"""Backends whose builder takes ``BuilderOptions`` and can be asked what it would refuse."""
_MOST_SHOWN = 5


def refuse_options(options: BuildOptions) -> None:
    """Refuse options of a builder that a target does not have.

    Raises:
        UsageError: it says why, and what to do instead.
        HostError: when the library of a target is missing.
    """
    targets = parse_targets(options.targets)
    builders = [target for target in targets if target.backend in BUILDERS]
    if options.builder.given and not builders:
        raise UsageError(
            f"{', '.join(options.builder.given)}: only TensorRT's builder has it, and the targets are "
            f"{', '.join(target.text for target in targets)}; leave it out, or add --target rtx or --target tensorrt"
        )
    for target in builders:
        backend = backend_named(target.backend)
        if not backend.installed:
            raise HostError(f"target {target.text}: {backend.needs} is not installed; {backend.install}")
        backend.build_module().refuse_options(target, options.builder)


def problems_of(model: Model, target: Target, folder: Path) -> tuple[NodeProblem, ...]:
    """Return what a target's builder would refuse about a model, node by node, without building anything.

    Args:
        model: to look at.
        target: to build for.
        folder: private; written to.

    Raises:
        EngineError: when the library crashes over the model.
    """
    if target.backend not in BUILDERS or not backend_named(target.backend).installed:
        return ()
    found: tuple[NodeProblem, ...] = backend_named(target.backend).build_module().examine(model.path, target, folder)
    return found


def problems_text(problems: tuple[NodeProblem, ...]) -> str:
    """Say what a target does not build, for one error."""
    shown = "; ".join(str(problem) for problem in problems[:_MOST_SHOWN])
    more = len(problems) - _MOST_SHOWN
    rest = f"; and {more} more, which trtc check lists" if more > 0 else ""
    return f"it cannot build this model: {shown}{rest}; build it for the CPU with --target cpu, or change those nodes"


def refuse_model(model: Model, setting: Setting) -> None:
    """Refuse a model that a target cannot build before it is analysed, which takes longer.

    Raises:
        ModelError: it names the nodes and offers the CPU.
    """
    for target in parse_targets(setting.options.targets):
        if target.backend in BUILDERS:
            setting.progress.stage(f"asking whether target {target.text} can be built")
            if problems := problems_of(model, target, setting.folder):
                raise ModelError(f"target {target.text}: {problems_text(problems)}")
