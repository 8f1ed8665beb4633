"""Sections about a bundle that several pages share: engines and host, memory of profiles, verification, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.engines.host import this_host
from trtc.profiles import sizes_text
from trtc.tools.claims import asked_text, rule_text, worst_of
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted, size_text
from trtc.tools.report.page import Section, facts, figure, note, paragraph, table
from trtc.tools.report.plots import bars
from trtc.tools.source_names import source_digests
from trtc.tools.verification import COLUMNS, verification_texts, verified_text, worst_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.manifest import EngineRecord, Manifest
    from trtc.runtime.verdicts import Verdict

KIB, MIB = 2**10, 2**20


def host_section(manifest: Manifest) -> Section:
    """The machine that the page was made on, and how the bundle was built."""
    host, build, source = this_host(), manifest.build, manifest.source
    pairs = [
        ("this machine", f"{host.cpu}, {counted(host.threads, 'thread')}, {host.system} {host.architecture}"),
        ("its processor features", ", ".join(host.cpu_features) or "none known"),
        ("built by", f"trtc {build.trtc} with {', '.join(f'{k} {v}' for k, v in build.libraries.items())}"),
        ("built on", ", ".join(build.machine.values()) or "not said"),
        ("from a model of", f"{size_text(source.size_bytes)}, made by {source.producer or 'not said'}"),
        *((name, digest) for name, digest in source_digests(manifest)),
    ]
    return Section("Host and build", facts("This machine, and where the bundle comes from", pairs))


def engines_section(manifest: Manifest, verdicts: Sequence[Verdict]) -> Section:
    """What engines the bundle holds, and whether they fit here."""
    by_name = {verdict.engine: verdict for verdict in verdicts}
    rows = [
        (
            r.name,
            r.backend,
            r.target,
            r.precision,
            size_text(sum(f.size_bytes for f in r.files)),
            verified_text(r),
            "yes" if by_name[r.name].fits else "NO",
            by_name[r.name].reason,
        )
        for r in manifest.engines
    ]
    columns = ("engine", "backend", "target", "precision", "size", "verified", "fits here", "why")
    return Section("Engines", table("Engines of the bundle", columns, rows))


def profiles_section(manifest: Manifest) -> Section:
    """Profiles with what a run at their bucket was measured to cost."""
    costs = manifest.ladder.cost_s
    profiles = manifest.ladder.profiles
    rows = [
        (p.name, str(p).partition(": ")[2], seconds_text(costs[i]) if costs else "not measured")
        for i, p in enumerate(profiles)
    ]
    body = table("Profiles of the ladder", ("profile", "sizes", "one run at the bucket"), rows)
    if costs:
        picture = bars(
            "cost", [p.name for p in profiles], {"run": [c * 1e3 for c in costs]}, "one run at the bucket, ms"
        )
        body += figure(picture, "What one run at each profile's bucket cost when the bundle was built.")
    return Section("Profiles", body)


def memory_section(manifest: Manifest) -> Section | None:
    """Planned memory and memory inside the library for each profile; None where ranges are open."""
    for record in manifest.engines:
        if record.memory:
            rows = [(m.profile, size_text(m.slot_bytes), size_text(m.scratch_bytes)) for m in record.memory]
            planned, inside = (
                [m.slot_bytes for m in record.memory],
                [max(0, m.scratch_bytes) for m in record.memory],
            )
            unit, scale = ("MiB", MIB) if max(*planned, *inside) >= MIB else ("KiB", KIB)
            series = {
                "planned": [size / scale for size in planned],
                "inside the library": [size / scale for size in inside],
            }
            picture = bars("memory", [m.profile for m in record.memory], series, unit)
            return Section(
                "Memory of each profile",
                table(f"Memory of one call, engine {record.name}", ("profile", "planned", "inside the library"), rows)
                + figure(picture, "Memory that one call takes in each profile; all profiles share the planned region."),
            )
    return None


def verification_section(engines: Sequence[EngineRecord]) -> Section:
    """How each engine answered, beside what it was compared with: the worst of each profile and mode."""
    body = ""
    for record in engines:
        rows = [
            (*where, *figures, "-" if worst is None else f"{worst.output} at {sizes_text(worst.sizes) or 'its size'}")
            for where, figures, worst in worst_results(record)
        ]
        if rows:
            body += table(f"Engine {record.name}", (*COLUMNS, "where"), rows)
        say = paragraph if record.verified else note
        body += "".join(say(f"{text[0].upper()}{text[1:]}.") for text in verification_texts(record))
    return Section("Verification", body or paragraph("No engine of this bundle was compared with anything."))


def padding_section(manifest: Manifest) -> Section | None:
    """Which padding is declared and what its experiments showed; None without padding."""
    if not manifest.padding:
        return None
    rows = []
    for evidence in manifest.evidence:
        if evidence.kind != "relations":
            worst = worst_of(evidence.findings)
            figures = ("-", "-") if worst is None else (f"{worst.max_abs:.3g}", f"{worst.allowed:.3g}")
            result = (
                "accepted" if evidence.accepted else "known deviation" if evidence.deviation_accepted else "refuted"
            )
            rows.append((asked_text(evidence, manifest.padding), result, evidence.runs, *figures))
    rules = "".join(paragraph(f"Padding {rule_text(rule)}.") for rule in manifest.padding)
    columns = ("claim", "result", "runs", "largest difference", "allowed")
    return Section("Padding and its evidence", rules + table("Experiments of the build", columns, rows))
