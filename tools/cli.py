"""The ``trtc`` command: one file a verb, imported when it is used."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import version

import click

from trtc.profiles import TrtcError

VERBS = ("build", "run", "inspect", "verify", "check", "doctor")
INTERRUPTED = 130
"""What shells use for a command that was stopped by SIGINT."""


class Verbs(click.Group):
    """The group of verbs; listing them imports none of the compiler's libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs, in the order of a first use."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        del ctx
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"trtc.tools.{cmd_name}"), cmd_name)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("trtc"), prog_name="trtc")
def command() -> None:
    """Compile ONNX models ahead of time for the sizes that are really sent, and run the result.

    Exit codes: 0 ok; 1 a check failed (numbers, a digest, a budget); 2 wrong use; 3 model not supported;
    4 the environment does not fit.
    """


def main() -> None:
    """Run the command; errors of ours become one message and the documented exit code."""
    try:
        command.main(prog_name="trtc", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("trtc: interrupted; nothing half-written was left", err=True)
        sys.exit(INTERRUPTED)
    except TrtcError as error:
        _debug()
        click.echo(f"trtc: error: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError as error:
        _debug()
        click.echo(f"trtc: error: this machine has not enough memory for that ({error}); use smaller sizes", err=True)
        sys.exit(4)
    except OSError as error:
        _debug()
        click.echo(f"trtc: error: {error.filename or ''}: {error.strerror or error}; check the path and its rights", err=True)
        sys.exit(4)


def _debug() -> None:
    """Print the traceback when the user asked for it."""
    if os.environ.get("TRTC_DEBUG"):
        traceback.print_exc()


if __name__ == "__main__":
    main()
