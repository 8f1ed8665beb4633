"""The report for people: trtexec's block first, then ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import sizes_text
from trtc.tools.bench.limits import share_text, unreached
from trtc.tools.bench.parts import enqueue_line, parts_text
from trtc.tools.bench.results import most_called
from trtc.tools.durations import seconds_text
from trtc.tools.output import counted, print_facts, print_line, print_note, print_table, print_text, size_text

if TYPE_CHECKING:
    from trtc.tools.bench.ratio import Ratio
    from trtc.tools.bench.results import BenchReport, CaseResult, PeerResult
    from trtc.tools.bench.summary import Summary

SIZES_SHOWN = 40
LATE = 0.01
_UNSTEADY = 0.2


def show_report(report: BenchReport) -> None:
    """Print everything."""
    print_facts(_about(report))
    for text in generated_texts(report):
        print_note(text)
    if len(report.cases) > 1:
        print_line()
        _show_overview(report)
    for case in report.cases:
        print_line()
        _show_case(report, case)
    print_line()
    _show_memory(report)
    roofs = [case.roof for case in report.cases if case.roof]
    for text in (*report.notes, *report.conditions.warnings, *unreached(roofs)):
        print_note(text)


def generated_texts(report: BenchReport) -> list[str]:
    """Say which inputs were made up, and of which values."""
    pairs = dict.fromkeys(pair for case in report.cases for pair in case.generated.items())
    return [f"input {name!r} was generated: {text}" for name, text in pairs]


def trtexec_block(report: BenchReport, case: CaseResult) -> list[str]:
    """Write the summary as trtexec does, in milliseconds."""
    lines = [
        "=== Performance summary ===",
        f"Throughput: {case.per_second:.6g} qps",
        f"Latency: {_milliseconds(case.latency)}",
    ]
    if line := enqueue_line(case):
        lines.append(line)
    lines.append(f"GPU Compute Time: none, engine {report.engine} runs on target {report.target}"
                 if report.target in ("cpu", "null") else "GPU Compute Time: not told by this engine")  # fmt: skip
    lines.append(f"Total Host Walltime: {case.elapsed_s:.6g} s")
    lines.append(f"Transfers: {report.transfers}. CUDA graphs: {report.graphs}")
    return lines


def _about(report: BenchReport) -> list[tuple[str, str]]:
    sizes = "exact sizes" if report.mode == "exact" else "padded to the bucket"
    workers = f"{counted(report.slots, 'slot')}, {counted(report.threads, 'thread')} a call"
    warm_up = f"after {report.warm_up_s * 1e3:g} ms of warm-up"
    budget = f"{warm_up}, at least {counted(report.iterations, 'call')} and {report.duration_s:g} s"
    return [
        (
            "bundle",
            f"{report.bundle}, engine {report.engine} ({report.backend}), loaded in {seconds_text(report.load_s)}",
        ),
        ("runs", f"{sizes}, {workers}; idle threads: {report.idle_threads}"),
        ("host", ", ".join(report.host.values())),
        ("with", ", ".join(f"{name} {number}" for name, number in report.versions.items())),
        ("measured", f"{budget} each"),
    ]


def _show_case(report: BenchReport, case: CaseResult) -> None:
    print_line(f"{case.name}: {loop_text(case)}")
    for line in trtexec_block(report, case):
        print_line(f"  {line}")
    latency = case.latency
    print_line(f"  {latency.count} calls, the middle half spreads over {latency.spread:.1%} of the median")
    if latency.spread > _UNSTEADY and len(case.sizes) == 1:
        print_line("  unsteady: a difference smaller than that is noise; stop other work, or measure longer")
    if case.loop == "open":
        print_line(f"  {waited_text(case)}")
        if text := rate_text(case):
            print_line(f"  {text}")
    print_text(f"  {parts_text(case)}")
    _show_sizes(case)
    if case.peer is not None:
        _show_peer(case.peer)
    if case.roof is not None:
        roof = case.roof
        print_line(
            f"  {roof.flop / 1e6:.6g} MFLOP and {size_text(roof.moved_bytes)} moved: "
            f"{roof.flop_per_s / 1e9:.4g} GFLOP/s ({share_text(roof.flop_share)} of this machine), "
            f"{roof.bytes_per_s / 1e9:.4g} GB/s ({share_text(roof.bytes_share)}); bound by {roof.bound}, "
            f"{share_text(roof.roof_share)} of what it allows"
        )


def waited_text(case: CaseResult) -> str:
    """Say what a call of an open loop takes by itself, and how many had to wait."""
    return (
        f"a call itself takes {seconds_text(case.service.median_s)}; {case.late_share:.1%} of the calls began "
        "more than 1 ms late, because every caller was busy"
    )


def rate_text(case: CaseResult) -> str:
    """Say that the rate of an open loop was not kept; empty where it was."""
    if case.rate_per_second is None or case.per_second >= (1 - LATE) * case.rate_per_second:
        return ""
    return (
        f"the rate was not kept: {case.per_second:.6g} of {case.rate_per_second:.6g} calls per second ended, "
        "so the queue grows and latency depends on how long is measured"
    )


def loop_text(case: CaseResult) -> str:
    """Say how calls were made."""
    who = "1 caller" if case.callers == 1 else f"{case.callers} callers"
    if case.rate_per_second is None:
        return f"closed loop, {who}"
    return f"open loop, {case.rate_per_second:g} calls per second, up to {case.callers} at once"


def _show_sizes(case: CaseResult) -> None:
    rows = [
        (
            sizes_text(s.sizes),
            s.profile or "?",
            sizes_text(s.run_sizes) if s.run_sizes != s.sizes else "same",
            f"{s.waste:.1%}",
            seconds_text(s.first_call_s),
            s.latency.count if s.latency is not None else 0,
            seconds_text(s.latency.median_s) if s.latency is not None else "-",
        )
        for s in most_called(case.sizes, SIZES_SHOWN)
    ]
    print_table("", ("sizes", "profile", "run at", "padding", "first call", "calls", "median"), rows)
    if len(case.sizes) > SIZES_SHOWN:
        print_line(f"  and {len(case.sizes) - SIZES_SHOWN} more sizes with fewer calls (--json has all)")


def _show_peer(found: PeerResult) -> None:
    ours, peer = compared_texts(found)
    print_text(f"  in turns with {found.name} {found.version}: ours {ours}, the peer {peer}; {ratio_text(found.ratio)}")
    print_line(f"  idle threads: {found.idle_threads}")
    if found.agrees:
        print_line("  the answers agree within the bundle's tolerance")
    else:
        worst = ", ".join(f"{name} by {value:.3g}" for name, value in found.differences.items())
        print_note(f"the answers differ beyond the bundle's tolerance ({worst}): this is not the same work")


def compared_texts(found: PeerResult) -> tuple[str, str]:
    """Write the two medians that the ratio is made of, with enough digits to divide them."""
    return _fine(found.ratio.ours_s), _fine(found.ratio.peer_s)


def _fine(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us" if seconds < 1e-3 else f"{seconds * 1e3:.4g} ms"  # noqa: PLR2004 (a millisecond)


def verdict_text(ratio: Ratio) -> str:
    """Say who is faster, or why nobody is called so."""
    others = {"noise": "within noise", "loaded": "no verdict, the machine was loaded"}
    return others.get(ratio.verdict, ratio.verdict)


def ratio_text(ratio: Ratio) -> str:
    """Say who is faster, and how sure that is."""
    how = f"at {ratio.confidence:.0%}, {ratio.rounds} rounds"
    return f"{ratio.ratio:.3f} of its time ({ratio.low:.3f}..{ratio.high:.3f} {how}): {verdict_text(ratio)}"


def _show_overview(report: BenchReport) -> None:
    rows: list[tuple[object, ...]] = []
    for case in report.cases:
        latency = case.latency
        row: list[object] = [
            case.name,
            seconds_text(latency.median_s),
            *(seconds_text(value) for value in latency.percentiles_s.values()),
            f"{latency.spread:.1%}",
            f"{case.per_second:.4g}",
        ]
        if any(c.peer for c in report.cases):
            row.append(f"{case.peer.ratio.ratio:.3f}" if case.peer else "-")
        if any(c.roof for c in report.cases):
            row += [f"{case.roof.flop_per_s / 1e9:.4g}", share_text(case.roof.roof_share)] if case.roof else ["-", "-"]
        rows.append(tuple(row))
    columns = ["case", "median", *report.cases[0].latency.percentiles_s, "spread", "per second"]
    columns += ["ratio"] if any(c.peer for c in report.cases) else []
    columns += ["GFLOP/s", "of the roof"] if any(c.roof for c in report.cases) else []
    print_table("all cases", columns, rows)
    if report.limits is not None:
        print_line(
            f"limits of this machine, measured: {report.limits.flop_per_s / 1e9:.4g} GFLOP/s, "
            f"{report.limits.bytes_per_s / 1e9:.4g} GB/s"
        )


def _show_memory(report: BenchReport) -> None:
    memory = report.memory
    print_line(
        f"memory: {size_text(memory.resident_bytes)} resident ({size_text(memory.loaded_bytes)} by loading), "
        f"{size_text(memory.arena_bytes)} planned; each call {memory.arena_allocations_per_call:g} reservations, "
        f"{size_text(memory.new_bytes_per_call)} new for results"
    )
    found = report.conditions.after
    clock = "not told" if found.frequency_mhz is None else f"{found.frequency_mhz:.0f} MHz"
    thermal = "not told" if found.thermal_events is None else "yes" if _slowed(report) else "no"
    print_line(f"processor: clock {clock}, governor {found.governor or 'not told'}, slowed by temperature: {thermal}")


def _slowed(report: BenchReport) -> bool:
    before, after = report.conditions.before.thermal_events or 0, report.conditions.after.thermal_events or 0
    return after > before


def _milliseconds(summary: Summary) -> str:
    figures = [("min", summary.min_s), ("max", summary.max_s), ("mean", summary.mean_s), ("median", summary.median_s)]
    shares = [(f"percentile({name[1:]}%)", value) for name, value in summary.percentiles_s.items()]
    return ", ".join(f"{name} = {seconds * 1e3:.6g} ms" for name, seconds in [*figures, *shares])
