"""What ``--target`` says: a kind of target, and what it is built for, such as ``rtx:sm89,sm120``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtc.profiles import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable

RTX_CAPABILITIES = ("sm75", "sm80", "sm86", "sm89", "sm120", "sm121")
"""Compute capabilities that TensorRT for RTX 1.7 builds kernels for (its ``ComputeCapability``)."""


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A word that ``--target`` takes.

    Attributes:
        name: the word.
        backend: name of the backend that builds and runs it.
        needs_ranges: it refuses open maxima.
        capabilities: compute capabilities that may follow the word; empty where none may.
        options: of the backend, that the word stands for.
    """

    name: str
    backend: str
    needs_ranges: bool = False
    capabilities: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)


KINDS = (
    TargetKind("cpu", "onnxruntime"),
    TargetKind("cuda", "onnxruntime", options={"provider": "cuda"}),
    TargetKind("ort-tensorrt", "onnxruntime", needs_ranges=True, options={"provider": "tensorrt"}),
    TargetKind("tensorrt", "tensorrt", needs_ranges=True),
    TargetKind("rtx", "tensorrt_rtx", needs_ranges=True, capabilities=RTX_CAPABILITIES),
    TargetKind("null", "null", needs_ranges=True),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What one engine is built for.

    Attributes:
        kind: the word, such as ``rtx``.
        backend: name of the backend that builds and runs it.
        compute_capabilities: such as ``sm89``, ascending; empty for what the library takes by itself.
        needs_ranges: it refuses open maxima.
        options: of the backend, such as the execution provider of ONNX Runtime.
    """

    kind: str
    backend: str
    compute_capabilities: tuple[str, ...] = ()
    needs_ranges: bool = False
    options: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The one spelling of this target, whatever the order in which it was typed."""
        return f"{self.kind}:{','.join(self.compute_capabilities)}" if self.compute_capabilities else self.kind

    @property
    def name(self) -> str:
        """Name of the engine in a bundle: the target's one spelling."""
        return self.text


def parse_target(text: str) -> Target:
    """Read one ``--target``.

    Args:
        text: a word, and for ``rtx`` the compute capabilities behind a colon.

    Raises:
        UsageError: for an unknown word, and for capabilities that are unknown, repeated, or have no meaning there.
    """
    word, colon, rest = text.partition(":")
    kind = next((k for k in KINDS if k.name == word), None)
    if kind is None:
        raise UsageError(unknown_name("target", word, [k.name for k in KINDS]))
    capabilities = _capabilities(kind, text, rest) if colon else ()
    return Target(kind.name, kind.backend, capabilities, kind.needs_ranges, dict(kind.options))


def parse_targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Read every ``--target``, in order.

    Raises:
        UsageError: as ``parse_target``, and for a target that is named twice.
    """
    found: dict[str, Target] = {}
    for text in texts:
        target = parse_target(text)
        if target.name in found:
            raise UsageError(f"target {target.name} was given twice; name each target once")
        found[target.name] = target
    return tuple(found.values())


def _capabilities(kind: TargetKind, text: str, rest: str) -> tuple[str, ...]:
    if not kind.capabilities:
        why = (
            "TensorRT builds for the GPU of the machine that builds"
            if kind.name == "tensorrt"
            else "it is not built for compute capabilities"
        )
        raise UsageError(f"target {text!r}: {why}; write --target {kind.name}")
    allowed = ", ".join(kind.capabilities)
    names = rest.split(",")
    for name in names:
        if name not in kind.capabilities:
            near = re.sub(r"[^0-9]", "", name)
            hint = f"; did you mean 'sm{near}'" if f"sm{near}" in kind.capabilities else ""
            raise UsageError(
                f"target {text!r}: unknown compute capability {name!r}{hint}; "
                f"{kind.name} is built for {allowed}, such as --target {kind.name}:{kind.capabilities[-3]}"
            )
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"target {text!r}: {', '.join(repeated)} stands there twice; name each capability once")
    return tuple(sorted(names, key=kind.capabilities.index))
