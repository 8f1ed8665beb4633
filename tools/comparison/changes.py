"""What changed from one bundle to another, as their manifests say: plan, engines, evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trtc.engines.bundle import bundle_size_bytes

if TYPE_CHECKING:
    from trtc.engines.manifest import EngineRecord, Manifest


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change. ``part``: source, plan, engines or evidence. ``old`` and ``new`` are texts; empty where it is not."""

    part: str
    what: str
    old: str
    new: str


def changes_between(old: Manifest, new: Manifest) -> list[Change]:
    """List what differs; figures that are measured anew by every build are left out."""
    found: list[Change] = []
    for part, before, after in (
        ("source", _source(old), _source(new)),
        ("plan", _plan(old), _plan(new)),
        ("engines", _engines(old), _engines(new)),
        ("evidence", _evidence(old), _evidence(new)),
    ):
        found += [
            Change(part=part, what=what, old=before.get(what, ""), new=after.get(what, ""))
            for what in dict.fromkeys([*before, *after])
            if before.get(what, "") != after.get(what, "")
        ]
    return found


def _source(m: Manifest) -> dict[str, str]:
    return {
        "model": m.source.sha256,
        "opsets": _texts(m.source.opsets),
        "trtc": m.build.trtc,
        **{f"library {name}": text for name, text in sorted(m.build.libraries.items())},
    }


def _plan(m: Manifest) -> dict[str, str]:
    plan = {f"input {spec.name}": str(spec) for spec in m.signature.inputs}
    plan |= {f"output {spec.public_name}": str(spec) for spec in m.signature.outputs}
    plan |= {f"profile {profile.name}": str(profile).partition(": ")[2] for profile in m.ladder.profiles}
    for rule in m.padding:
        plan[f"padding {rule.symbol}"] = f"{rule.side}, {_texts(rule.fills)}" if rule.fills else rule.side
    plan |= {f"derived {derived.input}": str(msgspec.to_builtins(derived)) for derived in m.derived}
    plan["runs"] = "exact sizes" if m.execution.mode == "exact" else "padded to the bucket"
    plan["slots and threads"] = f"{m.execution.slots or 'host'} x {m.execution.threads or 'host'}"
    plan["tolerance"] = f"atol {m.tolerance[0]:g}, rtol {m.tolerance[1]:g}"
    return plan


def _engines(m: Manifest) -> dict[str, str]:
    found = {"order": ", ".join(record.name for record in m.engines), "size": str(bundle_size_bytes(m))}
    for record in m.engines:
        found |= {f"{record.name}: {what}": text for what, text in _engine(record).items()}
    return found


def _engine(record: EngineRecord) -> dict[str, str]:
    needs = msgspec.to_builtins(record.requirements)
    return {
        "backend": record.backend,
        "target": record.target,
        "precision": record.precision,
        "options": _texts(record.options),
        "needs": "; ".join(f"{name} {_plain(value)}" for name, value in sorted(needs.items())),
        "verified": str(record.verified).lower(),
        "files": ", ".join(sorted(f"{file.sha256[:12]} ({file.size_bytes} bytes)" for file in record.files)),
        **{f"memory of {memory.profile}": str(memory.slot_bytes) for memory in record.memory},
    }


def _evidence(m: Manifest) -> dict[str, str]:
    found: dict[str, str] = {}
    for evidence in m.evidence:
        state = "accepted" if evidence.accepted else "deviation accepted" if evidence.deviation_accepted else "refused"
        claim = f"{evidence.kind} of {evidence.symbol}"
        found[claim] = state
        for name, domain in sorted(evidence.domain.items()):
            rows = ", no row all zero" if domain.rows_nonzero else ""
            found[f"{claim}: values of {name}"] = f"{domain.low:g}..{domain.high:g}{rows}"
    for record in m.engines:
        for v in record.verification:
            state = "not compared" if not v.ran else "passed" if v.passed else "differs"
            found[f"{record.name} in {v.profile}, {v.mode}, against {v.reference}"] = state
    return found


def _texts(values: Any) -> str:
    return ", ".join(f"{name}={_plain(value)}" for name, value in sorted(values.items()))


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
