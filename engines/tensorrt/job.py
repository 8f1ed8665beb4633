"""One build as plain values: what goes to the process that builds, and what comes back."""

from __future__ import annotations

import msgspec

from trtc.engines.build import NodeProblem


class Bounds(msgspec.Struct, frozen=True):
    """Sizes of the axes of one input, or values of its elements: smallest, tuned for, largest."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


class ProfileJob(msgspec.Struct, frozen=True):
    """One optimization profile.

    Attributes:
        name: in the ladder.
        shapes: of every input that the graph reads.
        values: of integer inputs that may decide shapes, flat.
    """

    name: str
    shapes: dict[str, Bounds]
    values: dict[str, Bounds] = {}


class TensorFact(msgspec.Struct, frozen=True):
    """One input or output: dtype as ONNX writes it, -1 for sizes that vary, None where even the rank is unknown."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None


class BuildJob(msgspec.Struct, frozen=True):
    """One engine to build.

    Attributes:
        library: import name of the library.
        model: path of the ``.onnx`` file.
        inputs, outputs: as the model's signature has them; the library must see the same.
        profiles: in the order of the ladder; none only looks whether the library reads the model.
        output: path of the engine to write.
        network: name that the engine is given.
        compute_capabilities: such as ``sm89``; empty for the library's own choice.
        threads: that the builder may use.
        workspace_bytes, optimization_level, version_compatible, hardware_compatibility, tf32, timing_cache: as
            ``BuilderOptions``.
        operators: to ask the parser about, one by one.
    """

    library: str
    model: str
    inputs: tuple[TensorFact, ...] = ()
    outputs: tuple[TensorFact, ...] = ()
    profiles: tuple[ProfileJob, ...] = ()
    output: str = ""
    network: str = "trtc"
    compute_capabilities: tuple[str, ...] = ()
    threads: int = 1
    workspace_bytes: int | None = None
    optimization_level: int | None = None
    version_compatible: bool = False
    hardware_compatibility: str = "none"
    tf32: bool = False
    timing_cache: str = ""
    operators: tuple[str, ...] = ()


class LogLine(msgspec.Struct, frozen=True):
    """One message of the library: ``INTERNAL_ERROR``, ``ERROR``, ``WARNING``, ``INFO`` or ``VERBOSE``."""

    severity: str
    text: str


class Failure(msgspec.Struct, frozen=True):
    """Why a build ended: ``stage`` is ``host``, ``parse``, ``tensors``, ``options``, ``profiles`` or ``build``."""

    stage: str
    problems: tuple[NodeProblem, ...]


class BuildOutcome(msgspec.Struct, frozen=True, tag=True):
    """What a build gave.

    Attributes:
        version: of the library, with its build number.
        failure: why there is no engine; None when there is one, or when none was asked for.
        log: messages of the library, those for information included.
        shape_inputs: inputs whose values decide shapes.
        unsupported: operators, of those asked about, that the parser does not know.
    """

    version: str
    failure: Failure | None = None
    log: tuple[LogLine, ...] = ()
    shape_inputs: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, tag=True):
    """What the builder is at: shown while it runs, and named if it crashes."""

    step: str
