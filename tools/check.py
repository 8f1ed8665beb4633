"""``trtc check``: what a build would support and refuse, and why; nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtc.profiles import CheckError, ModelError
from trtc.profiles.grammar import pad_rules
from trtc.tools.build import model_path
from trtc.tools.claims import claim_text, worst_of
from trtc.tools.output import (
    Progress,
    print_json,
    print_line,
    print_note,
    print_signature,
    print_table,
    print_text,
    size_text,
)
from trtc.tools.shape_options import ArgumentOrder, model_options, options_from, shape_options

if TYPE_CHECKING:
    from trtc.compiler.options import BuildOptions
    from trtc.compiler.support import Support
    from trtc.engines.manifest import Evidence
    from trtc.profiles import PadRule

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
        options = options_from(ctx, given)
        found = check_support(model_path(model, onnx), options, progress)
    except BaseException:
        progress.drop()
        raise
    progress.done()
    if as_json:
        _print_json(found, _rules(found, options))
    elif not quiet:
        _show(found, _rules(found, options))
    unsupported = [f"target {t.target}: {t.reason}" for t in found.targets if not t.supported]
    if found.problem or unsupported:
        raise ModelError(found.problem or "; ".join(unsupported))
    if refused := [e for e in found.evidence if is_refused(e)]:
        raise CheckError("; ".join(refusal_text(e) for e in refused))


def _rules(found: Support, options: BuildOptions) -> tuple[PadRule, ...]:
    """Return the padding that was asked for; none for a model that cannot be built."""
    if found.signature is None:
        return ()
    dims = found.signature.input_dims
    return pad_rules(options.pads, options.fills, dims, accept_error=options.accept_padding_error)


def _print_json(found: Support, rules: tuple[PadRule, ...]) -> None:
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
            "padding": rules,
            "claims": [{**_claim(e), "findings": e.findings} for e in found.evidence],
            "notes": found.notes,
        },
    )


def _claim(evidence: Evidence) -> dict[str, Any]:
    worst = worst_of(evidence.findings)
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


def _show(found: Support, rules: tuple[PadRule, ...]) -> None:
    for note in found.notes:
        print_note(note)
    # Why a target does not support the model is the error that follows.
    rows = [(t.target, _YES[t.installed], _YES[t.needs_ranges], "yes" if t.supported else "NO") for t in found.targets]
    print_table("targets", ("target", "installed", "needs ranges", "supported"), rows)
    for target in found.targets:
        if target.nodes:
            print_line()
            nodes = [(n.node or n.operator, n.operator if n.node else "", n.message) for n in target.nodes]
            print_table(f"what {target.target} cannot build", ("node", "operator", "why"), nodes)
    if found.signature is None:
        return
    print_line()
    print_signature(found.signature)
    if found.sizes:
        print_line()
        print_table("sizes that run", ("symbol", "sizes"), [(s, str(rule)) for s, rule in found.sizes.items()])
    print_line()
    memory = {m.profile: size_text(m.slot_bytes) for m in found.memory}
    print_table(
        "profiles",
        ("profile", "sizes", "planned memory of a call"),
        [(p.name, str(p).partition(": ")[2], memory.get(p.name, "grows with the request")) for p in found.profiles],
    )
    if found.evidence:
        print_line()
    for evidence in found.evidence:
        # Why padding is refused is the error that follows.
        told = evidence.detail and (evidence.accepted or evidence.deviation_accepted)
        print_text(claim_text(evidence, rules) + (f" ({evidence.detail})" if told else ""))
