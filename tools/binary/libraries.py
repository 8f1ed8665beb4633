"""``trtc-bench --libraries``: what engines run with here, and which of it was found where."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from trtc.engines.gpu import survey_gpus
from trtc.engines.shared_libraries import NEEDED, shared_library
from trtc.profiles import HostError
from trtc.tools.output import print_line


def libraries_option(command: click.Command) -> click.Command:
    """Add ``--libraries`` to a command."""
    option = click.option(
        "--libraries", is_flag=True, is_eager=True, expose_value=False, callback=_shown,
        help="Show the libraries that engines run with here, and where they were found.",
    )  # fmt: skip
    added: click.Command = option(command)
    return added


def _shown(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    del param
    if value and not ctx.resilient_parsing:
        for name, text in (
            ("onnxruntime", f"{version('onnxruntime')}, inside"),
            *((module, _found(module)) for module in NEEDED),
            ("tensorrt", "its Python bindings are not inside; its engines take an installation of trtc"),
            ("cuda-core", _cuda_core()),
            ("GPU", _gpus()),
        ):
            print_line(f"{name:14} {text}")
        ctx.exit()


def _found(module: str) -> str:
    """Find the library, and import its bindings, which shows that the two go together."""
    try:
        library = shared_library(module)
        found = import_module(module).__version__
    except (HostError, ImportError) as error:
        return f"its Python bindings are inside; {error}"
    return f"{found}, {'installed' if library is None else f'loaded from {library.path}'}"


def _cuda_core() -> str:
    try:
        return f"{import_module('cuda.core').__version__}, inside"
    except ImportError as error:
        return f"cannot be imported: {error}"


def _gpus() -> str:
    survey = survey_gpus()
    return ", ".join(str(gpu) for gpu in survey.gpus) or survey.reason
