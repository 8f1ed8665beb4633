"""Options that ``build`` and ``check`` share, and their way into ``BuildOptions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trtc.profiles.grammar import ShapeOptions, trtexec_options
from trtc.tools.foreign_flags import kebab, without_foreign_flags

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.compiler.options import BuildOptions

F = TypeVar("F", bound="Callable[..., Any]")
_ARGUMENTS = "trtc.arguments"
_TRTEXEC = ("minShapes", "optShapes", "maxShapes", "shapes")


class ArgumentOrder(click.Command):
    """A command that keeps its arguments in the order typed: ``--profile=N`` starts a block."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the arguments, without flags of trtexec that have no effect here, then parse them."""
        kept = without_foreign_flags(args)
        ctx.meta[_ARGUMENTS] = kept
        return super().parse_args(ctx, list(kept))


def shape_options(command: F) -> F:
    """Add the options of all four shape grammars."""
    for option in reversed(
        [
            click.option("--dim", multiple=True, metavar="SYMBOL=RANGE", help="min:opt:max, min..max, min.. or one size."),
            click.option("--bucket", multiple=True, metavar="SYMBOL=MAX,...", help="One profile up to these sizes; repeat."),
            click.option("--buckets", multiple=True, metavar="SYMBOL=A,B,C", help="Profiles for one symbol; several combine."),
            click.option("--shape", multiple=True, metavar="NAME[1..8,3,?]", help="Ranges for each axis of an input."),
            *(
                click.option(*dict.fromkeys([f"--{name}", f"--{kebab(name)}"]), name.lower(), multiple=True, metavar="NAME:1x3x8,...",
                             help=f"As trtexec's --{name}.")
                for name in _TRTEXEC
            ),
            click.option("--profile", multiple=True, metavar="N", help="As trtexec: shapes that follow belong to profile N."),
            *(
                click.option(f"--trt-{kind}-shapes", multiple=True, metavar="NAME:[1,3,8]",
                             help=f"As Polygraphy's --trt-{kind}-shapes.")
                for kind in ("min", "opt", "max")
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def model_options(command: F) -> F:
    """Add everything else that a build can be told."""
    from trtc.tools.defaults import DEFAULTS

    for option in reversed(
        [
            click.option("--pad", "pads", multiple=True, metavar="SYMBOL[:right|:left|:rows]",
                         help="A symbol that may be padded; accepted only if an experiment confirms it."),
            click.option("--fill", "fills", multiple=True, metavar="INPUT=VALUE", help="What padding of an input holds."),
            click.option("--derive", "derives", multiple=True, metavar="INPUT=ones|zeros|positions:SYMBOL",
                         help="An input that callers may leave out."),
            click.option("--accept-padding-error", is_flag=True, help="Build although padding moves answers; recorded."),
            click.option("--target", "targets", multiple=True, default=DEFAULTS.targets, show_default=True,
                         help="What to build for; repeat for several."),
            click.option("--samples", multiple=True, type=click.Path(path_type=Path),
                         help="Real inputs: .npz files, or a folder of them."),
            click.option("--val-range", "val_ranges", multiple=True, metavar="INPUT:[LOW,HIGH]",
                         help="Values that an input takes."),
            click.option("--atol", type=click.FloatRange(0), default=DEFAULTS.atol, show_default=True),
            click.option("--rtol", type=click.FloatRange(0), default=DEFAULTS.rtol, show_default=True),
            click.option("--seed", type=click.IntRange(0), default=DEFAULTS.seed, show_default=True),
            click.option("--mode", type=click.Choice(["auto", "exact", "bucket"]), default=DEFAULTS.mode, show_default=True,
                         help="Run exact sizes, pad to the bucket, or whichever measures faster."),
            click.option("--measure-seconds", "measure_s", type=click.FloatRange(0), default=DEFAULTS.measure_s,
                         show_default=True, help="Time for measuring; 0 measures nothing."),
            click.option("--verify-seconds", "verify_s", type=click.FloatRange(1), default=DEFAULTS.verify_s,
                         show_default=True, help="Time for comparing one engine."),
            click.option("--model-root", type=click.Path(path_type=Path, file_okay=False),
                         help="Folder that external data may lie in."),
            click.option("--threads", type=click.IntRange(0), default=DEFAULTS.threads, show_default=True,
                         help="Threads of the compiler; 0 for all that this process may use."),
            click.option("--no-cache", is_flag=True, help="Neither look in the build cache nor keep the build there."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def options_from(ctx: click.Context, given: dict[str, Any]) -> BuildOptions:
    """Read the options of a command into one frozen value.

    Args:
        ctx: of an ``ArgumentOrder`` command.
        given: its parameters; those of shapes and of the build are taken.
    """
    from trtc.compiler.options import BuildOptions

    shapes = ShapeOptions(
        dim=given["dim"],
        bucket=given["bucket"],
        buckets=given["buckets"],
        shape=given["shape"],
        trtexec=trtexec_options(ctx.meta[_ARGUMENTS]),
        trt_min_shapes=given["trt_min_shapes"],
        trt_opt_shapes=given["trt_opt_shapes"],
        trt_max_shapes=given["trt_max_shapes"],
    )
    names = ("pads", "fills", "derives", "accept_padding_error", "targets", "samples", "val_ranges", "atol", "rtol",
             "seed", "mode", "measure_s", "verify_s", "model_root", "threads")  # fmt: skip
    return BuildOptions(shapes=shapes, use_cache=not given["no_cache"], **{name: given[name] for name in names})
