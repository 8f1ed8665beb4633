"""Values for the inputs of a finished bundle: its manifest says what they are, its model what they may be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trtc.compiler.inference import inferred_shapes
from trtc.compiler.input_roles import trace_inputs
from trtc.compiler.signature import model_inputs
from trtc.compiler.values import value_source
from trtc.profiles import CheckError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.samples import Samples
    from trtc.compiler.values import ValueSource
    from trtc.engines.manifest import Manifest


def source_of_bundle(
    manifest: Manifest, model: Model, ranges: Mapping[str, tuple[float, float]], samples: Samples | None = None
) -> ValueSource:
    """Make values for the inputs of a bundle, inside what the graph of a model allows.

    Args:
        manifest: of the bundle.
        model: with the same inputs.
        ranges: lowest and highest value by input name.
        samples: real inputs that are preferred.

    Raises:
        CheckError: when the inputs are not the same.
    """
    fed = tuple(spec for spec in manifest.signature.inputs if not spec.has_default)
    merges = _merges(manifest, model)
    roles = trace_inputs(model, inferred_shapes(model)).roles
    source = value_source(fed, roles, dict(ranges), samples)
    rules = {
        name: replace(rule, high=merges.get(rule.high, rule.high)) if isinstance(rule.high, str) else rule
        for name, rule in source.rules.items()
    }
    return replace(source, rules=rules)


def _merges(manifest: Manifest, model: Model) -> dict[str, str]:
    """Name, for each symbol of the model file, the one that stands for it in the bundle."""
    found: dict[str, str] = {}
    by_name = {spec.name: spec for spec in manifest.signature.inputs}
    for spec in model_inputs(model):
        kept = by_name.get(spec.name)
        if kept is None or kept.dtype != spec.dtype or len(kept.dims or ()) != len(spec.dims or ()):
            raise CheckError(
                f"the bundle has {kept or 'no such input'} where its model has {spec}; build the bundle again"
            )
        pairs = zip(spec.dims or (), kept.dims or (), strict=True)
        found |= {old: new for old, new in pairs if isinstance(old, str) and isinstance(new, str)}
    return found
