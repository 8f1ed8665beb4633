"""``trtc inspect --html``: what a bundle holds, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.bundle import bundle_size_bytes
from trtc.profiles import shape_text
from trtc.tools.output import size_text
from trtc.tools.printable import printable
from trtc.tools.report.evidence import (
    engines_section,
    host_section,
    memory_section,
    padding_section,
    profiles_section,
    verification_section,
)
from trtc.tools.report.page import Section, page, table

if TYPE_CHECKING:
    from trtc.engines.manifest import Manifest
    from trtc.tools.inspect_bundle import BundleFacts


def inspect_page(found: BundleFacts) -> str:
    """Return the whole page."""
    manifest = found.manifest
    checked = "digests checked" if found.digests_checked else "sizes checked, digests not"
    sections = [
        _signature_section(manifest),
        profiles_section(manifest),
        padding_section(manifest),
        engines_section(manifest, found.verdicts),
        verification_section(manifest.engines),
        memory_section(manifest),
        host_section(manifest),
    ]
    subtitle = f"A bundle of {size_text(bundle_size_bytes(manifest))}; {checked}."
    return page(printable(found.path.name), [s for s in sections if s is not None], subtitle=subtitle)


def _signature_section(manifest: Manifest) -> Section:
    rows = [
        (kind, printable(spec.public_name), spec.dtype, shape_text(spec.dims) if spec.is_tensor else "-")
        for kind, specs in (("input", manifest.signature.inputs), ("output", manifest.signature.outputs))
        for spec in specs
    ]
    return Section("Signature", table("Inputs and outputs", ("kind", "name", "type", "shape"), rows))
