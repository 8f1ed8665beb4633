"""One comparison, from what was typed to what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trtc.compiler.samples import Samples, check_samples, load_samples
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import UsageError, unknown_name
from trtc.profiles.grammar import ShapeOptions, quote_name, val_ranges
from trtc.runtime import load
from trtc.tools.comparison.compare import Comparison, answers
from trtc.tools.comparison.graphs import engine_graph, model_graph
from trtc.tools.comparison.localize import Limits, Pair, localize
from trtc.tools.comparison.requests import Values, generated, real, ways_of
from trtc.tools.comparison.rules import Rule, read_rules
from trtc.tools.comparison.saved import (
    load_requests,
    load_results,
    require_saved_place,
    save_requests,
    save_results,
)
from trtc.tools.comparison.sides import ModelSide, SavedSide, SessionSide
from trtc.tools.inputs import requested_sizes

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trtc.compiler.model import Model
    from trtc.engines.manifest import Manifest
    from trtc.tools.comparison.localize import Parting
    from trtc.tools.comparison.requests import Request, Way
    from trtc.tools.comparison.result import ComparisonResult
    from trtc.tools.comparison.rules import Rules
    from trtc.tools.comparison.sides import Side
    from trtc.tools.output import Progress


class Task:
    """What is compared, and how.

    Args:
        bundle: its path.
        other: path of a model or of another bundle; None for another engine, or for saved outputs.
        manifest: of the bundle.
        given: options of ``trtc compare``, which do not contradict each other.
        progress: told what is going on.
    """

    def __init__(
        self, bundle: Path, other: Path | None, manifest: Manifest, given: Mapping[str, Any], progress: Progress
    ) -> None:
        self._bundle = bundle
        self._other = other
        self._manifest = manifest
        self._given = given
        self._progress = progress
        self._model: Model | None = None
        self._notes: list[str] = []

    def run(self, work: Path, stack: contextlib.ExitStack) -> tuple[ComparisonResult, Parting | None]:
        """Do it; what ``stack`` holds is closed by the caller."""
        given = self._given
        require_saved_place(given["save_inputs"], "--save-inputs")
        require_saved_place(given["save_outputs"], "--save-outputs")
        rules = self._rules()
        ways = ways_of(self._manifest, given["profiles"], given["mode"])
        self._read_model(work)
        self._refuse_other_inputs()
        requests = self._requests(ways)
        side = self._side(requests, stack)
        self._save(requests)
        comparison = Comparison(self._bundle, given["engine"], given["threads"], side, rules)
        result = comparison.run(ways, requests, self._progress)
        parting = self._localized(result, requests, rules) if given["localize"] else None
        return msgspec.structs.replace(result, notes=tuple(self._notes)), parting

    def _rules(self) -> Rules:
        given = self._given
        atol, rtol = self._manifest.tolerance
        rules = read_rules(
            given["atol"], given["rtol"], given["check_error_stat"], Rule(atol, rtol), finite=given["validate"]
        )
        rules.refuse_unknown([spec.public_name for spec in self._manifest.signature.outputs])
        return rules

    def _read_model(self, work: Path) -> None:
        if self._other is None or self._other.is_dir():
            return
        from trtc.compiler.importer import load_model

        self._progress.stage("loading the model")
        self._model = load_model(self._other, work_folder=work / "model", model_root=self._given["model_root"])
        if self._model.sha256 != self._manifest.source.sha256:
            self._notes.append(
                f"{self._bundle} was built from another model (content digest {self._manifest.source.sha256}) "
                f"than {self._other} ({self._model.sha256})"
            )

    def _refuse_other_inputs(self) -> None:
        """Refuse another bundle that the same request cannot be given to."""
        if self._other is None or not self._other.is_dir():
            return
        other = read_manifest(self._other)
        ours, theirs = (
            {spec.name: spec.used and not spec.has_default for spec in manifest.signature.inputs}
            for manifest in (self._manifest, other)
        )
        made = {derived.input for derived in other.derived}
        needed = {name for name, must in theirs.items() if must and name not in made}
        if not {name for name, must in ours.items() if must} <= theirs.keys() or not needed <= ours.keys():
            raise UsageError(
                f"{self._bundle} and {self._other} have different inputs: {', '.join(map(repr, ours)) or 'none'} and "
                f"{', '.join(map(repr, theirs)) or 'none'}; compare bundles that take the same request"
            )

    def _requests(self, ways: Sequence[Way]) -> list[Request]:
        given, manifest = self._given, self._manifest
        ranges = val_ranges(given["val_range"])
        inputs = [spec.name for spec in manifest.signature.inputs]
        for name in ranges:
            if name not in inputs:
                raise UsageError(f"--val-range: {unknown_name('input', name, inputs)}")
        found = real(manifest, ways, self._real_feeds())
        own = given["samples"] or given["load_inputs"]
        if given["sizes"] or not own:
            source = None
            if self._model is not None:
                from trtc.compiler.bundle_values import source_of_bundle

                source = source_of_bundle(manifest, self._model, ranges)
            values = Values(manifest, given["val_range"], source, given["seed"])
            asked = []
            for text in given["sizes"]:
                sizes = requested_sizes([text], ShapeOptions(), manifest.signature)
                if missing := [s for s in manifest.signature.symbols if s not in sizes]:
                    every = ",".join(f"{quote_name(s)}=SIZE" for s in manifest.signature.symbols)
                    raise UsageError(f"--sizes {text}: no size for {', '.join(missing)}; write --sizes {every}")
                asked.append((text, values.feeds(sizes)))
            found += real(manifest, ways, asked)
            if not (own or asked):
                found = generated(manifest, ways, values, given["iterations"])
        return found

    def _real_feeds(self) -> list[tuple[str, dict[str, Any]]]:
        given, fed = self._given, tuple(s for s in self._manifest.signature.inputs if not s.has_default)
        feeds: list[dict[str, Any]] = []
        origins: list[str] = []
        if given["samples"]:
            samples = load_samples(given["samples"])
            feeds, origins = [*samples.feeds], [*samples.origins]
        for path in given["load_inputs"]:
            loaded = load_requests([path], [spec.name for spec in fed])
            feeds += loaded
            origins += [f"{path.name}[{i}]" if len(loaded) > 1 else path.name for i in range(len(loaded))]
        checked = check_samples(Samples(tuple(feeds), tuple(origins), ""), fed)
        return list(zip(checked.origins, checked.feeds, strict=True))

    def _side(self, requests: Sequence[Request], stack: contextlib.ExitStack) -> Side:
        given = self._given
        if given["load_outputs"]:
            names = [spec.public_name for spec in self._manifest.signature.outputs]
            saved = load_results(given["load_outputs"], names)
            if len(saved) != len(requests):
                raise UsageError(
                    f"--load-outputs: {len(saved)} answers to {len(requests)} requests; save them together"
                )
            return SavedSide(saved, self._manifest, ", ".join(path.name for path in given["load_outputs"]))
        if self._model is not None:
            threads = given["threads"] or this_host().threads
            return ModelSide(self._model, given["backend"] or "onnxruntime", threads, str(self._other))
        path, engine = self._other or self._bundle, given["other_engine"] or "auto"
        session = stack.enter_context(load(path, engine=engine, slots=1, threads=given["threads"]))
        return SessionSide(session, f"{path} (engine {session.explain().engine})")

    def _save(self, requests: Sequence[Request]) -> None:
        given = self._given
        if given["save_inputs"] is not None:
            save_requests(given["save_inputs"], [request.feeds for request in requests])
        if given["save_outputs"] is not None:
            with load(self._bundle, engine=given["engine"], slots=1, threads=given["threads"]) as session:
                save_results(given["save_outputs"], f"trtc {self._bundle.name}", answers(session, requests))

    def _localized(self, result: ComparisonResult, requests: Sequence[Request], rules: Rules) -> Parting | None:
        failed = next(((c, o) for c in result.cases for o in c.outputs if not o.passed), None)
        if failed is None:
            self._notes.append("--localize: no answer differs, so there is nothing to find")
            return None
        case, output = failed
        given, threads = self._given, self._given["threads"] or this_host().threads
        ours = engine_graph(self._bundle, given["engine"], threads)
        if self._model is not None:
            theirs = model_graph(self._model, str(self._other), threads)
        else:
            theirs = engine_graph(self._other or self._bundle, given["other_engine"] or "auto", threads)
        request = next(r for r in requests if r.name == case.request and r.sizes == case.sizes)
        public = {spec.public_name: spec.name for spec in self._manifest.signature.outputs}
        limits = Limits(rules.of(output.output), given["localize_memory"])
        name = public.get(output.output, output.output)
        found = localize(Pair(ours, theirs, request.feeds), name, limits, self._progress)
        if found is None:
            self._notes.append(
                f"--localize: output {output.output!r} agrees when both graphs run at exact sizes without the runtime: "
                "the difference comes from padding, or from the bundle's own run"
            )
        return found
