"""The process that builds, and does nothing else: a builder that crashes must not take its caller along."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.build import NodeProblem
from trtc.engines.tensorrt.config import add_profiles, set_options
from trtc.engines.tensorrt.job import BuildJob, BuildOutcome, Failure, Step
from trtc.engines.tensorrt.library import open_library
from trtc.engines.tensorrt.log import error_texts, new_logger
from trtc.engines.tensorrt.network import parse, unlike_tensors
from trtc.profiles import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

_PROFILE_BEGINS = "Timing tactics"
"""The phase that TensorRT begins once for each profile."""


def main() -> None:
    """Read a job from standard input; write steps and then the outcome, one JSON object a line, to standard output.

    The library's own prints go to standard error: standard output belongs to the answers.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def tell(text: str) -> None:
        answers.write(msgspec.json.encode(Step(text)) + b"\n")

    job = msgspec.json.decode(sys.stdin.buffer.read(), type=BuildJob)
    try:
        outcome = build_here(job, tell)
    except HostError as error:
        outcome = BuildOutcome("", Failure("host", (NodeProblem("", "", str(error)),)))
    answers.write(msgspec.json.encode(outcome) + b"\n")


def build_here(job: BuildJob, tell: Callable[[str], None]) -> BuildOutcome:
    """Build one engine in this process and write it to ``job.output``; without profiles only parse.

    Raises:
        HostError: when the library cannot be imported.
    """
    library = open_library(job.library)
    logger = new_logger(library)
    builder = library.Builder(logger)
    network = builder.create_network(0)
    network.name = job.network
    tell("reading the model")
    parser = library.OnnxParser(network, logger)
    unsupported = tuple(name for name in job.operators if not parser.supports_operator(name))
    failure = parse(parser, logger, job.model)
    shape_inputs: tuple[str, ...] = ()
    if failure is None and job.profiles:
        config = builder.create_builder_config()
        monitor = _monitor(library, len(job.profiles), tell)  # The config does not keep it alive.
        config.progress_monitor = monitor
        inputs = [network.get_input(i) for i in range(network.num_inputs)]
        shape_inputs = tuple(tensor.name for tensor in inputs if tensor.is_shape_tensor)
        failure = (
            unlike_tensors(network, job)
            or set_options(library, builder, config, job, logger)
            or add_profiles(builder, network, config, job, logger)
            or _build(builder, network, config, job, logger)
        )
    return BuildOutcome(library.__version__, failure, tuple(logger.lines), shape_inputs, unsupported)


def _build(builder: Any, network: Any, config: Any, job: BuildJob, logger: Any) -> Failure | None:
    before = len(logger.lines)
    blob = builder.build_serialized_network(network, config)
    if blob is None:
        said = error_texts(logger.lines[before:]) or ("the builder gave no engine and no reason",)
        return Failure("build", tuple(NodeProblem("", "", text) for text in said))
    with Path(job.output).open("xb") as file:
        file.write(memoryview(blob))
    return None


def _monitor(library: Any, profiles: int, tell: Callable[[str], None]) -> Any:
    """Return a progress monitor of the library that tells which profile is at work."""

    class Watch(library.IProgressMonitor):  # type: ignore[misc]  # a class of the library, known at run time only
        """Counts profiles; the library calls it from its threads."""

        def __init__(self) -> None:
            library.IProgressMonitor.__init__(self)
            self._begun = 0

        def phase_start(self, name: str, parent: str | None, steps: int) -> None:
            """Note the start of a profile."""
            del parent, steps
            if name == _PROFILE_BEGINS:
                self._begun += 1
                tell(f"profile {min(self._begun, profiles)} of {profiles}")

        def step_complete(self, name: str, step: int) -> bool:
            """Go on."""
            del name, step
            return True

        def phase_finish(self, name: str) -> None:
            """Ignore it."""

    return Watch()
