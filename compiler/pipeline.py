"""A build from the model file to the verified bundle."""

from __future__ import annotations

import functools
import tempfile
import time
from dataclasses import dataclass, fields, replace
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.compiler.analysis import analyse, read_declarations
from trtc.compiler.bundle_space import require_bundle_space
from trtc.compiler.cache import BuildCache, Built
from trtc.compiler.cache_key import key_of
from trtc.compiler.construct import construct
from trtc.compiler.importer import load_model
from trtc.compiler.options import Recorded, Setting, Silent
from trtc.compiler.original import original_of
from trtc.compiler.plan_build import settled
from trtc.compiler.plugins import plugin_digest, with_private_plugins
from trtc.compiler.prove import prove
from trtc.compiler.targets import refuse_model, refuse_options
from trtc.engines.distributions import find_distribution
from trtc.engines.host import this_host
from trtc.engines.manifest import SCHEMA, BuildRecord, Manifest, Source
from trtc.engines.registry import backend_named
from trtc.engines.target import parse_targets
from trtc.profiles import Ladder, UsageError

if TYPE_CHECKING:
    from trtc.compiler.analysis import Declared
    from trtc.compiler.model import Model
    from trtc.compiler.options import BuildOptions, Progress
    from trtc.engines.builder_options import BuilderOptions
    from trtc.engines.target import Target

LIBRARIES = ("onnx", "onnx-ir", "onnxruntime", "numpy")
MAX_METADATA_BYTES = 2**20
"""Metadata of a model (labels, dictionaries) is carried along up to this size."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        path: of the bundle.
        manifest: of the bundle.
        hit: whether the bundle came from the build cache.
        build_s: seconds from the start to the bundle, loading included, now or when the cache entry was made.
        notes: what a person should know, also when the bundle came from the cache.
    """

    path: Path
    manifest: Manifest
    hit: bool
    build_s: float
    notes: tuple[str, ...]


def build(model_path: Path, output: Path, options: BuildOptions, progress: Progress | None = None) -> BuildReport:
    """Build a bundle.

    Args:
        model_path: an ``.onnx`` file.
        output: path of the bundle; an older bundle there is replaced in one step, at the end.
        options: everything declared.
        progress: told what is going on.

    Raises:
        UsageError: wrong use (exit code 2).
        ModelError: the model is broken or not supported (3).
        CheckError: padding was refused, or an engine differs from the model (1).
        HostError: the environment does not fit (4).
    """
    progress = progress or Silent()
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trtc-build-") as work:
        progress.stage("loading the model")
        model = load_model(model_path, work_folder=Path(work) / "model", model_root=options.model_root)
        declared = read_declarations(model, options)
        refuse_options(options)
        options = with_private_plugins(options, Path(work) / "plugins")
        threads = options.threads or this_host().threads
        key = build_key(model, declared, options)
        # Without the cache a private one that keeps nothing is used, so that both ways run the same code.
        cache = BuildCache.from_environment() if options.use_cache else BuildCache(Path(work) / "cache", max_bytes=0)
        if (took_s := cache.last_duration_s(key)) is not None:
            progress.expect(took_s)
        else:
            progress.expect(cache.like_duration_s(model.sha256, options.targets[0]), same=False)

        def build_here(folder: Path) -> Built:
            require_bundle_space(output, model.size_bytes, options.targets)
            built = _build(model, declared, key, Setting(options, folder, threads, progress), model_path)
            return replace(built, begun_s=begun_s)

        outcome = cache.get_or_build(
            key,
            output,
            build_here,
            on_wait=lambda: progress.stage("waiting for another process that builds the same"),
        )
    return BuildReport(output, outcome.manifest, outcome.hit, outcome.build_s, (*model.notes, *outcome.notes))


def build_key(model: Model, declared: Declared, options: BuildOptions) -> str:
    """The key of a build: what was declared, as content."""
    host = this_host()
    targets = parse_targets(options.targets)
    return key_of(
        {
            "model": model.sha256,
            "profiles": declared.profiles,
            "padding": [options.pads, options.fills, options.accept_padding_error],
            "derived": options.derives,
            "targets": [target.text for target in targets],
            "builder": _builder_key(options.builder),
            "samples": declared.samples.digest if declared.samples else None,
            "val_ranges": {name: list(bounds) for name, bounds in declared.val_ranges.items()},
            "tolerance": [options.atol, options.rtol],
            "seed": options.seed,
            "traffic": declared.traffic and [declared.traffic.traffic.digest, options.plan.asked],
            "recorded": declared.recorded,
            "plan": [options.plan.plan, options.plan.frozen],
            "run": [options.mode, options.measure_s, options.callers, options.verify_s, options.fuse],
            "versions": {**library_versions(targets), "trtc": _version("trtc"), "code": _code_digest()},
            "host": [host.system, host.architecture, host.cpu_features],
        }
    )


def library_versions(targets: tuple[Target, ...]) -> dict[str, str]:
    """Versions of the libraries that a build's result depends on, those of its targets included."""
    needed = {backend_named(target.backend).needs for target in targets} - {"", *LIBRARIES}
    return {name: _version(name) for name in LIBRARIES} | {name: _library_version(name) for name in sorted(needed)}


