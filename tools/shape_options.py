"""Options that ``build`` and ``check`` share, and their way into ``BuildOptions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trtc.profiles import UsageError
from trtc.profiles.grammar import ShapeOptions, trtexec_options
from trtc.tools.foreign_flags import kebab, one_value_each, without_foreign_flags
from trtc.tools.quantities import FiniteRange, WholeRange
from trtc.tools.traffic_options import plan_options_from

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtc.compiler.options import BuildOptions

F = TypeVar("F", bound="Callable[..., Any]")
_ARGUMENTS = "trtc.arguments"
_TRTEXEC = ("minShapes", "optShapes", "maxShapes", "shapes")


class ArgumentOrder(click.Command):
    """A command that keeps its arguments in the order typed: ``--profile=N`` starts a block."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the arguments, without flags of trtexec that have no effect here, then parse them."""
        kept = one_value_each(without_foreign_flags(args))
        ctx.meta[_ARGUMENTS] = kept
        return super().parse_args(ctx, list(kept))


def arguments_of(ctx: click.Context) -> list[str]:
    """Return the words that an ``ArgumentOrder`` command was given."""
    found: list[str] = ctx.meta[_ARGUMENTS]
    return found


def shape_options(command: F) -> F:
    """Add the options of all four shape grammars."""
    options = [
        _repeated("--dim", metavar="SYMBOL=RANGE", text="min:opt:max, min..max, min.. or one size."),
        _repeated("--bucket", metavar="SYMBOL=MAX,...", text="One profile up to these sizes; repeat."),
        _repeated("--buckets", metavar="SYMBOL=A,B,C", text="Profiles for one symbol; several combine."),
        _repeated("--shape", metavar="NAME[1..8,3,?]", text="Ranges for each axis of an input."),
        *(
            _repeated(
                *dict.fromkeys([f"--{kebab(name)}", f"--{name}"]), name.lower(), metavar="NAME:1x3x8,...",
                text=f"As trtexec's --{name}.",
            )
            for name in _TRTEXEC
        ),
        _repeated("--profile", metavar="N", text="As trtexec: shapes that follow belong to profile N."),
        *(
            _repeated(
                f"--trt-{kind}-shapes", metavar="NAME:[1,3,8]", text=f"As Polygraphy's --trt-{kind}-shapes."
            )
            for kind in ("min", "opt", "max")
        ),
    ]  # fmt: skip
    return _with(command, options)


