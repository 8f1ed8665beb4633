"""``trtc check``: what a build would support and refuse, and why; nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.profiles import CheckError, ModelError
from trtc.tools.build import model_path
from trtc.tools.output import Progress, print_json, print_line, print_note, print_table, size_text
from trtc.tools.shape_options import ArgumentOrder, model_options, options_from, shape_options

if TYPE_CHECKING:
    from trtc.compiler.support import Support
    from trtc.engines.manifest import Evidence

SCHEMA = "trtc.check/1"
_YES = {True: "yes", False: "no"}


@click.command(cls=ArgumentOrder)
@click.argument("model", type=click.Path(path_type=Path), required=False)
@click.option("--onnx", type=click.Path(path_type=Path), hidden=True)
@shape_options
@model_options
@click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object (schema {SCHEMA}).")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def check(ctx: click.Context, /, model: Path | None, onnx: Path | None, **given: Any) -> None:
    """Say what a build of MODEL with these options would support and refuse. Takes the options of build.

    Exit codes: 0 supported; 1 a declared padding is refused; 2 wrong use; 3 a target does not support the model.

    \b
    Example:
      trtc check model.onnx --dim batch=1..8 --dim seq=1..128 --pad seq --fill input_ids=0
    """  # noqa: D301 (\b is how click is told to leave lines as they are)
    from trtc.compiler.prove import is_refused, refusal_text
    from trtc.compiler.support import check_support

    as_json, quiet = given.pop("as_json"), given.pop("quiet")
    progress = Progress(quiet=quiet or as_json)
    try:
        found = check_support(model_path(model, onnx), options_from(ctx, given), progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    if as_json:
        _print_json(found)
    elif not quiet:
        _show(found)
    unsupported = [f"target {t.target}: {t.reason}" for t in found.targets if not t.supported]
    if found.problem or unsupported:
        raise ModelError(found.problem or "; ".join(unsupported))
    if refused := [e for e in found.evidence if is_refused(e)]:
        raise CheckError("; ".join(refusal_text(e) for e in refused))


def _print_json(found: Support) -> None:
    sizes = found.sizes or {}
    print_json(
        SCHEMA,
        {
            "supported": not found.problem and all(t.supported for t in found.targets),
            "problem": found.problem,
            "targets": found.targets,
            "signature": found.signature,
            "sizes": sizes,
            "profiles": found.profiles,
            "memory": [{"profile": m.profile, "slot_bytes": m.slot_bytes} for m in found.memory],
            "claims": [{**_claim(e), "findings": e.findings} for e in found.evidence],
            "notes": found.notes,
        },
    )


def _claim(evidence: Evidence) -> dict[str, Any]:
    worst = max(evidence.findings, key=lambda f: f.max_abs - f.allowed, default=None)
    verdict = "accepted" if evidence.accepted else "deviation accepted" if evidence.deviation_accepted else "refused"
    return {
        "kind": evidence.kind,
        "symbol": evidence.symbol,
        "verdict": verdict,
        "runs": evidence.runs,
        "max_abs": None if worst is None else worst.max_abs,
        "allowed": None if worst is None else worst.allowed,
        "output": None if worst is None else worst.output,
        "detail": evidence.detail,
    }


def _show(found: Support) -> None:
    for note in found.notes:
        print_note(note)
    rows = [
        (t.target, _YES[t.installed], _YES[t.needs_ranges], "yes" if t.supported else "NO", t.reason)
        for t in found.targets
    ]
    print_table("targets", ("target", "installed", "needs ranges", "supported", "reason"), rows)
    if found.signature is None:
        return
    print_line()
    for kind, specs in (("input", found.signature.inputs), ("output", found.signature.outputs)):
        for spec in specs:
            print_line(f"{kind:6} {spec}")
    if found.sizes:
        print_line()
        print_table(
            "sizes that run", ("symbol", "sizes", "outside"), [(s, str(r), r.reason) for s, r in found.sizes.items()]
        )
    print_line()
    memory = {m.profile: size_text(m.slot_bytes) for m in found.memory}
    print_table(
        "profiles",
        ("profile", "sizes", "planned memory of a call"),
        [(p.name, str(p).partition(": ")[2], memory.get(p.name, "grows with the request")) for p in found.profiles],
    )
    claims = [_claim(e) for e in found.evidence]
    if claims:
        print_line()
        print_table(
            "claims",
            ("claim", "verdict", "runs", "largest difference", "allowed", "detail"),
            [
                (
                    f"{'rows along' if c['kind'] == 'rows' else 'padding'} {c['symbol']}",
                    c["verdict"],
                    c["runs"],
                    "-" if c["max_abs"] is None else f"{c['max_abs']:.3g} in {c['output']}",
                    "-" if c["allowed"] is None else f"{c['allowed']:.3g}",
                    c["detail"],
                )
                for c in claims
            ],
        )
