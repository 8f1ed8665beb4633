"""``trtc bench --html``: a benchmark as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import sizes_text
from trtc.runtime.verdicts import judge
from trtc.tools.bench.show import ratio_text, trtexec_block
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted, size_text
from trtc.tools.printable import printable
from trtc.tools.report.evidence import engines_section, host_section, memory_section, verification_section
from trtc.tools.report.page import Section, facts, figure, note, page, paragraph, preformatted, table
from trtc.tools.report.plots import bars, histogram, roofline

if TYPE_CHECKING:
    from trtc.tools.bench.measure import Measured
    from trtc.tools.bench.results import BenchReport
    from trtc.tools.bench.run import Benched

SIZES_DRAWN = 40
PARTS = ("check", "wait for a slot", "route", "copy in", "execute", "copy out")


def bench_page(found: Benched) -> str:
    """Return the whole page."""
    report = found.report
    manifest = read_manifest(Path(report.bundle))
    verdicts = [judge(record, this_host()) for record in manifest.engines]
    sections = [
        _overview(report),
        *(_case_section(i, measured, report) for i, measured in enumerate(found.measured)),
        _sizes_section(report),
        _roof_section(report),
        _memory_section(report),
        memory_section(manifest),
        verification_section(manifest.engines),
        engines_section(manifest, verdicts),
        _conditions_section(report),
        host_section(manifest),
    ]
    name = printable(Path(report.bundle).name)
    slots, threads = counted(report.slots, "slot"), counted(report.threads, "thread")
    subtitle = (
        f"Engine {report.engine} ({report.backend}), {slots}, {threads} a call; {', '.join(report.host.values())}."
    )
    return page(f"Benchmark of {name}", [s for s in sections if s is not None], subtitle=subtitle)


def _overview(report: BenchReport) -> Section:
    rows = []
    for case in report.cases:
        latency = case.latency
        shares = [seconds_text(value) for value in latency.percentiles_s.values()]
        rows.append((case.name, latency.count, seconds_text(latency.median_s), *shares, f"{latency.spread:.1%}",
                     f"{case.per_second:.4g}"))  # fmt: skip
    columns = ("case", "calls", "median", *report.cases[0].latency.percentiles_s, "spread", "calls per second")
    notes = "".join(note(text) for text in (*report.notes, *report.conditions.warnings))
    return Section("Overview", notes + table("Latency of each case; transfers are in", columns, rows))


def _case_section(index: int, found: Measured, report: BenchReport) -> Section:
    case = found.case
    series = {"ours": found.samples.latency_s * 1e3}
    marks = {"median": case.latency.median_s * 1e3}
    marks |= {name: value * 1e3 for name, value in case.latency.percentiles_s.items()}
    body = figure(
        histogram(f"latency{index}", series, "latency, ms", marks),
        f"Distribution of {case.latency.count} latencies: median {seconds_text(case.latency.median_s)}, longest "
        f"{seconds_text(case.latency.max_s)} (the picture ends at the 99.5th percentile).",
    )
    body += preformatted("\n".join(trtexec_block(report, case)))
    rows = [(name, seconds_text(case.parts[name])) for name in PARTS if name in case.parts]
    body += table("Parts of a call, measured apart", ("part", "median"), rows)
    if case.peer is not None:
        body += paragraph(f"Beside {case.peer.name} {case.peer.version}: {ratio_text(case.peer.ratio)}.")
        if not case.peer.agrees:
            body += note("The answers differ beyond the bundle's tolerance: this is not the same work.")
    return Section(case.name, body)


def _sizes_section(report: BenchReport) -> Section:
    sizes = [size for case in report.cases for size in case.sizes]
    rows = [
        (
            sizes_text(s.sizes) or "no symbols",
            s.profile or "?",
            sizes_text(s.run_sizes) if s.run_sizes != s.sizes else "same",
            f"{s.waste:.1%}",
            seconds_text(s.first_call_s),
            s.latency.count if s.latency else 0,
            seconds_text(s.latency.median_s) if s.latency else "-",
        )
        for s in sizes
    ]
    columns = ("sizes", "profile", "run at", "padding", "first call", "calls", "median")
    drawn = [s for s in sizes if s.latency is not None][:SIZES_DRAWN]
    labels = [sizes_text(s.sizes) or "no symbols" for s in drawn]
    medians = [s.latency.median_s * 1e3 for s in drawn if s.latency]
    body = figure(bars("sizes", labels, {"median": medians}, "median latency, ms"), "Median latency of each size.")
    if any(s.waste for s in drawn):
        waste = [s.waste * 100 for s in drawn]
        body += figure(bars("waste", labels, {"padding": waste}, "padding, % of the input elements that run"),
                       "Padding waste: the share of input elements that no request asked for.")  # fmt: skip
    else:
        body += paragraph("No request was padded: every size ran as it came, or exactly filled its bucket.")
    return Section("Sizes and padding waste", body + table("Every distinct size", columns, rows))


def _roof_section(report: BenchReport) -> Section | None:
    limits = report.limits
    if limits is None:
        return None
    points = {c.name: (c.roof.intensity, c.roof.flop_per_s) for c in report.cases if c.roof}
    rows = [
        (
            c.name,
            f"{c.roof.flop / 1e6:.4g} MFLOP",
            size_text(c.roof.moved_bytes),
            f"{c.roof.flop_per_s / 1e9:.4g} GFLOP/s",
            f"{c.roof.bytes_per_s / 1e9:.4g} GB/s",
            c.roof.bound,
            f"{c.roof.roof_share:.1%}",
        )
        for c in report.cases
        if c.roof
    ]
    columns = ("case", "work", "moved", "rate", "traffic", "bound by", "of the roof")
    return Section(
        "Roofline",
        figure(
            roofline("roof", points, limits.flop_per_s, limits.bytes_per_s),
            f"This machine's limits, measured: {limits.flop_per_s / 1e9:.4g} GFLOP/s and "
            f"{limits.bytes_per_s / 1e9:.4g} GB/s. A point below the slope waits for memory, one below the flat part "
            "for arithmetic.",
        )
        + table("Work of one call, and the share of what the machine allows", columns, rows),
    )


def _memory_section(report: BenchReport) -> Section:
    memory = report.memory
    pairs = [
        ("resident, whole process", size_text(memory.resident_bytes)),
        ("resident at its peak", size_text(memory.peak_resident_bytes)),
        ("added by loading", size_text(memory.loaded_bytes)),
        ("planned memory in use", size_text(memory.arena_bytes)),
        ("reservations of each call, once warm", f"{memory.arena_allocations_per_call:g}"),
        ("new memory of each call (results)", size_text(memory.new_bytes_per_call)),
    ]
    return Section("Memory", facts("Memory while it was measured", pairs))


def _conditions_section(report: BenchReport) -> Section:
    before, after = report.conditions.before, report.conditions.after
    rows = [
        (name, _told(getattr(before, field)), _told(getattr(after, field)))
        for name, field in (
            ("clock, MHz", "frequency_mhz"), ("slowed by temperature, times", "thermal_events"),
            ("held by the cgroup's quota, s", "quota_throttled_s"), ("processes that want a processor", "load"),
            ("governor", "governor"),
        )
    ]  # fmt: skip
    pairs = [(name, number) for name, number in report.versions.items()]
    return Section(
        "Conditions",
        table("The machine before and after", ("what", "before", "after"), rows) + facts("Versions", pairs),
    )


def _told(value: float | str | None) -> str:
    return "not told" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
