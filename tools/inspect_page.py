"""``trtc inspect --html``: what a bundle holds, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.bundle import bundle_size_bytes
from trtc.profiles import shape_text
from trtc.tools.inspect_bundle import memory_texts
from trtc.tools.output import size_text
from trtc.tools.planned import planned_texts, way_text
from trtc.tools.printable import printable
from trtc.tools.report.evidence import (
    engines_section,
    host_section,
    memory_section,
    padding_section,
    profiles_section,
    verification_section,
)
from trtc.tools.report.page import Section, facts, note, page, table
from trtc.tools.verification import unverified_text

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest
    from trtc.tools.inspect_bundle import BundleFacts


def inspect_page(found: BundleFacts) -> str:
    """Return the whole page: what decides whether the bundle can be used first, where it comes from last."""
    manifest = found.manifest
    checked = "digests checked" if found.digests_checked else "sizes checked, digests not"
    sections = [
        _overview(found),
        engines_section(manifest, found.verdicts),
        profiles_section(manifest),
        memory_section(manifest),
        verification_section(manifest.engines),
        padding_section(manifest),
        _signature_section(manifest),
        host_section(manifest),
    ]
    subtitle = f"A bundle of {size_text(bundle_size_bytes(manifest))}; {checked}."
    return page(printable(found.path.name), [s for s in sections if s is not None], subtitle=subtitle)


def _overview(found: BundleFacts) -> Section:
    manifest = found.manifest
    planned, more = memory_texts(found.memory)
    unshown = {record.name: unverified_text(record) for record in manifest.engines}
    pairs = [
        ("engine here", found.chosen or "none"),
        ("requests run", f"{way_text(manifest.execution)}: {manifest.execution.reason or 'no reason was recorded'}"),
        ("memory", f"{planned}; {more}"),
        *(("planned", text) for text in planned_texts(manifest)),
    ]
    notes = "".join(note(f"Engine {name}: {text}.") for name, text in unshown.items() if text)
    return Section("Overview", (note(found.refused) if found.refused else "") + notes + facts("In short", pairs))


def _signature_section(manifest: Manifest) -> Section:
    rows = [
        (printable(spec.public_name), kind, spec.dtype, shape_text(spec.dims) if spec.is_tensor else "-")
        for kind, specs in (("input", manifest.signature.inputs), ("output", manifest.signature.outputs))
        for spec in specs
    ]
    return Section("Signature", table("Inputs and outputs", ("name", "kind", "type", "shape"), rows))
