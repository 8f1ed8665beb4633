"""What a pass returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx


@dataclass(frozen=True, slots=True)
class PassResult:
    """The outcome of one pass.

    A pass owns the model that it is given: it may edit that very object, and returns it.

    Attributes:
        model: the model after the pass.
        changed: whether anything in it is different now.
        notes: what people should know, one sentence each.
    """

    model: onnx.ModelProto
    changed: bool
    notes: tuple[str, ...] = ()


Pass: TypeAlias = "Callable[[onnx.ModelProto], PassResult]"  # noqa: S105 (no password: a pass)
"""``run`` of each pass; it raises ModelError for what it cannot bring into the form."""
