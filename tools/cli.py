"""The ``trtc`` command: one file a verb, imported when it is used."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trtc.profiles import HostError, TrtcError, unknown_name
from trtc.tools.extras import missing_library
from trtc.tools.printable import printable
from trtc.tools.stopping import INTERRUPTED, INTERRUPTED_TEXT, Stops

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBS = {
    "build": "Compile a model into a bundle.",
    "plan": "Find the profiles that serve given traffic best.",
    "run": "Run a bundle.",
    "exec": "Run a program with its sessions recorded, or served by bundles.",
    "bench": "Measure a bundle on this machine.",
    "inspect": "Show what a model takes, or what a bundle holds.",
    "verify": "Compare the engines of a bundle with its model.",
    "compare": "Compare a bundle with a model, a bundle, or saved outputs.",
    "diff": "Say what changed between two bundles, and gate it.",
    "check": "Say what a build would support and refuse.",
    "doctor": "Show what this machine offers.",
}
MODULES = {"bench": "bench_command"}
"""Files of verbs that share their name with a package."""
NOT_YET = frozenset(["serve"])
"""Verbs that other tools have, or that the design names."""
ENVIRONMENT = 4
INTERNAL = 70
"""``EX_SOFTWARE`` of sysexits.h: a fault of ours, not of what the user gave."""
PIPE_CLOSED = 141
"""What shells report for a command that SIGPIPE stopped."""


class PipeClosedError(Exception):
    """The reader of our output went away. Not an OSError, which click would turn into an exit code of its own."""


@contextlib.contextmanager
def closed_pipes_told() -> Iterator[None]:
    """Turn writing into a closed pipe into an error that reaches ``conclude``."""
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosedError from error


class Verbs(click.Group):
    """The group of verbs; listing them imports none of them."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line; ``--help`` and ``--version`` print here."""
        with closed_pipes_told():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        with closed_pipes_told():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs, in the order of a first use."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        del ctx
        if cmd_name not in VERBS:
            return None
        module = MODULES.get(cmd_name, cmd_name)
        command: click.Command = getattr(import_module(f"trtc.tools.{module}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was probably meant."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            if args[0] in NOT_YET:
                raise click.UsageError(f"'trtc {args[0]}' is not there yet; what is: {', '.join(VERBS)}", ctx)
            raise click.UsageError(unknown_name("command", args[0], VERBS), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("trtc"), prog_name="trtc")
def command() -> None:
    """Compile ONNX models ahead of time for the sizes that are really sent, and run the result.

    Exit codes: 0 ok; 1 a check failed (numbers, a digest, a budget); 2 wrong use; 3 model not supported;
    4 the environment does not fit.
    """


def main() -> NoReturn:
    """Run the command; errors of ours become one message and the documented exit code."""
    run_command(command, "trtc")


def run_command(what: click.Command, name: str) -> NoReturn:
    """Run a command under a name, and exit as ``main`` says."""
    if sys.stdout is None:  # refused before work: the next file that is opened would take its place
        sys.exit(conclude(HostError("standard output is closed; give it a place to go, such as >/dev/null")))
    with Stops() as stops:
        try:
            with closed_pipes_told():
                result: Any = what.main(prog_name=name, standalone_mode=False)
            sys.stdout.flush()
            code = result if isinstance(result, int) else 0
            stops.settled = True
        except BaseException as error:  # noqa: BLE001 (a user never sees a traceback that was not asked for)
            # A native module that is being imported turns what a signal raises into an ImportError of its own.
            hidden = stops.raised and isinstance(error, Exception) and not isinstance(error, PipeClosedError)
            code = conclude(stops.raised[0] if hidden else error)
            stops.settled = True
    sys.exit(code)


def conclude(error: BaseException) -> int:
    """Print what ended a command, and return its exit code."""
    if isinstance(error, PipeClosedError | BrokenPipeError):
        # As after `| head`: nothing more can be written, not even by the interpreter when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # the help itself
        return error.exit_code
    if isinstance(error, click.ClickException):
        click.echo(printable(f"trtc: error: {click_text(error)}"), err=True)
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        click.echo(INTERRUPTED_TEXT, err=True)
        return INTERRUPTED
    if os.environ.get("TRTC_DEBUG"):
        traceback.print_exception(error)
    message, code = described(error)
    click.echo(printable(f"trtc: error: {message}"), err=True)
    return code


def click_text(error: click.ClickException) -> str:
    """Write a complaint of click as our own are: one line, with what to do next."""
    text = " ".join(error.format_message().split()).removesuffix(".")
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return text if ctx is None else f"{text}; '{ctx.command_path} --help' shows what it takes"


def described(error: BaseException) -> tuple[str, int]:
    """Say what went wrong, and which exit code that is."""
    if isinstance(error, ImportError) and (missing := missing_library(error)):
        error = missing
    if isinstance(error, TrtcError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"this machine has not enough memory for that{detail}; use smaller sizes", ENVIRONMENT
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}; check the path, its rights and the space that is left", ENVIRONMENT
    detail = (str(error).splitlines() or [""])[0]
    advice = "this is a fault of trtc: run again with TRTC_DEBUG=1 and report what it prints"
    return f"internal: {type(error).__name__}: {detail}; {advice}", INTERNAL


if __name__ == "__main__":
    main()
