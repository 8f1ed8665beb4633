"""Is padding exact? Padded and trimmed against exact, at many sizes and values, and what makes it neutral."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trtc.compiler.probes.experiment import Experiment
from trtc.compiler.probes.guards import describe_guards
from trtc.compiler.probes.structure import check_rules, padding_obstacles
from trtc.compiler.probes.subject import ProbeOptions
from trtc.compiler.probes.widen import widened
from trtc.engines.manifest import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler.probes.subject import Reference, Subject
    from trtc.profiles import PadRule

_DEFAULTS = ProbeOptions()


def probe_padding(
    subject: Subject, reference: Reference, rules: Sequence[PadRule], options: ProbeOptions = _DEFAULTS
) -> tuple[Evidence, ...]:
    """Examine declared padding.

    Args:
        subject: the model, its ladder, its values.
        reference: runs the model, exact and padded.
        rules: what was declared. Rules for rows are examined here only together with others.
        options: how much to try.

    Returns:
        Evidence for each rule of side left or right; then, when there are several rules, for all of them together,
        with the symbols joined by commas. An accepted rule alone says nothing about the combination.

    Raises:
        UsageError: for a rule that does not fit the model.
    """
    check_rules(subject.signature, rules)
    filled = [rule for rule in rules if rule.side != "rows"]
    groups: list[tuple[PadRule, ...]] = [(rule,) for rule in filled]
    if filled and len(rules) > 1:
        groups.append(tuple(rules))
    return tuple(_probe(subject, reference, group, options) for group in groups)


def _probe(subject: Subject, reference: Reference, rules: Sequence[PadRule], options: ProbeOptions) -> Evidence:
    evidence = Evidence(
        kind="padding",
        symbol=",".join(rule.symbol for rule in rules),
        accepted=False,
        runs=0,
        samples=subject.describe_values(),
    )
    obstacles = padding_obstacles(subject, rules)
    if obstacles:
        return msgspec.structs.replace(evidence, detail="; ".join(obstacles))
    experiment = Experiment(subject, reference, rules, options)
    experiment.try_generated()
    experiment.try_full_masks()
    if experiment.worst.passed:
        experiment.try_zero_rows()
    experiment.try_samples()
    experiment.try_boxes()
    experiment.try_faint()
    note = experiment.note()
    if experiment.worst.comparisons == 0:
        reason = "nothing could be compared: no size of the ladder leaves room for padding that the reference can run"
        return msgspec.structs.replace(evidence, detail=_joined(reason, note))
    findings = experiment.worst.findings()
    if not experiment.worst.passed:
        deviates = any(rule.accept_error for rule in rules)
        reason = f"padded differs from exact: {experiment.worst.failures()}"
        return msgspec.structs.replace(
            evidence,
            runs=experiment.padded.runs.count,
            findings=findings,
            domain=experiment.bounds.domain(),
            deviation_accepted=deviates,
            detail=_joined(reason, "the deviation was accepted" if deviates else "", note),
        )
    experiment.bounds.include_all(widened(experiment))
    detail = _joined(describe_guards(experiment), note)
    return msgspec.structs.replace(
        evidence,
        accepted=True,
        runs=experiment.padded.runs.count,
        findings=findings,
        domain=experiment.bounds.domain(),
        detail=detail,
    )


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
