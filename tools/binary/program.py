"""What the standalone binary runs: ``trtc bench``, under the name ``trtc-bench``."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import click

from trtc.tools.bench_command import bench
from trtc.tools.binary.later import Later
from trtc.tools.binary.libraries import libraries_option
from trtc.tools.cli import run_command

NAME = "trtc-bench"


def main() -> NoReturn:
    """Run the command; exit codes are those of ``trtc``."""
    if unpacked := getattr(sys, "_MEIPASS", None):  # where the program unpacked itself
        Later(Path(unpacked)).install()
    run_command(libraries_option(click.version_option(version("trtc"), prog_name=NAME)(bench)), NAME)


if __name__ == "__main__":
    main()
