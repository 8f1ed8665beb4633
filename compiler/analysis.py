"""From a model and declared options to a plan, with everything that experiments on it need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtc.compiler.empty_sizes import why_not_empty
from trtc.compiler.plan import Plan, merged_profiles, symbol_ranges_of, tightened
from trtc.compiler.plan_options import check_align, closed_by
from trtc.compiler.probes.subject import Subject
from trtc.compiler.recorded_times import recorded_times
from trtc.compiler.reference import Unavailable, onnx_evaluator, open_reference
from trtc.compiler.repeatable import require_repeatable
from trtc.compiler.samples import SampleOptions, load_samples
from trtc.compiler.signature import SourceOptions, find_signature, model_inputs
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.traffic_source import recorded_samples, traffic_for
from trtc.engines.signature import Signature
from trtc.engines.target import parse_targets
from trtc.profiles import Ladder, ModelError, Range
from trtc.profiles.grammar import (
    derived_inputs,
    pad_rules,
    profiles_from_options,
    quote_name,
    require_closed,
    val_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Setting
    from trtc.compiler.plan_build import FromFile
    from trtc.compiler.planning import Planning
    from trtc.compiler.reference import Reference
    from trtc.compiler.samples import Samples
    from trtc.compiler.signature import SignatureResult
    from trtc.engines.manifest import RecordedCalls
    from trtc.profiles import Profile
    from trtc.profiles.traffic_files import Reading


_ONE_EVALUATION = 1 / 30
"""Part of the seconds for comparing an engine that one run of onnx's evaluator may take."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the options say about a model, read and checked before anything runs.

    Attributes:
        profiles: bound to the symbols of the model file.
        samples: real inputs, or None.
        val_ranges: lowest and highest value by input.
        traffic: that the ladder is planned for; None where the options state it.
        recorded: what calls took in the program whose traffic that is.
    """

    profiles: tuple[Profile, ...]
    samples: Samples | None
    val_ranges: dict[str, tuple[float, float]]
    traffic: Reading | None = None
    recorded: tuple[RecordedCalls, ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """A plan, and what experiments are made with.

    Attributes:
        plan: what will be built.
        subject: for probes and verification.
        references: what to compare with; the first is fast.
        found: what runs told about the model.
        unavailable: why onnx's evaluator is not among the references; empty when it is.
        planning: where the ladder came from traffic or a plan file; None where the options state it.
    """

    plan: Plan
    subject: Subject
    references: tuple[Reference, ...]
    found: SignatureResult
    unavailable: str
    planning: Planning | FromFile | None = None


def read_declarations(model: Model, options: BuildOptions) -> Declared:
    """Read the options against the model's inputs; nothing runs.

    Raises:
        UsageError: for unknown names, contradictory ranges, samples that cannot be read, unknown targets.
    """
    inputs = Signature(model_inputs(model), ())
    dims = inputs.input_dims
    plan = options.plan.plan
    profiles = profiles_from_options(options.shapes, dims) if plan is None else plan.ladder.profiles
    traffic = traffic_for(options.plan, inputs, model.file_sha256)
    for target in parse_targets(options.targets):
        if target.needs_ranges:
            require_closed(closed_by(profiles, None if traffic is None else traffic.traffic), target.text)
    rules = pad_rules(options.pads, options.fills, dims, accept_error=options.accept_padding_error)
    check_align(options.plan.align, inputs.symbols, {rule.symbol for rule in rules}, profiles)
    derived_inputs(options.derives, dims)
    known = SampleOptions(known_inputs=frozenset(spec.name for spec in model_inputs(model)))
    given = options.samples or recorded_samples(options.plan, model.file_sha256)
    samples = load_samples(given, known) if given else None
    recorded = recorded_times(options.plan.traffic, model.file_sha256)
    return Declared(profiles, samples, val_ranges(options.val_ranges), traffic, recorded)


def analyse(model: Model, declared: Declared, setting: Setting) -> Analysis:
    """Run the model at many sizes, find its signature, and settle the plan.

    Raises:
        UsageError, ModelError: as ``find_signature`` and the grammars.
    """
    options, progress = setting.options, setting.progress
    progress.stage("running the model to find how its sizes relate")
    reference = open_reference(model, setting.threads)
    ranges = symbol_ranges_of(declared.profiles)
    source = SourceOptions(declared.samples, dict(declared.val_ranges), options.seed)
    # Size 0 can end the process inside ONNX Runtime: it is tried apart, below.
    found = find_signature(model, reference, source, {symbol: _from_one(r) for symbol, r in ranges.items()})
    for note in found.notes:
        progress.note(note)
    signature = found.signature
    profiles = merged_profiles(declared.profiles, found.merges)
    profiles = tightened(profiles, found.workable, _lowest(model, found, ranges))
    dims = signature.input_dims
    rules = pad_rules(options.pads, options.fills, dims, accept_error=options.accept_padding_error)
    plan = Plan(signature, Ladder(profiles), rules, derived_inputs(options.derives, dims), options.targets)
    subject = Subject(
        graph=model.proto.graph,
        signature=signature,
        ladder=plan.ladder,
        values=found.values,
        samples=found.values.samples.feeds if found.values.samples is not None else (),
        limits=_limits(found),
        multiples={symbol: rule.multiple_of for symbol, rule in found.workable.items()},
    )
    smallest = found.values.feeds(found.base, np.random.default_rng(options.seed))
    require_repeatable(model, reference, smallest, Tolerance(options.atol, options.rtol))
    second = onnx_evaluator(model, smallest, options.verify_s * _ONE_EVALUATION)
    if isinstance(second, Unavailable):
        progress.note(f"compared with ONNX Runtime only: {second.reason}")
        return Analysis(plan, subject, (reference,), found, second.reason)
    return Analysis(plan, subject, (reference, second), found, "")


def _lowest(model: Model, found: SignatureResult, ranges: Mapping[str, Range]) -> dict[str, int]:
    """Return the smallest size of each symbol: 0 where the range is open and even the empty size runs."""
    demanded = {found.merges.get(symbol, symbol) for symbol, r in ranges.items() if r.min == 0}
    asked = [symbol for symbol in found.workable if symbol not in ranges or symbol in demanded]
    reasons = why_not_empty(model, found.signature, found.values, found.base, asked)
    if refused := sorted(demanded & reasons.keys()):
        raise ModelError(
            "; ".join(
                f"{symbol}: the range starts at 0, but the model cannot run with an empty axis: {reasons[symbol]}"
                for symbol in refused
            )
            + f"; start at 1, such as --dim {quote_name(refused[0])}=1..{_top(ranges, refused[0])}"
        )
    empty = set(asked) - reasons.keys()
    return {symbol: 0 if symbol in empty else rule.min for symbol, rule in found.workable.items()}


def _from_one(r: Range) -> Range:
    return Range(1, None if r.opt is None else max(r.opt, 1), r.max) if r.min == 0 and r.max != 0 else r


def _top(ranges: Mapping[str, Range], symbol: str) -> int | str:
    top = ranges[symbol].max if symbol in ranges else None
    return "" if top is None else top


def _limits(found: SignatureResult) -> dict[str, tuple[float, float]]:
    """Return the values that the graph bounds: garbage must stay legal where an index would leave its table."""
    limits = {}
    for name, rule in found.values.rules.items():
        low, high = getattr(rule, "low", None), getattr(rule, "high", None)
        if rule.kind == "index" and isinstance(low, int) and isinstance(high, int):
            limits[name] = (float(low), float(high))
    return limits
