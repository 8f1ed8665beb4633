"""Values for inputs that nobody gave: inside what experiments of the build ran with, small where nothing is known."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtc.engines.signature import numpy_dtype
from trtc.profiles import TrtcError, UsageError, dim_value, unknown_name
from trtc.profiles.grammar import val_ranges
from trtc.runtime.guards import guards_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.engines.manifest import Manifest
    from trtc.engines.signature import TensorSpec

_WORDS = ("", "a", "two words", "0")
_SEQUENCE = re.compile(r"seq\(tensor\((\w+)\)\)\Z")


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one input.

    Attributes:
        low, high: both ends included.
        nonzero_rows: no row (last axis) is all zero.
        reason: for people.
    """

    low: float
    high: float
    nonzero_rows: bool
    reason: str


def value_domains(manifest: Manifest, given: Sequence[str]) -> dict[str, Domain]:
    """Find the values that generated inputs may take.

    The user's own ranges come first, then those that the bundle was built with, then what padding was proved for.

    Args:
        manifest: of the bundle.
        given: ``--val-range`` texts of this run.

    Raises:
        UsageError: for texts that do not follow the grammar, or name no input.
    """
    domains = {
        name: Domain(
            guard.low, guard.high, guard.rows_nonzero, f"{guard.low:g}..{guard.high:g} (as proved for padding)"
        )
        for name, guard in guards_of(manifest).items()
    }
    for name, (low, high) in val_ranges(recorded_val_ranges(manifest)).items():
        domains[name] = Domain(low, high, nonzero_rows=False, reason=f"{low:g}..{high:g} (as built with)")
    names = [spec.name for spec in manifest.signature.inputs]
    for name, (low, high) in val_ranges(given).items():
        if name not in names:
            raise UsageError(f"--val-range: {unknown_name('input', name, names)}")
        domains[name] = Domain(low, high, nonzero_rows=False, reason=f"{low:g}..{high:g} (as given)")
    return domains


def generate(spec: TensorSpec, sizes: Mapping[str, int], domain: Domain | None, rng: np.random.Generator) -> Any:
    """Make a value for one input.

    Args:
        spec: the input.
        sizes: of every symbol that it carries, in elements.
        domain: what its values may be; None where nothing is known.
        rng: the only source of randomness.

    Raises:
        UsageError: when no legal value can be made up; it says how to give one.
    """
    found = _SEQUENCE.match(spec.dtype)
    if found is not None:
        return [np.zeros(2, numpy_dtype(found[1])) for _ in range(2)]
    if not spec.is_tensor or spec.dims is None or None in spec.dims:
        raise UsageError(
            f"no value can be made up for input {spec}; give it with --input, or call the library for what is no tensor"
        )
    shape = tuple(int(dim_value(dim, sizes) or 0) for dim in spec.dims)
    dtype = numpy_dtype(spec.dtype)
    if dtype.kind == "O":
        return rng.choice(np.array(_WORDS, object), shape)
    if dtype.kind in "biu" or "int" in spec.dtype:
        return _integers(shape, dtype, domain, rng)
    return _floats(shape, dtype, domain, rng)


def described(spec: TensorSpec, domain: Domain | None) -> str:
    """Say which values an input was given."""
    if spec.dtype == "string":
        return "short words"
    whole = "int" in spec.dtype or spec.dtype == "bool"
    if domain is None:
        return "0 and 1" if whole else "unit normal"
    return domain.reason if whole or _beside_usual(domain) else f"unit normal inside {domain.reason}"


def _integers(
    shape: tuple[int, ...], dtype: np.dtype[Any], domain: Domain | None, rng: np.random.Generator
) -> np.ndarray:
    # 0 and 1 lie inside every table and every kind of mask; the build knows better where it looked.
    low, high = (int(domain.low), int(domain.high)) if domain is not None else (0, 1)
    values = np.asarray(rng.integers(low, high, shape, endpoint=True))
    if (domain is None or domain.nonzero_rows) and values.ndim and values.size:
        empty = ~values.any(axis=-1)
        values[empty, ...] = high or low
    return values.astype(dtype)


def _floats(
    shape: tuple[int, ...], dtype: np.dtype[Any], domain: Domain | None, rng: np.random.Generator
) -> np.ndarray:
    values = np.asarray(rng.standard_normal(shape))
    if domain is not None:
        beside = _beside_usual(domain)
        values = np.asarray(rng.uniform(domain.low, domain.high, shape) if beside else values)
        values = values.clip(domain.low, domain.high)
    return values.astype(dtype)


def _beside_usual(domain: Domain) -> bool:
    """Tell whether a domain lies beside what is usual for floats, so that clipping would leave one number."""
    return domain.low > -1 or domain.high < 1


def recorded_val_ranges(manifest: Manifest) -> tuple[str, ...]:
    """Return the ``--val-range`` texts of the build; they stand in one text, and names may hold blanks."""
    text = manifest.build.options.get("val-range", "")
    texts = tuple(re.findall(r"\S.*?:\s*\[[^\]]*\]", text))
    try:
        val_ranges(texts)
    except TrtcError:
        return ()
    return texts
