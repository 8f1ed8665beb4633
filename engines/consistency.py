"""What a manifest says must fit together: every name known, every number one that can be served.

The types of the schema cannot say this. Checked once, when a manifest is read, so that nothing behind it meets a symbol
without a size, a division by zero or a padding that no experiment confirmed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from trtc.engines.signature import TENSOR_TYPES
from trtc.profiles import Expr, dim_symbols

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtc.engines.manifest import Manifest
    from trtc.engines.signature import Signature, TensorSpec
    from trtc.profiles import Ladder, PadRule

_MAX_RANK = 64
"""Of numpy."""
_MAX_SIZE = 2**63 - 1
_DIGEST = re.compile(r"[0-9a-f]{64}")


def contradictions(manifest: Manifest) -> Iterator[str]:
    """Say everything in a manifest that contradicts something else in it, or that nobody can serve."""
    symbols = frozenset(manifest.signature.symbols)
    yield from _signature_faults(manifest.signature, symbols)
    yield from _ladder_faults(manifest.ladder, symbols)
    yield from _padding_faults(manifest, symbols)
    inputs = {spec.name for spec in manifest.signature.inputs}
    for derived in manifest.derived:
        if derived.input not in inputs or (derived.symbol is not None and derived.symbol not in symbols):
            yield f"derived input {derived.input!r} ({derived.symbol or derived.kind}) is not in the signature"
    executions = (manifest.execution, *(e.execution for e in manifest.engines if e.execution is not None))
    for name, count in ((n, getattr(e, n)) for e in executions for n in ("slots", "threads")):
        if count < 0:
            yield f"execution: {name} is {count}"
    yield from _cost_faults(manifest, symbols)
    yield from _original_faults(manifest)


def _original_faults(manifest: Manifest) -> Iterator[str]:
    original = manifest.original
    if original is None:
        return
    if _DIGEST.fullmatch(original.file_sha256) is None:
        yield f"original: file_sha256 {original.file_sha256[:70]!r} is no digest"
    for piece in original.external:
        if not 0 <= piece.start < piece.stop <= _MAX_SIZE:
            yield f"original: bytes {piece.start}..{piece.stop} of {piece.location!r} are no range"
    outputs = [spec.public_name for spec in manifest.signature.outputs]
    if [value.name for value in original.outputs] != outputs:
        yield f"original: its outputs are not {outputs}, those of the signature"
    inputs = {spec.name for spec in manifest.signature.inputs}
    if unknown := [value.name for value in original.inputs if value.name not in inputs]:
        yield f"original: input {unknown[0]!r} is not in the signature"


def _cost_faults(manifest: Manifest, symbols: frozenset[str]) -> Iterator[str]:
    for engine in manifest.engines:
        if engine.cost is not None and (unknown := sorted(set(engine.cost.model.symbols) - symbols)):
            yield f"cost of engine {engine.name!r}: no input has an axis {unknown[0]!r}"
    if manifest.planned is not None and (unknown := sorted(manifest.planned.align.keys() - symbols)):
        yield f"planned: no input has an axis {unknown[0]!r}"


def _signature_faults(signature: Signature, symbols: frozenset[str]) -> Iterator[str]:
    for kind, specs in (("input", signature.inputs), ("output", signature.outputs)):
        names = [spec.public_name for spec in specs]
        if len(set(names)) != len(names):
            yield f"two {kind}s have one name: {sorted(names)}"
        for spec in specs:
            yield from (f"{kind} {spec.name!r}: {reason}" for reason in _spec_faults(spec, symbols))


def _ladder_faults(ladder: Ladder, symbols: frozenset[str]) -> Iterator[str]:
    for profile in ladder.profiles:
        if unknown := sorted(profile.ranges.keys() - symbols):
            yield f"profile {profile.name}: no input has an axis {unknown[0]!r}"
        for symbol, r in profile.ranges.items():
            if r.min > _MAX_SIZE or (r.max or 0) > _MAX_SIZE:
                yield f"profile {profile.name}: {symbol} {r} is larger than any axis"


def _spec_faults(spec: TensorSpec, symbols: frozenset[str]) -> Iterator[str]:
    if spec.is_tensor and spec.dtype not in TENSOR_TYPES:
        yield f"{spec.dtype!r} is no element type"
    if len(spec.dims or ()) > _MAX_RANK:
        yield f"{len(spec.dims or ())} axes, {_MAX_RANK} are the most"
    for dim in spec.dims or ():
        if isinstance(dim, int) and not 0 <= dim <= _MAX_SIZE:
            yield f"an axis of size {dim}"
        if isinstance(dim, Expr) and any(step.div < 1 for term in dim.terms for step in term.steps):
            yield f"an axis {dim} that divides by less than 1"
        if unknown := sorted(dim_symbols(dim) - symbols):
            yield f"no input has an axis {unknown[0]!r}"


def _padding_faults(manifest: Manifest, symbols: frozenset[str]) -> Iterator[str]:
    padded = [rule.symbol for rule in manifest.padding]
    if len(set(padded)) != len(padded):
        yield f"two rules pad one symbol: {sorted(padded)}"
    shown = {
        (e.kind == "rows", symbol)
        for e in manifest.evidence
        if e.kind != "relations" and (e.accepted or e.deviation_accepted)
        for symbol in ([e.symbol] if e.symbol in symbols else e.symbol.split(","))
    }
    for rule in manifest.padding:
        if rule.symbol not in symbols:
            yield f"padding {rule.symbol!r}: no input has that axis"
        elif (rule.side == "rows", rule.symbol) not in shown:
            yield f"padding {rule.symbol!r}: no experiment confirmed it"
        else:
            yield from (f"padding {rule.symbol!r}: {reason}" for reason in _fill_faults(manifest, rule))


def _fill_faults(manifest: Manifest, rule: PadRule) -> Iterator[str]:
    for spec in manifest.signature.inputs if rule.side != "rows" else ():
        if rule.symbol not in spec.symbols or not spec.in_memory:
            continue
        if spec.name not in rule.fills:
            yield f"no fill for input {spec.name!r}"
        elif spec.dtype.startswith(("int", "uint")):
            info = np.iinfo(spec.dtype)
            fill = rule.fills[spec.name]
            if fill % 1 != 0 or not info.min <= fill <= info.max:
                yield f"fill {fill} is no {spec.dtype} (input {spec.name!r})"
