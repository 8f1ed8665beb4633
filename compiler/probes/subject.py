"""What experiments are made on, and with what: the model's signature, its ladder, sources of values, a reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from trtc.compiler.tolerance import Tolerance
from trtc.engines.signature import Signature
from trtc.profiles import TrtcError, UsageError, sizes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

    from trtc.profiles import Ladder, Sizes

Feeds: TypeAlias = "dict[str, Any]"


class Reference(Protocol):
    """What is believed: an independent way to run the model."""

    @property
    def name(self) -> str:
        """Name it in reports."""

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run once; a TrtcError where the model cannot run at these sizes."""


class ValueSource(Protocol):
    """Where input values come from; they respect what the graph bounds, such as indices of a table."""

    def feeds(self, sizes: Sizes, rng: np.random.Generator) -> dict[str, Any]:
        """Make one value for each input at these sizes."""

    def describe(self) -> str:
        """Say in a few words what kind of values these are."""

    @property
    def carries_shape(self) -> tuple[str, ...]:
        """Name the inputs whose values decide shapes; they are never padded."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The model under examination.

    Attributes:
        graph: to see which inputs reach which output.
        signature: with the relations of output axes to symbols.
        ladder: the sizes that will be served.
        values: makes inputs of any sizes.
        samples: real inputs, whole requests.
        limits: lowest and highest legal value by name, for integer inputs that the graph bounds (table indices).
        multiples: by symbol, the number that its sizes must be multiples of; 1 where absent.
    """

    graph: onnx.GraphProto
    signature: Signature
    ladder: Ladder
    values: ValueSource
    samples: tuple[Feeds, ...] = ()
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)

    def describe_values(self) -> str:
        """Say which values experiments run with; samples that other sizes are cut from are named once."""
        made, count = self.values.describe(), len(self.samples)
        real = f"{count} real sample{'s' * (count != 1)}"
        return made if not count or made.startswith(f"{real}, ") else f"{real}; {made}"


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """How much an experiment tries.

    Attributes:
        tolerance: when padded counts as equal to exact.
        seed: of all generated values.
        max_cases: pairs of real and padded sizes that one rule is tried at.
        max_samples: real samples that are tried.
        repeats: experiments for each question beside the main one: zero rows, wider values, garbage.
        float_scales: floats are tried at these multiples of the generated magnitude, in this order.
        garbage_scale: floats in padded parts also hold values this many times larger than the generated ones.
        row_scale: a loud neighbour is this many times larger than a plain row, a quiet one as many times smaller.
        batch_rows: batch sizes that rows are compared at.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    seed: int = 0
    max_cases: int = 16
    max_samples: int = 8
    repeats: int = 4
    float_scales: tuple[float, ...] = (1.0, 1e2, 1e4)
    garbage_scale: float = 1e3
    row_scale: float = 1e3
    batch_rows: tuple[int, ...] = (2, 3, 5, 8)


class Runs:
    """Runs a reference, counts, and remembers what it refused.

    Attributes:
        count: runs that gave a result.
        refused: sizes that could not be run, as text, with the first line of the reason.
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self.count = 0
        self.refused: dict[str, str] = {}

    def attempt(self, feeds: Mapping[str, Any], sizes: Sizes) -> dict[str, Any] | None:
        """Run once; None where the reference refuses, which is remembered."""
        try:
            outputs = self._reference.run(feeds)
        except TrtcError as error:
            self.refused.setdefault(sizes_text(sizes), (str(error).splitlines() or [type(error).__name__])[0][:200])
            return None
        self.count += 1
        return outputs

    def example(self) -> str:
        """Give the first sizes that could not be run, and why; empty when everything ran."""
        return next((f"{sizes}: {reason}" for sizes, reason in self.refused.items()), "")

    def note(self) -> str:
        """Say what could not be run; empty when everything ran."""
        if not self.refused:
            return ""
        return f"sizes that the reference could not run: {len(self.refused)}, such as {self.example()}"


def reduced(signature: Signature, feeds: Mapping[str, Any]) -> Signature:
    """Drop the inputs that a request leaves out, as routes are planned for the inputs it gives."""
    return Signature(tuple(spec for spec in signature.inputs if spec.name in feeds), signature.outputs)


def sizes_of(signature: Signature, feeds: Mapping[str, Any]) -> dict[str, int]:
    """Read the size of each symbol from a request.

    Raises:
        UsageError: when a rank or a static size does not fit, or two axes of one symbol differ.
    """
    found: dict[str, int] = {}
    for spec in signature.inputs:
        if spec.dims is None or spec.name not in feeds or not spec.is_tensor:
            continue
        shape = np.shape(feeds[spec.name])
        if len(shape) != len(spec.dims):
            raise UsageError(f"sample input {spec.name!r}: rank {len(shape)}, the model wants {spec}; give that rank")
        for dim, size in zip(spec.dims, shape, strict=True):
            wanted = found.setdefault(dim, size) if isinstance(dim, str) else dim
            if isinstance(wanted, int) and wanted != size:
                raise UsageError(
                    f"sample input {spec.name!r}: size {size} where {dim}={wanted}; the model wants {spec}"
                )
    return found


def is_number(value: Any) -> bool:
    """Tell whether a value is an array of real numbers or bools whose bounds a domain can hold."""
    return isinstance(value, np.ndarray) and (value.dtype.kind in "biuf" or value.dtype.type.__module__ == "ml_dtypes")


def is_floating(value: Any) -> bool:
    """Tell whether a value is an array of real floating numbers."""
    if not is_number(value) or value.dtype.kind in "biu":
        return False
    return value.dtype.kind == "f" or "float" in value.dtype.name


def largest_finite(dtype: np.dtype[Any]) -> float:
    """Return the largest finite number of a floating type."""
    if dtype.type.__module__ == "ml_dtypes":
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return float(np.finfo(dtype.str).max)


def scaled(value: np.ndarray, factor: float) -> np.ndarray:
    """Multiply floats in double precision; what the type cannot hold becomes its largest number."""
    top = largest_finite(value.dtype)
    return np.asarray(np.clip(value.astype(np.float64) * factor, -top, top).astype(value.dtype))
