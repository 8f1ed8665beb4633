"""Find the signature of a model: inputs from the graph, outputs from runs of the reference."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtc.compiler.constant_batch import constant_batch_notes
from trtc.compiler.inference import inferred_shapes
from trtc.compiler.input_roles import trace_inputs
from trtc.compiler.onnx_types import dtype_text, read_names, tensor_dims
from trtc.compiler.relations import OutputFacts, Relations, find_relations
from trtc.compiler.samples import Samples, check_samples
from trtc.compiler.trials import Trials
from trtc.compiler.values import ValueSource, value_source
from trtc.compiler.workable import Workable, find_workable_sizes
from trtc.engines.manifest import Evidence
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles import UsageError, unknown_name
from trtc.profiles.grammar import quote_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.input_roles import Flow
    from trtc.compiler.model import Model
    from trtc.compiler.reference import Reference
    from trtc.compiler.size_rule import SizeRule
    from trtc.profiles import Range


_RELATIONS_SHARE = 0.5
"""Part of the budget that the search for sizes leaves to the relations."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where values come from, and how long to look.

    Attributes:
        samples: real feeds, or None.
        val_ranges: input name to bounds of its values, both ends included.
        seed: of generated values.
        budget_s: seconds for all runs of the reference together.
    """

    samples: Samples | None = None
    val_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    seed: int = 0
    budget_s: float = 20.0


@dataclass(frozen=True, slots=True)
class SignatureResult:
    """What runs told about a model.

    Attributes:
        signature: with merged symbols.
        evidence: of the relations.
        notes: merges, contradictions, sizes that do not run, what was not tried.
        workable: by symbol, sizes that the model runs at.
        base: one small size for each symbol that runs, alone and together.
        merges: symbol of the model file to the symbol that stands for both.
        values: makes feeds for further experiments.
    """

    signature: Signature
    evidence: Evidence
    notes: tuple[str, ...]
    workable: dict[str, SizeRule]
    base: dict[str, int]
    merges: dict[str, str]
    values: ValueSource

    @property
    def carries_shape(self) -> tuple[str, ...]:
        """Inputs whose values decide shapes; neither padded nor batched."""
        return self.values.carries_shape


def model_inputs(model: Model) -> tuple[TensorSpec, ...]:
    """Read the inputs: every dynamic axis has the symbol that the importer gave it."""
    graph = model.proto.graph
    read = read_names(graph)
    defaults = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return tuple(
        TensorSpec(
            value.name,
            dtype_text(value.type),
            tensor_dims(value.type),
            used=value.name in read,
            has_default=value.name in defaults,
        )
        for value in graph.input
    )


def find_signature(
    model: Model, reference: Reference, options: SourceOptions, ranges: Mapping[str, Range]
) -> SignatureResult:
    """Run the model at many sizes and tell what follows.

    Args:
        model: checked model.
        reference: of the same model.
        options: values and budget.
        ranges: the user's ranges by symbol; sizes outside are never run.

    Raises:
        UsageError: a range or a value range for an unknown name, samples that do not fit.
        ModelError: no size runs, or one end of a range does not.
    """
    inputs = model_inputs(model)
    symbols = Signature(inputs, ()).symbols
    for symbol in ranges:
        if symbol not in symbols:
            raise UsageError(unknown_name("symbol", symbol, symbols))
    flow = trace_inputs(model, inferred_shapes(model))
    samples = check_samples(options.samples, inputs) if options.samples is not None else None
    fed = tuple(spec for spec in inputs if not spec.has_default)
    source = value_source(fed, flow.roles, options.val_ranges, samples)
    trials = Trials(reference, source, options.seed, options.budget_s)
    trials.reserved_s = options.budget_s * _RELATIONS_SHARE
    workable = find_workable_sizes(trials, Signature(fed, ()).symbols, ranges, flow.hints)
    trials.reserved_s = 0.0
    relations = find_relations(trials, workable, _output_facts(model, flow), _canonical_ranges(ranges, workable))
    merged = tuple(_merged(spec, workable.merges) for spec in inputs)
    source = replace(
        source,
        inputs=tuple(spec for spec in merged if not spec.has_default),
        rules={name: rule.renamed(workable.merges) for name, rule in source.rules.items()},
    )
    signature = Signature(merged, _outputs(model, relations))
    moving = {s for s, rule in workable.rules.items() if not rule.fixed and not _is_one_size(ranges.get(s))}
    about_batch = constant_batch_notes(model, relations.dims, moving)
    notes = (*workable.notes, *_input_notes(source), *relations.notes, *about_batch)
    return SignatureResult(
        signature,
        _evidence(relations, source),
        notes,
        _rules(workable, relations),
        {s: workable.base[s] for s in workable.rules},
        dict(workable.merges),
        source,
    )


def _is_one_size(r: Range | None) -> bool:
    return r is not None and r.min == r.max


def _output_facts(model: Model, flow: Flow) -> list[OutputFacts]:
    return [
        OutputFacts(
            out.name,
            tensor_dims(out.type),
            flow.shapes.get(out.name),
            data_shaped=out.name in flow.data_shaped,
            tensor=out.type.WhichOneof("value") == "tensor_type",
        )
        for out in model.proto.graph.output
    ]


def _outputs(model: Model, relations: Relations) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(
            out.name, dtype_text(out.type), relations.dims[out.name], alias=model.public_outputs.get(out.name, "")
        )
        for out in model.proto.graph.output
    )


def _merged(spec: TensorSpec, merges: Mapping[str, str]) -> TensorSpec:
    if spec.dims is None:
        return spec
    return replace(spec, dims=tuple(merges.get(d, d) if isinstance(d, str) else d for d in spec.dims))


def _canonical_ranges(ranges: Mapping[str, Range], workable: Workable) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for symbol, r in ranges.items():
        canonical = workable.merges.get(symbol, symbol)
        if canonical in found:
            have = found[canonical]
            tops = [t for t in (have.max, r.max) if t is not None]
            low = max(have.min, r.min)
            r = type(r)(low, low if tops else None, min(tops) if tops else None)  # noqa: PLW2901
        found[canonical] = r
    return found


def _rules(workable: Workable, relations: Relations) -> dict[str, SizeRule]:
    """Raise the smallest size to where the relations hold."""
    return {
        s: replace(rule, min=max(rule.min, relations.valid_from.get(s, rule.min))) for s, rule in workable.rules.items()
    }


def _input_notes(source: ValueSource) -> list[str]:
    notes = [
        f"input {name!r} decides shapes ({source.rules[name].reason}); "
        f"give --samples, or --val-range '{quote_name(name)}:[LOW,HIGH]', for its real values"
        for name in source.carries_shape
    ]
    notes.extend(
        f"input {spec.name!r} declares no rank; it was run with shape (2, 3)"
        for spec in source.inputs
        if spec.is_tensor and spec.dims is None
    )
    return notes


def _evidence(relations: Relations, source: ValueSource) -> Evidence:
    known = all(dims is not None and None not in dims for dims in relations.dims.values())
    return Evidence(
        kind="relations",
        symbol="*",
        accepted=known,
        runs=relations.runs,
        samples=source.describe(),
        detail=relations.detail,
    )
