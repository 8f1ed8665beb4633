"""From a model and declared options to a plan, with everything that experiments on it need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.plan import Plan, merged_profiles, symbol_ranges_of, tightened
from trtc.compiler.probes.subject import Subject
from trtc.compiler.reference import Unavailable, onnx_evaluator, open_reference
from trtc.compiler.samples import load_samples
from trtc.compiler.signature import SourceOptions, find_signature, model_inputs
from trtc.engines.registry import backend_for_target
from trtc.engines.signature import Signature
from trtc.profiles import Ladder, TrtcError, dim_value
from trtc.profiles.grammar import derived_inputs, pad_rules, profiles_from_options, require_closed, val_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Progress
    from trtc.compiler.reference import Reference
    from trtc.compiler.samples import Samples
    from trtc.compiler.signature import SignatureResult
    from trtc.profiles import Profile, Range


@dataclass(frozen=True, slots=True)
class Declared:
    """What the options say about a model, read and checked before anything runs.

    Attributes:
        profiles: bound to the symbols of the model file.
        samples: real inputs, or None.
        val_ranges: lowest and highest value by input.
    """

    profiles: tuple[Profile, ...]
    samples: Samples | None
    val_ranges: dict[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A plan, and what experiments are made with.

    Attributes:
        plan: what will be built.
        subject: for probes and verification.
        references: what to compare with; the first is fast.
        found: what runs told about the model.
        unavailable: why onnx's evaluator is not among the references; empty when it is.
    """

    plan: Plan
    subject: Subject
    references: tuple[Reference, ...]
    found: SignatureResult
    unavailable: str


def read_declarations(model: Model, options: BuildOptions) -> Declared:
    """Read the options against the model's inputs; nothing runs.

    Raises:
        UsageError: for unknown names, contradictory ranges, samples that cannot be read, unknown targets.
    """
    dims = Signature(model_inputs(model), ()).input_dims
    profiles = profiles_from_options(options.shapes, dims)
    for target in options.targets:
        if backend_for_target(target).needs_ranges:
            require_closed(profiles, target)
    pad_rules(options.pads, options.fills, dims, accept_error=options.accept_padding_error)
    derived_inputs(options.derives, dims)
    samples = load_samples(options.samples) if options.samples else None
    return Declared(profiles, samples, val_ranges(options.val_ranges))


def analyse(model: Model, declared: Declared, options: BuildOptions, threads: int, progress: Progress) -> Analysis:
    """Run the model at many sizes, find its signature, and settle the plan.

    Raises:
        UsageError, ModelError: as ``find_signature`` and the grammars.
    """
    progress.stage("running the model to find how its sizes relate")
    reference = open_reference(model, threads)
    ranges = symbol_ranges_of(declared.profiles)
    source = SourceOptions(declared.samples, dict(declared.val_ranges), options.seed)
    found = find_signature(model, reference, source, ranges)
    for note in found.notes:
        progress.note(note)
    signature = found.signature
    profiles = merged_profiles(declared.profiles, found.merges)
    profiles = tightened(profiles, found.workable, _lowest(found, reference, ranges))
    dims = signature.input_dims
    rules = pad_rules(options.pads, options.fills, dims, accept_error=options.accept_padding_error)
    plan = Plan(signature, Ladder(profiles), rules, derived_inputs(options.derives, dims), options.targets)
    subject = Subject(
        graph=model.proto.graph,
        signature=signature,
        ladder=plan.ladder,
        values=found.values,
        samples=declared.samples.feeds if declared.samples is not None else (),
        limits=_limits(found),
        multiples={symbol: rule.multiple_of for symbol, rule in found.workable.items()},
    )
    smallest = found.values.feeds(found.base, np.random.default_rng(options.seed))
    second = onnx_evaluator(model, smallest)
    if isinstance(second, Unavailable):
        return Analysis(plan, subject, (reference,), found, second.reason)
    return Analysis(plan, subject, (reference, second), found, "")


def _lowest(found: SignatureResult, reference: Reference, ranges: Mapping[str, Range]) -> dict[str, int]:
    """Find the symbols of open range for which even the empty size runs and gives what the relations say."""
    lowest: dict[str, int] = {}
    rng = np.random.default_rng(0)
    for symbol, rule in found.workable.items():
        lowest[symbol] = rule.min
        if symbol in ranges:
            continue
        sizes = {**found.base, symbol: 0}
        try:
            outputs = reference.run(found.values.feeds(sizes, rng))
        except (TrtcError, ValueError, ArithmeticError):
            continue
        if all(
            spec.dims is None or getattr(outputs[spec.name], "shape", None) == _shape(spec.dims, sizes)
            for spec in found.signature.outputs
            if spec.in_memory and spec.dims is not None and None not in spec.dims
        ):
            lowest[symbol] = 0
    return lowest


def _shape(dims: tuple[object, ...], sizes: Mapping[str, int]) -> tuple[int | None, ...]:
    return tuple(dim_value(dim, sizes) for dim in dims)  # type: ignore[arg-type]


def _limits(found: SignatureResult) -> dict[str, tuple[float, float]]:
    """Return the values that the graph bounds: garbage must stay legal where an index would leave its table."""
    limits = {}
    for name, rule in found.values.rules.items():
        low, high = getattr(rule, "low", None), getattr(rule, "high", None)
        if rule.kind == "index" and isinstance(low, int) and isinstance(high, int):
            limits[name] = (float(low), float(high))
    return limits
