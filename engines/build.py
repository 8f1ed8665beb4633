"""What a backend's ``build.py`` takes and gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING, Literal

from trtc.engines.builder_options import BuilderOptions
from trtc.engines.manifest import Requirements  # noqa: TC001
from trtc.engines.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtc.engines.signature import Signature
    from trtc.profiles import Ladder

Fuse = Literal["none", "close", "all"]
"""How far a graph may be rewritten: not at all, where rounding stays in single operators, wherever it is faster."""

CPU = Target("cpu", "onnxruntime")
DEFAULTS = BuilderOptions()


def unheard(text: str) -> None:
    """Take what a builder tells, where nobody listens."""
    del text


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """Values of one input, flat: the lowest of each element, likely ones, the highest."""

    low: tuple[int, ...]
    likely: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a backend goes for speed. Less rounds more like the model as it is written.

    Attributes:
        fuse: how far it may rewrite the graph before its library does, where it can.
        layout: its library may choose layouts of its own for tensors, such as blocks of channels.
        left_out: what this leaves out that another effort had, for people; empty for nothing.
    """

    fuse: Fuse = "close"
    layout: bool = True
    left_out: str = ""


FULL_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One engine to build.

    Attributes:
        model_path: the canonical model; its external data lies beside it.
        folder: an empty private folder for what is built.
        signature: inputs and outputs with their relations.
        ladder: the profiles that the engine must serve.
        threads: that the builder may use.
        options: of the backend, by name.
        target: what it is built for.
        builder: what the builder was told, for backends that have one.
        shape_values: for each profile, bounds of the inputs whose values may decide shapes, where they are known.
        tell: told how far the builder is, such as ``profile 3 of 8``.
        effort: how far the backend may go for speed.
    """

    model_path: Path
    folder: Path
    signature: Signature
    ladder: Ladder
    threads: int = 1
    options: dict[str, str] = field(default_factory=dict)
    target: Target = CPU
    builder: BuilderOptions = DEFAULTS
    shape_values: tuple[dict[str, ValueBounds], ...] = ()
    tell: Callable[[str], None] = unheard
    effort: Effort = FULL_EFFORT


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """Why one node, input or output of a model cannot be built for a target.

    Attributes:
        node: its name; empty where the problem is not one node's.
        operator: such as ``NonZero``; ``input 'x'`` for a tensor of the model.
        message: the library's own words, or ours where it has none.
    """

    node: str
    operator: str
    message: str

    def __str__(self) -> str:
        where = self.operator
        if self.node:
            where = f"node {self.node!r}" + (f" ({self.operator})" if self.operator else "")
        return f"{where}: {self.message}" if where else self.message


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """What a backend built.

    Attributes:
        entry: bundle path of the file that the backend opens; empty when it needs none.
        files: bundle path to the built file, which has the same name and can be opened where it lies. Bundle paths
            are ``blobs/<sha256><suffix>``.
        requirements: what a host must have.
        precision: such as ``float32``.
        options: what was in force, for the manifest.
        scratch_bytes: memory that the library needs beside the slot, by profile, where it could tell without running.
        notes: what a person should know.
        plugins: bundle paths of those files that are libraries of plug-ins, in the order to load them.
        less: what to ask for where this engine gives other answers than the model; None where nothing can be left out.
    """

    entry: str
    files: dict[str, Path]
    requirements: Requirements
    precision: str
    options: dict[str, str] = field(default_factory=dict)
    scratch_bytes: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    less: Effort | None = None
