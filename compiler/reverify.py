"""Verify the engines of a finished bundle again: on another machine, with more time, or with real samples.

Nothing is searched that the bundle already says: signature, ladder, padding and evidence are those of its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trtc.compiler.bundle_values import source_of_bundle
from trtc.compiler.engine_job import difference_text
from trtc.compiler.probes.subject import Subject
from trtc.compiler.reference import Unavailable, onnx_evaluator, open_reference
from trtc.compiler.samples import check_samples, load_samples
from trtc.compiler.signature import SourceOptions, find_signature
from trtc.compiler.tolerance import Tolerance
from trtc.compiler.verify import Padding, VerifyOptions, verify_engine
from trtc.engines.bundle import open_engine
from trtc.engines.distributions import find_distribution
from trtc.engines.errors import EngineError
from trtc.engines.opening import Opening
from trtc.engines.registry import backend_named
from trtc.profiles import CheckError, UsageError
from trtc.profiles.grammar import val_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.options import Progress
    from trtc.compiler.reference import Reference
    from trtc.engines.manifest import EngineRecord, Manifest, Requirements, Verification
    from trtc.engines.protocol import Engine

MAX_PROBLEMS = 5
"""Differences that one message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverifyOptions:
    """How a bundle is verified again.

    Attributes:
        samples: ``.npz`` files, or folders of them, with real inputs.
        val_ranges: ``--val-range`` texts.
        atol: absolute part of the tolerance; None for the bundle's.
        rtol: relative part; None for the bundle's.
        seed: of generated values.
        verify_s: seconds for comparing one engine.
        threads: of the reference and of the engine.
        devices: index of the GPU that an engine runs on, by the engine's name; none for those that need no GPU.
        allow_plugins: libraries of plug-ins may run.
    """

    samples: tuple[Path, ...] = ()
    val_ranges: tuple[str, ...] = ()
    atol: float | None = None
    rtol: float | None = None
    seed: int = 0
    verify_s: float = 60.0
    threads: int = 1
    devices: Mapping[str, str] = field(default_factory=dict)
    allow_plugins: bool = False


@dataclass(frozen=True, slots=True)
class EngineOutcome:
    """What happened to one engine.

    Attributes:
        record: as it is now; unchanged where it did not run.
        ran: whether it was compared.
        reason: why it was not; else what makes it fail, or nothing.
        broken: it should have run here, and its library refused or failed; nothing was learned about its answers.
    """

    record: EngineRecord
    ran: bool
    reason: str = ""
    broken: bool = False

    @property
    def passed(self) -> bool:
        """Whether it ran and agreed with the model everywhere."""
        return self.ran and not self.reason