def model_options(command: F) -> F:
    """Add everything else that a build can be told."""
    from trtc.compiler.plan_options import MEASURE_S
    from trtc.engines.target import KINDS
    from trtc.tools.builder_options import builder_options
    from trtc.tools.defaults import DEFAULTS

    options = [
        _repeated(
            "--pad", "pads", metavar="SYMBOL[:right|:left|:rows]",
            text="A symbol that may be padded; accepted only if an experiment confirms it.",
        ),
        _repeated("--fill", "fills", metavar="INPUT=VALUE", text="What padding of an input holds."),
        _repeated(
            "--derive", "derives", metavar="INPUT=ones|zeros|positions:SYMBOL",
            text="An input that callers may leave out.",
        ),
        click.option("--accept-padding-error", is_flag=True, help="Build although padding moves answers; recorded."),
        click.option("--target", "targets", multiple=True, default=DEFAULTS.targets, show_default=True,
                     metavar="NAME[:smXX,...]", help=f"What to build for: {', '.join(k.name for k in KINDS)}; "
                     "rtx takes compute capabilities, as in rtx:sm89,sm120. Repeat for several."),
        click.option("--samples", multiple=True, type=click.Path(path_type=Path),
                     help="Real inputs: .npz files, or a folder of them."),
        _repeated("--val-range", "val_ranges", metavar="INPUT:[LOW,HIGH]", text="Values that an input takes."),
        click.option("--atol", type=FiniteRange(0), default=DEFAULTS.atol, show_default=True,
                     help="Absolute tolerance of every comparison."),
        click.option("--rtol", type=FiniteRange(0), default=DEFAULTS.rtol, show_default=True,
                     help="Relative tolerance, of the largest magnitude of an output."),
        click.option("--seed", type=WholeRange(0), default=DEFAULTS.seed, show_default=True,
                     help="Of generated values."),
        click.option("--mode", type=click.Choice(["auto", "exact", "bucket"]), default=DEFAULTS.mode,
                     show_default=True, help="Run exact sizes, pad to the bucket, or whichever measures faster."),
        click.option("--measure-seconds", "measure_s", type=FiniteRange(0),
                     help="Time for measuring; 0 measures nothing.  "
                          f"[default: {DEFAULTS.measure_s:g}; {MEASURE_S:g} with --traffic]"),
        click.option("--callers", type=WholeRange(1), metavar="N",
                     help="How many callers the program has at once; 1 chooses the threads for the fastest lone call.  "
                          "[default: as many as help]"),
        click.option("--verify-seconds", "verify_s", type=FiniteRange(1), default=DEFAULTS.verify_s,
                     show_default=True, help="Time for comparing one engine."),
        click.option("--fuse", type=click.Choice(["none", "close", "all"]), default=DEFAULTS.fuse, show_default=True,
                     help="Rewrite the graph for ONNX Runtime: not, where results stay as close as single operators "
                          "round, or wherever it is faster within the tolerance."),
        click.option("--model-root", type=click.Path(path_type=Path, file_okay=False),
                     help="Folder that external data may lie in."),
        click.option("--threads", type=WholeRange(0), default=DEFAULTS.threads, show_default=True,
                     help="Threads of the compiler; 0 for all that this process may use."),
        *builder_options(),
        click.option("--no-cache", is_flag=True, help="Neither look in the build cache nor keep the build there."),
    ]  # fmt: skip
    return _with(command, options)


def _repeated(*names: str, metavar: str, text: str) -> Any:
    """An option that may stand several times."""
    return click.option(*names, multiple=True, metavar=metavar, help=text)


def _with(command: F, options: Sequence[Any]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def options_from(ctx: click.Context, given: dict[str, Any]) -> BuildOptions:
    """Read the options of a command into one frozen value.

    Args:
        ctx: of an ``ArgumentOrder`` command.
        given: its parameters; those of shapes and of the build are taken.

    Raises:
        UsageError: for options that make no sense together.
    """
    from trtc.compiler.options import BuildOptions
    from trtc.compiler.plan_options import MEASURE_S
    from trtc.tools.builder_options import builder_from

    plan = plan_options_from(given)
    if given["measure_s"] is None:
        given["measure_s"] = MEASURE_S if plan.traffic else BuildOptions().measure_s
    if given["mode"] == "bucket" and not given["pads"] and given.get("plan_file") is None:
        raise UsageError(
            "--mode bucket needs --pad SYMBOL (and --fill INPUT=VALUE for its inputs): without it nothing may be "
            "padded; add it, or leave --mode out"
        )

    shapes = ShapeOptions(
        dim=given["dim"],
        bucket=given["bucket"],
        buckets=given["buckets"],
        shape=given["shape"],
        trtexec=trtexec_options(arguments_of(ctx)),
        trt_min_shapes=given["trt_min_shapes"],
        trt_opt_shapes=given["trt_opt_shapes"],
        trt_max_shapes=given["trt_max_shapes"],
    )
    names = ("pads", "fills", "derives", "accept_padding_error", "targets", "samples", "val_ranges", "atol", "rtol",
             "seed", "mode", "measure_s", "verify_s", "model_root", "threads", "fuse")  # fmt: skip
    taken = {name: given[name] for name in names} | {"callers": given["callers"] or 0}
    return BuildOptions(shapes=shapes, use_cache=not given["no_cache"], plan=plan, builder=builder_from(given), **taken)
