"""What a build was asked for. Each default is written here, once; the command reads it from these classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import Literal, Protocol, TypeAlias

from trtc.compiler.plan_options import PlanOptions
from trtc.engines.build import Fuse  # noqa: TC001 (a field of a frozen value)
from trtc.engines.builder_options import BuilderOptions
from trtc.profiles import UsageError
from trtc.profiles.grammar import ShapeOptions

WantedMode: TypeAlias = Literal["auto", "exact", "bucket"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Everything that a caller declares; the build cache is keyed by it.

    Attributes:
        shapes: ranges and buckets, in any of the shape grammars.
        pads: ``--pad`` texts.
        fills: ``--fill`` texts.
        derives: ``--derive`` texts.
        accept_padding_error: build although padding moves answers; the evidence records by how much.
        targets: what to build for, in order of preference.
        samples: .npz files, or folders of them, with real inputs.
        val_ranges: ``--val-range`` texts: lowest and highest value of an input.
        atol: absolute part of the tolerance.
        rtol: relative part, of the largest magnitude of the reference's output.
        seed: of every generated value.
        mode: run at exact sizes, padded to the bucket, or what measures faster.
        measure_s: seconds for measuring; 0 measures nothing (exact sizes, one call at a time on all processors).
        callers: that the program has at once: ways to run more calls at once are not tried; 0 for as many as help.
        verify_s: seconds for comparing one engine.
        model_root: folder that external data may lie in; None for the model's own.
        use_cache: look in the build cache, and keep the build there.
        threads: that the compiler may use; 0 for all that this process is allowed.
        builder: of engines that TensorRT builds.
        plan: traffic that the ladder is planned for, or a plan file.
        fuse: how far backends may rewrite a graph before their library does.

    Raises:
        UsageError: for fewer callers than 0.
    """

    shapes: ShapeOptions = field(default_factory=ShapeOptions)
    pads: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    derives: tuple[str, ...] = ()
    accept_padding_error: bool = False
    targets: tuple[str, ...] = ("cpu",)
    samples: tuple[Path, ...] = ()
    val_ranges: tuple[str, ...] = ()
    atol: float = 1e-5
    rtol: float = 1e-4
    seed: int = 0
    mode: WantedMode = "auto"
    measure_s: float = 3.0
    callers: int = 0
    verify_s: float = 60.0
    model_root: Path | None = None
    use_cache: bool = True
    threads: int = 0
    builder: BuilderOptions = field(default_factory=BuilderOptions)
    plan: PlanOptions = field(default_factory=PlanOptions)
    fuse: Fuse = "close"

    def __post_init__(self) -> None:
        if self.callers < 0:
            raise UsageError(f"callers={self.callers}; give 1 or more, or 0 for as many as help")


class Progress(Protocol):
    """Told what a build is doing."""

    def stage(self, text: str) -> None:
        """Begin a stage."""

    def detail(self, text: str) -> None:
        """Say how far the stage is."""

    def ahead(self, seconds: float) -> None:
        """Say how long the stage will take from now on, about."""

    def note(self, text: str) -> None:
        """Say something worth knowing."""

    def expect(self, seconds: float | None, *, same: bool = True) -> None:
        """Say how long the last build took, when known: the ``same``, or one of this model with other options."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every stage of a build is given.

    Attributes:
        options: everything declared.
        folder: private to this build, removed when it is over.
        threads: that this process may use.
        progress: told what is going on.
    """

    options: BuildOptions
    folder: Path
    threads: int
    progress: Progress


class Recorded:
    """Progress that is passed on, and whose notes are kept.

    Attributes:
        notes: in the order in which they came.
    """

    def __init__(self, watcher: Progress) -> None:
        self.notes: list[str] = []
        self._watcher = watcher

    def stage(self, text: str) -> None:
        """Begin a stage."""
        self._watcher.stage(text)

    def detail(self, text: str) -> None:
        """Pass it on."""
        self._watcher.detail(text)

    def ahead(self, seconds: float) -> None:
        """Pass it on."""
        self._watcher.ahead(seconds)

    def note(self, text: str) -> None:
        """Keep a note, and pass it on."""
        self.notes.append(text)
        self._watcher.note(text)

    def expect(self, seconds: float | None, *, same: bool = True) -> None:
        """Pass it on."""
        self._watcher.expect(seconds, same=same)


class Silent:
    """Progress that nobody watches."""

    def stage(self, text: str) -> None:
        """Ignore it."""

    def detail(self, text: str) -> None:
        """Ignore it."""

    def ahead(self, seconds: float) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def expect(self, seconds: float | None, *, same: bool = True) -> None:
        """Ignore it."""