def _builder_key(options: BuilderOptions) -> dict[str, object]:
    """The builder's options as content: a timing cache and libraries of plug-ins count by their bytes.

    Raises:
        UsageError: when the timing cache cannot be read.
    """
    found: dict[str, object] = {f.name: getattr(options, f.name) for f in fields(options)}
    found["plugins"] = [plugin_digest(library) for library in options.plugins]
    if options.timing_cache is not None:
        try:
            found["timing_cache"] = sha256(options.timing_cache.read_bytes()).hexdigest()
        except OSError as error:
            raise UsageError(
                f"--timing-cache {options.timing_cache}: cannot be read ({error.strerror}); "
                "give a file that a build with TensorRT on this kind of GPU wrote"
            ) from error
    return found


@functools.cache
def _library_version(module: str) -> str:
    """Version of the distribution that brings a module; the module itself is not imported."""
    found = find_distribution(module)
    return "not installed" if found is None else found.version


@functools.cache
def _version(package: str) -> str:
    """Read it once a process: the code that was imported stays, whatever is installed later."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _build(model: Model, declared: Declared, key: str, setting: Setting, model_path: Path) -> Built:
    host = this_host()
    options = setting.options
    recorded = Recorded(setting.progress)
    setting = replace(setting, progress=recorded)
    refuse_model(model, setting)
    analysis = analyse(model, declared, setting)
    analysis = settled(model, analysis, declared, setting)
    evidence = (analysis.found.evidence, *prove(analysis, setting))
    made = construct(model, analysis, evidence, setting)
    proto = model.proto
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    if sum(len(k) + len(v) for k, v in metadata.items()) > MAX_METADATA_BYTES:
        setting.progress.note(f"the model's metadata has more than {MAX_METADATA_BYTES} bytes and is left out")
        metadata = {}
    original = original_of(model, model_path, metadata, declared.recorded)
    manifest = Manifest(
        schema=SCHEMA,
        source=Source(
            sha256=model.sha256,
            size_bytes=model.size_bytes,
            ir_version=proto.ir_version,
            opsets={opset.domain: opset.version for opset in proto.opset_import},
            producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        ),
        build=BuildRecord(
            key=key,
            trtc=_version("trtc"),
            libraries=library_versions(parse_targets(options.targets)),
            machine={"system": host.system, "architecture": host.architecture, "cpu": host.cpu},
            options=_option_texts(options),
            seed=options.seed,
        ),
        signature=analysis.plan.signature,
        ladder=Ladder(analysis.plan.ladder.profiles, made.measured.cost_s),
        execution=made.measured.execution,
        engines=made.records,
        padding=analysis.plan.padding,
        derived=analysis.plan.derived,
        evidence=evidence,
        tolerance=(options.atol, options.rtol),
        metadata=metadata,
        planned=None if analysis.planning is None else analysis.planning.record,
        original=original,
    )
    return Built(manifest, made.files, tuple(recorded.notes))


def _option_texts(options: BuildOptions) -> dict[str, str]:
    """What was typed, for the manifest: enough to type it again. Paths of samples are left out, they are no content."""
    shapes = options.shapes
    builder = options.builder
    texts = {
        "dim": shapes.dim, "bucket": shapes.bucket, "buckets": shapes.buckets, "shape": shapes.shape,
        "trtexec": tuple(f"--{name}={value}" for name, value in shapes.trtexec),
        "trt-min-shapes": shapes.trt_min_shapes, "trt-opt-shapes": shapes.trt_opt_shapes,
        "trt-max-shapes": shapes.trt_max_shapes,
        "pad": options.pads, "fill": options.fills, "derive": options.derives,
        "val-range": options.val_ranges, "target": options.targets,
        "accept-padding-error": ("yes",) if options.accept_padding_error else (),
        "workspace": () if builder.workspace_bytes is None else (f"{builder.workspace_bytes // 1024}K",),
        "optimization-level": () if builder.optimization_level is None else (str(builder.optimization_level),),
        "version-compatible": ("yes",) if builder.version_compatible else (),
        "runtime": () if builder.runtime == "full" else (builder.runtime,),
        "plugin": tuple(plugin_digest(library) for library in builder.plugins),
        "hardware-compatibility": () if builder.hardware_compatibility == "none" else (builder.hardware_compatibility,),
        "tf32": ("yes",) if builder.tf32 else (),
        "timing-cache": ("1 file",) if builder.timing_cache is not None else (),
        **options.plan.texts,
        "mode": (options.mode,), "callers": (str(options.callers),) if options.callers else (),
        "samples": (f"{len(options.samples)} paths",) if options.samples else (),
    }  # fmt: skip
    return {name: " ".join(values) for name, values in texts.items() if values}


@functools.cache
def _code_digest() -> str:
    """Digest of our own code: a changed compiler must not meet the results of another."""
    whole = sha256()
    for package in ("compiler", "engines", "profiles"):
        for path in sorted((Path(__file__).parent.parent / package).rglob("*.py")):
            with path.open("rb") as stream:
                whole.update(path.name.encode() + file_digest(stream, "sha256").digest())
    return whole.hexdigest()
