"""What the standalone binary runs: ``trtc bench``, under the name ``trtc-bench``."""

from __future__ import annotations

from importlib.metadata import version
from typing import NoReturn

import click

from trtc.tools.bench_command import bench
from trtc.tools.cli import run_command

NAME = "trtc-bench"


def main() -> NoReturn:
    """Run the command; exit codes are those of ``trtc``."""
    run_command(click.version_option(version("trtc"), prog_name=NAME)(bench), NAME)


if __name__ == "__main__":
    main()