@dataclass(frozen=True, slots=True)
class Reverified:
    """The outcome.

    Attributes:
        before: the manifest that was read.
        after: the manifest with the new results.
        engines: one outcome for each engine, in the manifest's order.
        notes: what a person should know.
    """

    before: Manifest
    after: Manifest
    engines: tuple[EngineOutcome, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is verified.

    Attributes:
        path: of the bundle.
        manifest: of the bundle.
        model: that it was built from; checked on construction, by content.

    Raises:
        UsageError: for another model; it names both digests.
    """

    path: Path
    manifest: Manifest
    model: Model

    def __post_init__(self) -> None:
        wanted, found = self.manifest.source.sha256, self.model.sha256
        if wanted == found:
            return
        original = self.manifest.original
        if original is None:
            built, given, advice = f"content digest {wanted}", found, ", external data included"
        elif original.file_sha256 != self.model.file_sha256:
            built, given, advice = f"a model file with SHA-256 {original.file_sha256}", self.model.file_sha256, ""
        else:
            built, given, advice = f"other external data (content digest {wanted})", found, " with its external data"
        raise UsageError(
            f"{self.path} was built from {built}, the model given has {given}; "
            f"give the model that it was built from{advice}, or build again"
        )


def reverify(
    candidate: Candidate, options: ReverifyOptions, unfit: Mapping[str, str], progress: Progress
) -> Reverified:
    """Compare every engine that can run here with the model. Nothing is written.

    Args:
        candidate: bundle and model.
        options: how.
        unfit: why an engine cannot run here, by its name; the others are run.
        progress: told what is going on.

    Raises:
        UsageError: for samples or ranges that do not fit.
        BundleError: when the files of an engine are not what the manifest says.
    """
    manifest, model = candidate.manifest, candidate.model
    progress.stage("reading the model and preparing values")
    reference = open_reference(model, options.threads)
    subject, smallest = _subject(manifest, model, reference, options)
    references: list[Reference] = [reference]
    second = onnx_evaluator(model, smallest)
    notes = []
    if isinstance(second, Unavailable):
        notes.append(f"compared with ONNX Runtime only: {second.reason}")
    else:
        references.append(second)
    tolerance = Tolerance(
        manifest.tolerance[0] if options.atol is None else options.atol,
        manifest.tolerance[1] if options.rtol is None else options.rtol,
    )
    verify = VerifyOptions(tolerance=tolerance, seed=options.seed, budget_s=options.verify_s)
    padding = Padding(manifest.padding, manifest.evidence)
    outcomes = []
    for record in manifest.engines:
        if record.name in unfit or not backend_named(record.backend).computes:
            reason = unfit.get(record.name, "it computes nothing, so there is nothing to compare")
            outcomes.append(EngineOutcome(record, ran=False, reason=reason))
            continue
        progress.stage(f"comparing engine {record.name} with {' and '.join(r.name for r in references)}")
        try:
            found = _verify(
                candidate,
                record.name,
                lambda engine: verify_engine(engine, subject, references, padding, verify),
                options,
            )
        except EngineError as error:  # of one engine: the others are compared all the same
            outcomes.append(EngineOutcome(record, ran=False, reason=str(error), broken=True))
            continue
        outcomes.append(_judged(_with_tolerance(record, tolerance, manifest), found, references[0].name))
    after = msgspec.structs.replace(manifest, engines=tuple(outcome.record for outcome in outcomes))
    return Reverified(manifest, after, tuple(outcomes), tuple(notes))


def _with_tolerance(record: EngineRecord, tolerance: Tolerance, manifest: Manifest) -> EngineRecord:
    """Record another tolerance than the bundle's beside the engine that it was used for."""
    options = {name: text for name, text in record.options.items() if name not in ("verify_atol", "verify_rtol")}
    if (tolerance.atol, tolerance.rtol) != manifest.tolerance:
        options |= {"verify_atol": repr(tolerance.atol), "verify_rtol": repr(tolerance.rtol)}
    return msgspec.structs.replace(record, options=options)


def _subject(
    manifest: Manifest, model: Model, reference: Reference, options: ReverifyOptions
) -> tuple[Subject, dict[str, object]]:
    """Make what is verified, and a feed of small sizes that run."""
    ranges = dict(val_ranges(options.val_ranges))
    fed = tuple(spec for spec in manifest.signature.inputs if not spec.has_default)
    samples = check_samples(load_samples(options.samples), fed) if options.samples else None
    source = source_of_bundle(manifest, model, ranges, samples)
    first = manifest.ladder.profiles[0]
    small = {symbol: 1 if r.holds(1) else r.min for symbol, r in first.ranges.items()}
    multiples: dict[str, int] = {}
    if any(r.max is None for profile in manifest.ladder.profiles for r in profile.ranges.values()):
        # Open ranges name no sizes to run at, so the sizes that run are looked for, as the build did.
        searched = find_signature(model, reference, SourceOptions(None, ranges, options.seed), {})
        multiples = {symbol: rule.multiple_of for symbol, rule in searched.workable.items()}
        small |= {symbol: size for symbol, size in searched.base.items() if symbol in small}
    subject = Subject(
        graph=model.proto.graph,
        signature=manifest.signature,
        ladder=manifest.ladder,
        values=source,
        samples=samples.feeds if samples is not None else (),
        multiples=multiples,
    )
    return subject, source.feeds(small, np.random.default_rng(options.seed))


def _verify(
    candidate: Candidate, name: str, check: Callable[[Engine], tuple[Verification, ...]], options: ReverifyOptions
) -> tuple[Verification, ...]:
    """Open one engine, its files checked, and compare it."""

    def choose(found: Manifest) -> EngineRecord:
        if found != candidate.manifest:
            raise CheckError(f"{candidate.path} was replaced while it was verified; run again")
        return next(record for record in found.engines if record.name == name)

    with open_engine(candidate.path, choose) as reader:
        backend = backend_named(reader.record.backend)
        found = reader.manifest
        engine = backend.load(
            Opening(
                files=reader.files,
                record=reader.record,
                signature=found.signature,
                ladder=found.ladder,
                threads=options.threads,
                device=options.devices.get(name, ""),
                allow_plugins=options.allow_plugins,
            )
        )
        try:
            return check(engine)
        finally:
            engine.close()


def _judged(record: EngineRecord, found: tuple[Verification, ...], trusted: str) -> EngineOutcome:
    """Decide as a build does: nothing may differ, and the first reference must have been compared everywhere."""
    problems = [difference_text(v, record.target) for v in found if v.ran and not v.passed]
    problems += [
        f"profile {v.profile}, {v.mode}: {v.detail}; allow more time with --verify-seconds, or give samples"
        for v in found
        if not v.ran and v.reference == trusted
    ]
    verified = not problems and any(v.passed for v in found)
    reason = "; ".join(problems[:MAX_PROBLEMS]) or ("" if verified else "nothing was compared")
    changed = msgspec.structs.replace(
        record,
        verified=verified,
        verification=_kept(record.verification, found),
        requirements=_with_library(record.requirements) if verified else record.requirements,
    )
    return EngineOutcome(changed, ran=True, reason=reason)


def _with_library(needs: Requirements) -> Requirements:
    """Name the version that the answers came from, where the engine was built without one: they count for no other."""
    found = find_distribution(needs.library) if needs.library and not needs.library_version else None
    return needs if found is None else msgspec.structs.replace(needs, library_version=found.version)


def _kept(old: tuple[Verification, ...], new: tuple[Verification, ...]) -> tuple[Verification, ...]:
    """Keep what was shown before where nothing could be compared now: it is still true of the same files."""
    passed = {(v.profile, v.mode, v.reference): v for v in old if v.passed}
    return tuple(v if v.ran else passed.get((v.profile, v.mode, v.reference), v) for v in new)
