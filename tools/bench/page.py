"""``trtc bench --html``: a benchmark as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trtc.engines.host import this_host
from trtc.engines.manifest_file import read_manifest
from trtc.profiles import sizes_text
from trtc.runtime.trace_events import PHASES, RUN
from trtc.runtime.verdicts import judge
from trtc.tools.bench.limits import share_text, unreached
from trtc.tools.bench.parts import comparable, part_texts
from trtc.tools.bench.results import most_called
from trtc.tools.bench.show import (
    compared_texts,
    generated_texts,
    loop_text,
    rate_text,
    trtexec_block,
    verdict_text,
    waited_text,
)
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted, size_text
from trtc.tools.printable import printable
from trtc.tools.report.evidence import engines_section, host_section, memory_section, verification_section
from trtc.tools.report.page import Section, facts, figure, gallery, note, page, paragraph, preformatted, table
from trtc.tools.report.plots import bars, drawn_to, histogram, roofline

if TYPE_CHECKING:
    from trtc.tools.bench.results import BenchReport, PeerResult, SizeResult
    from trtc.tools.bench.run import Benched

SIZES_DRAWN = 40
CASES_DRAWN = 24


def bench_page(found: Benched) -> str:
    """Return the whole page: figures first, then what they are made of, then the bundle and the machine."""
    report = found.report
    manifest = read_manifest(Path(report.bundle))
    verdicts = [judge(record, this_host()) for record in manifest.engines]
    sections = [
        _overview(report),
        _distribution_section(found),
        _sizes_section(report),
        _parts_section(report),
        _roof_section(report),
        _memory_section(report),
        memory_section(manifest),
        engines_section(manifest, verdicts),
        verification_section(manifest.engines),
        _conditions_section(report),
        host_section(manifest),
        _summary_section(report),
    ]
    name = printable(Path(report.bundle).name)
    slots, threads = counted(report.slots, "slot"), counted(report.threads, "thread")
    mode = "exact sizes" if report.mode == "exact" else "sizes padded to the bucket"
    subtitle = (
        f"Engine {report.engine} ({report.backend}), {mode}, {slots}, {threads} a call; "
        f"{', '.join(report.host.values())}."
    )
    return page(f"Benchmark of {name}", [s for s in sections if s is not None], subtitle=subtitle)


def _overview(report: BenchReport) -> Section:
    peers = any(case.peer for case in report.cases)
    rows = []
    for case in report.cases:
        latency = case.latency
        shares = [seconds_text(value) for value in latency.percentiles_s.values()]
        row = [case.name, latency.count, seconds_text(latency.median_s), *shares, f"{latency.spread:.1%}",
               f"{case.per_second:.4g}"]  # fmt: skip
        rows.append(row)
    columns = ["case", "calls", "median", *report.cases[0].latency.percentiles_s, "spread", "calls per second"]
    texts = [
        *report.notes,
        *report.conditions.warnings,
        *(f"{c.name}: {t}" for c in report.cases if (t := rate_text(c))),
    ]
    said = [loop_text(case) for case in report.cases]
    said += [f"in {case.name} {waited_text(case)}" for case in report.cases if case.loop == "open"]
    said += generated_texts(report)
    caption = f"Latency of each case{', of the bundle alone' * peers}; transfers are in"
    body = "".join(note(text) for text in texts) + _peer_table(report) + table(caption, columns, rows)
    body += "".join(paragraph(f"{text[0].upper()}{text[1:]}.") for text in dict.fromkeys(said))
    body += "".join(paragraph(text) for text in dict.fromkeys(_peer_text(c.peer) for c in report.cases if c.peer))
    if len(report.cases) > 1:
        body += figure(
            _medians(report), "Median latency of each case" + (", in turns with the peer." if peers else ".")
        )
    return Section("Overview", body)


def _peer_table(report: BenchReport) -> str:
    """Both sides in turns: the medians that each ratio is made of, and whether the answers agree."""
    found = [(case.name, case.peer) for case in report.cases if case.peer is not None]
    if not found:
        return ""
    rows = [
        (name, *compared_texts(peer), _ratio(peer), "agree" if peer.agrees else "differ", _verdict(peer))
        for name, peer in found
    ]
    columns = ("case", "this bundle", found[0][1].name, "time over the peer's", "answers", "result")
    return table(f"In turns with {found[0][1].name}: medians", columns, rows)


def _ratio(peer: PeerResult) -> str:
    return f"{peer.ratio.ratio:.3f} ({peer.ratio.low:.3f}..{peer.ratio.high:.3f})"


def _verdict(peer: PeerResult) -> str:
    if not peer.agrees:
        return "not the same work"
    return "machine was loaded" if peer.ratio.verdict == "loaded" else verdict_text(peer.ratio)


def _peer_text(peer: PeerResult) -> str:
    return (
        f"The peer is {peer.name} {peer.version}, in turns in the same process. Idle threads: {peer.idle_threads}. "
        "Each median is that of the medians of the rounds, and the ratio is the first over the second. A ratio below 1 "
        f"is in favour of the bundle; its interval holds the true one with {peer.ratio.confidence:.0%}. Where 1 lies "
        "inside, the difference is noise; where the machine was loaded, nobody is called faster."
    )


def _medians(report: BenchReport) -> str:
    cases = report.cases[:SIZES_DRAWN]
    ours = [(c.peer.ratio.ours_s if c.peer else c.latency.median_s) * 1e3 for c in cases]
    series = {"this bundle": ours}
    if all(c.peer for c in cases):
        series[next(c.peer.name for c in cases if c.peer)] = [c.peer.ratio.peer_s * 1e3 for c in cases if c.peer]
    return bars("medians", [c.name for c in cases], series, "median latency, ms")


def _distribution_section(found: Benched) -> Section:
    figures = []
    for i, measured in enumerate(found.measured[:CASES_DRAWN]):
        case, latency = measured.case, measured.case.latency
        marks = {"median": latency.median_s} | latency.percentiles_s
        latency_ms = measured.samples.latency_s * 1e3
        marks_ms = {name: seconds * 1e3 for name, seconds in marks.items()}
        picture = histogram(f"latency{i}", {"ours": latency_ms}, "latency, ms", marks_ms)
        beyond = int((latency_ms > drawn_to(latency_ms)).sum())
        text = (
            f"{case.name}: {counted(latency.count, 'call')}, median {seconds_text(latency.median_s)}, longest "
            f"{seconds_text(latency.max_s)}" + (f"; {beyond} longer than the picture shows." if beyond else ".")
        )
        figures.append(figure(picture, text))
    more = len(found.measured) - len(figures)
    body = gallery(figures) if len(figures) > 1 else "".join(figures)
    return Section("How latencies spread", body + (paragraph(f"{more} more cases are not drawn.") if more else ""))


def _parts_section(report: BenchReport) -> Section:
    names = [name for name in PHASES if any(name in case.parts for case in report.cases)]
    rows = []
    for case in report.cases:
        texts = part_texts(case)
        whole = seconds_text(case.parts[RUN]) if RUN in case.parts else "-"
        rows.append((case.name, whole, *(texts.get(name, "-") for name in names)))
    text = (
        "Medians of a few calls with a clock between the parts, made after the timed ones. They add up to more than a "
        "timed call, which takes a shorter path."
    )
    if not all(comparable(case) for case in report.cases):
        text += " Where these calls were clearly slower than the timed ones, their parts are shares of them."
    columns = ("case", "these calls", *names)
    return Section("Parts of a call", table("Parts of a call, measured apart", columns, rows) + paragraph(text))


def _summary_section(report: BenchReport) -> Section:
    """The figures of each case once more, in the words and the order of trtexec."""
    blocks = "".join(preformatted("\n".join((case.name, *trtexec_block(report, case)))) for case in report.cases)
    return Section("As trtexec writes it", blocks)


def _sizes_section(report: BenchReport) -> Section:
    sizes = [size for case in report.cases for size in case.sizes]
    told = most_called(sizes, SIZES_DRAWN)
    rows = [
        (
            sizes_text(s.sizes) or "no symbols",
            s.profile or "?",
            sizes_text(s.run_sizes) if s.run_sizes != s.sizes else "same",
            f"{s.waste:.1%}",
            seconds_text(s.first_call_s),
            _calls(s),
            seconds_text(s.latency.median_s) if s.latency else "-",
        )
        for s in told
    ]
    columns = ("sizes", "profile", "run at", "padding", "first call", "calls", "median")
    drawn = [s for s in told if s.latency is not None]
    labels = [sizes_text(s.sizes) or "no symbols" for s in drawn]
    medians = [s.latency.median_s * 1e3 for s in drawn if s.latency]
    body = ""
    if len(report.cases) < len(sizes):  # else the overview has this picture
        which = "each size" if len(drawn) == len(sizes) else f"{len(drawn)} of {len(sizes)} sizes"
        body = figure(bars("sizes", labels, {"median": medians}, "median latency, ms"), f"Median latency of {which}.")
    if any(s.waste for s in drawn):
        waste = [s.waste * 100 for s in drawn]
        body += figure(bars("waste", labels, {"padding": waste}, "padding, % of the input elements that run"),
                       "Padding waste: the share of input elements that no request asked for.")  # fmt: skip
    else:
        body += paragraph("No request was padded: every size ran as it came, or exactly filled its bucket.")
    which = "Every distinct size" if len(told) == len(sizes) else (
        f"The {len(told)} sizes with most calls, of {len(sizes)}; --json has all"
    )  # fmt: skip
    return Section("Sizes and padding waste", body + table(which, columns, rows))


def _calls(size: SizeResult) -> int:
    return size.latency.count if size.latency is not None else 0


def _roof_section(report: BenchReport) -> Section | None:
    limits = report.limits
    if limits is None:
        return None
    roofs = [(c.name, c.roof) for c in report.cases if c.roof]
    points = [(roof.intensity, roof.flop_per_s) for _, roof in roofs]
    rows = [
        (
            i,
            name,
            f"{roof.flop / 1e6:.4g} MFLOP",
            size_text(roof.moved_bytes),
            f"{roof.flop_per_s / 1e9:.4g} GFLOP/s",
            f"{roof.bytes_per_s / 1e9:.4g} GB/s",
            roof.bound,
            share_text(roof.roof_share),
        )
        for i, (name, roof) in enumerate(roofs, 1)
    ]
    columns = ("no.", "case", "work", "moved", "rate", "traffic", "bound by", "of the roof")
    return Section(
        "Roofline",
        figure(
            roofline("roof", points, limits.flop_per_s, limits.bytes_per_s),
            f"This machine's limits, measured: {limits.flop_per_s / 1e9:.4g} GFLOP/s and "
            f"{limits.bytes_per_s / 1e9:.4g} GB/s. A point below the slope waits for memory, one below the flat part "
            "for arithmetic.",
        )
        + table("Work of one call, and the share of what the machine allows", columns, rows)
        + "".join(note(f"{text[0].upper()}{text[1:]}.") for text in unreached(roof for _, roof in roofs)),
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
