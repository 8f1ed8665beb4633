"""Serve, record what is asked for, plan a ladder for it, and build exactly that.

    python examples/03_plan_from_traffic.py [--out FOLDER] [--quick]

First a bundle that serves every size as it comes, and records its traffic. Then a plan for that traffic: the padding is
proven, what sizes cost is measured on this machine, and the ladder is the best there is. Then the build of that plan.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
import numpy as np

from trtc.compiler import BuildOptions, PlanOptions, build, options_with_plan, plan_file_text, plan_model
from trtc.runtime import TrtcError, load
from trtc.tools.durations import seconds_text
from trtc.tools.output import Progress, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.compiler import PlannedModel
    from trtc.profiles import Ladder

SYMBOL = "sequence_length"
MASKED = ("input_ids=0", "attention_mask=0")


def serve(folder: Path, texts: Sequence[str], *, quick: bool) -> Path:
    """Answer requests of every size, and record how long they were; return the file."""
    bundle = folder / "as-they-come.trtc"
    if not bundle.exists():
        build(inputs.locate(*inputs.MINILM), bundle, BuildOptions(measure_s=0.0, verify_s=5.0 if quick else 30.0))
    traffic = folder / "traffic.jsonl"
    traffic.unlink(missing_ok=True)
    with load(bundle) as session:
        session.record_traffic(traffic)
        for encoding in inputs.tokenizer().encode_batch(list(texts)):
            ids = np.array([encoding.ids])
            session.run({"input_ids": ids, "attention_mask": np.ones_like(ids)}, ["461"])
    print_line(f"served {len(texts)} sentences; {traffic.name} holds their sizes and nothing else of them")
    return traffic


def plan(traffic: Path, options: BuildOptions) -> PlannedModel:
    """Plan the ladder for this traffic."""
    progress = Progress()
    try:
        return plan_model(inputs.locate(*inputs.MINILM), options, progress)
    finally:
        progress.done()
        print_line(f"planned for {traffic.name}")


def show(made: PlannedModel) -> None:
    """Print the ladder, the curve, and why the ladder is as long as it is."""
    result = made.planning.result
    rows = [
        (profile.name, str(profile.ranges[SYMBOL]), seconds_text(cost_s))
        for profile, cost_s in zip(result.ladder.profiles, result.ladder.cost_s, strict=True)
    ]
    print_table("profiles", ("profile", "tokens", "one run at the bucket"), rows)
    print_line()
    curve = [(p.profiles, seconds_text(p.expected_s), f"{p.waste:.1%}") for p in result.curve]
    print_table("lengths", ("profiles", "a request", "padding waste"), curve)
    print_line()
    print_line(f"chosen: {result.reason}")
    if made.planning.measured is not None:
        print_line(f"runs: {made.planning.measured.execution.reason}")


def build_exactly(folder: Path, made: PlannedModel, options: BuildOptions) -> Ladder:
    """Write the plan as people commit it, and build exactly that; return the ladder of the bundle."""
    path = folder / "plan.toml"
    path.write_text(plan_file_text(made, options), encoding="utf-8")
    rest = BuildOptions(verify_s=options.verify_s, measure_s=options.measure_s)
    report = build(inputs.locate(*inputs.MINILM), folder / "planned.trtc", options_with_plan(path, rest, frozen=True))
    print_line(f"built {report.path.name} exactly as {path.name} says")
    return report.manifest.ladder


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0 when the bundle has exactly the ladder of the plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for the bundles (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer sentences, less measuring")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)

    texts = inputs.sentences()[: 60 if given.quick else 600]
    traffic = serve(given.out, texts, quick=given.quick)
    options = BuildOptions(
        pads=(SYMBOL,), fills=MASKED, measure_s=2.0 if given.quick else 20.0, verify_s=10.0 if given.quick else 60.0
    )
    planning = PlanOptions(traffic=(traffic,), max_profiles=4 if given.quick else 8)
    made = plan(traffic, replace(options, plan=planning))
    show(made)
    return 0 if build_exactly(given.out, made, options) == made.planning.result.ladder else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except TrtcError as error:
        sys.exit(f"trtc: error: {error}")
