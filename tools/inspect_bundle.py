"""What a bundle holds: read from its manifest alone, so neither engines nor the compiler's libraries are needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING, Any

from trtc.engines.blobs import blobs_of, check_blobs
from trtc.engines.bundle import bundle_size_bytes
from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import HostError
from trtc.runtime.choice import choose
from trtc.runtime.verdicts import judge, needed_device_bytes
from trtc.tools.claims import claim_text, rule_text
from trtc.tools.durations import seconds_text
from trtc.tools.output import (
    counted,
    print_command,
    print_facts,
    print_line,
    print_signature,
    print_table,
    print_text,
    size_text,
)
from trtc.tools.planned import planned_texts, runs_text
from trtc.tools.recorded import options_text
from trtc.tools.source_names import source_digests
from trtc.tools.verification import show_verification, verified_text

if TYPE_CHECKING:
    from trtc.engines.manifest import EngineRecord, Manifest
    from trtc.runtime.verdicts import Verdict

METADATA_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Memory:
    """What loading will take, known before it, in bytes; None where ranges are open.

    Attributes:
        slots: calls that may run at once on this host.
        slot_bytes: planned memory of one.
        planned_bytes: of all slots.
        library_bytes: measured inside the library for the largest profile, for one call at a time.
        engine_bytes: files of the engine, which are mapped.
        device_bytes: least memory of its GPU that it takes: its files and its largest profile; None without a GPU.
    """

    slots: int
    slot_bytes: int | None
    planned_bytes: int | None
    library_bytes: int | None
    engine_bytes: int
    device_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """What is shown about a bundle.

    Attributes:
        path: of the bundle.
        manifest: everything that it says about itself.
        verdicts: whether each engine fits this host, and why.
        chosen: name of the engine that would be loaded here; None when none fits.
        memory: of that engine, or of the first.
        digests_checked: whether every file was read and compared.
        refused: why none would be loaded here; empty when one would.
    """

    path: Path
    manifest: Manifest
    verdicts: tuple[Verdict, ...]
    chosen: str | None
    memory: Memory
    digests_checked: bool
    refused: str = ""

    def fields(self) -> dict[str, Any]:
        """The fields of the JSON object."""
        return {
            "path": str(self.path),
            "size_bytes": bundle_size_bytes(self.manifest),
            "chosen": self.chosen,
            "verdicts": self.verdicts,
            "memory": self.memory,
            "digests_checked": self.digests_checked,
            "metadata_keys": list(self.manifest.metadata),
            "manifest": self.manifest,
        }


def bundle_facts(path: Path, *, verify_digests: bool) -> BundleFacts:
    """Read a bundle.

    Raises:
        UsageError: when nothing is there.
        BundleError: for a bundle that is not whole; with ``verify_digests`` also when any file differs.
        HostError: when reading is not allowed.
    """
    manifest = read_manifest(path)
    check_blobs(path, blobs_of(manifest).values(), digests=verify_digests)
    verdicts = tuple(judge(record, this_host()) for record in manifest.engines)
    chosen, refused = _chosen(manifest)
    record = next((r for r in manifest.engines if r.name == chosen), next(iter(manifest.engines), None))
    return BundleFacts(
        path, manifest, verdicts, chosen, _memory(manifest, record), digests_checked=verify_digests, refused=refused
    )


def _chosen(manifest: Manifest) -> tuple[str | None, str]:
    """Return the engine that would be loaded here, or why none would."""
    try:
        return choose(manifest, this_host()).record.name, ""
    except HostError as error:
        return None, str(error)


def _memory(manifest: Manifest, record: EngineRecord | None) -> Memory:
    allowed = this_host().threads
    slots = min(manifest.execution.slots or allowed, allowed)
    found = record.memory if record is not None else ()
    closed = len(found) == len(manifest.ladder.profiles)
    slot_bytes = max((m.slot_bytes for m in found), default=0) if closed else None
    scratch = [m.scratch_bytes for m in found if m.scratch_bytes >= 0]
    return Memory(
        slots=slots,
        slot_bytes=slot_bytes,
        planned_bytes=None if slot_bytes is None else slot_bytes * slots,
        library_bytes=max(scratch) if closed and scratch else None,
        engine_bytes=sum(blob.size_bytes for blob in record.files) if record is not None else 0,
        device_bytes=needed_device_bytes(record) if record is not None and record.requirements.device else None,
    )


def show_bundle(found: BundleFacts) -> None:
    """Print it for people."""
    manifest = found.manifest
    source, build = manifest.source, manifest.build
    opsets = ", ".join(f"{domain or 'ai.onnx'} {number}" for domain, number in source.opsets.items())
    checked = (
        "every file has the digest that the manifest says" if found.digests_checked else "sizes checked, digests not"
    )
    print_facts(
        [
            ("bundle", f"{found.path} ({size_text(bundle_size_bytes(manifest))}; {checked})"),
            *(
                ("" if i else "source", f"{digest} ({name})")
                for i, (name, digest) in enumerate(source_digests(manifest))
            ),
            ("", f"{size_text(source.size_bytes)}, made by {source.producer or 'not said'}"),
            ("", f"IR {source.ir_version}, opset {opsets}"),
            ("built", f"by trtc {build.trtc} with {', '.join(f'{k} {v}' for k, v in build.libraries.items())}"),
            ("", f"on {', '.join(build.machine.values())}; seed {build.seed}"),
        ]
    )
    print_command("options", options_text(build.options) or "none")
    print_line()
    print_signature(manifest.signature)
    for derived in manifest.derived:
        along = f" along {derived.symbol}" if derived.symbol else ""
        print_line(f"input {derived.input!r} may be left out; trtc makes it: {derived.kind}{along}")
    print_line()
    _show_profiles(manifest)
    _show_padding(manifest)
    _show_engines(found)
    _show_memory(found.memory)
    print_text(runs_text(manifest.execution))
    if manifest.metadata:
        more = len(manifest.metadata) - METADATA_SHOWN
        listed = ", ".join(list(manifest.metadata)[:METADATA_SHOWN]) + (f" and {more} more" if more > 0 else "")
        print_text(f"metadata keys: {listed}")


def _show_profiles(manifest: Manifest) -> None:
    costs = manifest.ladder.cost_s
    rows = [
        (p.name, str(p).partition(": ")[2], seconds_text(costs[i]) if costs else "not measured")
        for i, p in enumerate(manifest.ladder.profiles)
    ]
    print_table("profiles", ("profile", "sizes", "one run at the bucket"), rows)
    for text in planned_texts(manifest):
        print_text(text)
    print_line()


def _show_padding(manifest: Manifest) -> None:
    for rule in manifest.padding:
        print_text(f"padding {rule_text(rule)}")
    for evidence in manifest.evidence:
        detail = f" ({evidence.detail})" if evidence.detail else ""
        if evidence.kind == "relations":
            shown = "follow from sizes of inputs" if evidence.accepted else "are not all known before a run"
            print_text(f"sizes of outputs {shown}: found in {evidence.runs} runs{detail}")
        else:
            print_text(claim_text(evidence, manifest.padding) + detail)
    domains = {name: domain for evidence in manifest.evidence for name, domain in evidence.domain.items()}
    for name, d in domains.items():
        rows = ", no row all zero" if d.rows_nonzero else ""
        print_text(f"requests are padded while {name} is {d.low:g}..{d.high:g}{rows}")
    for samples in dict.fromkeys(evidence.samples for evidence in manifest.evidence):
        print_text(f"values of these runs: {samples}")
    print_line()


def _show_engines(found: BundleFacts) -> None:
    rows = []
    for record, verdict in zip(found.manifest.engines, found.verdicts, strict=True):
        size = size_text(sum(blob.size_bytes for blob in record.files))
        state = "chosen" if record.name == found.chosen else "fits" if verdict.fits else "NO"
        rows.append((record.name, record.backend, size, verified_text(record), state))
    print_table("engines", ("engine", "backend", "size", "verified", "here"), rows)
    if found.refused:
        print_text(found.refused)
    for record, verdict in zip(found.manifest.engines, found.verdicts, strict=True):
        device = ""
        if record.requirements.device:
            device = f", {size_text(needed_device_bytes(record))} or more of device memory"
        print_text(f"{record.name}: {verdict.reason}; needs {_needs(record)}{device}")
        if digests := [file.sha256 for file in record.files if file.path in record.plugins]:
            print_text(f"{record.name} brings libraries of plug-ins, which are code: {', '.join(digests)}")
    print_line()
    show_verification(found.manifest.engines)
    print_line()


def _needs(record: EngineRecord) -> str:
    needs = record.requirements
    exactly = "exactly " if needs.exact_version else ""
    library = f"{needs.library} {exactly}{needs.library_version}".strip() if needs.library else ""
    device = " ".join([needs.device, "/".join(needs.compute_capabilities)]).strip()
    parts = [needs.system, needs.architecture, library, device, *needs.cpu_features]
    return " ".join(part for part in parts if part) or "nothing"


def memory_texts(memory: Memory) -> tuple[str, str]:
    """Say what is planned, and what comes on top of it."""
    inside = (
        "not measured" if memory.library_bytes is None else f"{size_text(memory.library_bytes)} for a call at a time"
    )
    more = f"inside the library {inside}; engine files {size_text(memory.engine_bytes)}, mapped"
    if memory.planned_bytes is None or memory.slot_bytes is None:
        return "ranges are open, so each slot grows with the largest request that it served", more
    slots = f"{counted(memory.slots, 'slot')} of {size_text(memory.slot_bytes)}"
    return f"{size_text(memory.planned_bytes)} planned ({slots})", more


def _show_memory(memory: Memory) -> None:
    planned, more = memory_texts(memory)
    print_line(f"memory: {planned}")
    print_line(f"        {more}")
