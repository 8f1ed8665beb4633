"""Bundles that ``trtc exec`` was given and no session was served by, and why."""

from __future__ import annotations

import os

from trtc.engines.source_digest import source_digest

TYPE_CHECKING = False  # importing typing takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_SHOWN = 3
"""Models that are named where none has the bundle's name."""


def not_used(
    bundles: Sequence[Mapping[str, str]], opened: Mapping[str, str], used: Collection[str]
) -> list[dict[str, str]]:
    """Say why bundles were not used; those that a model was opened for, and refused, are told of by the model's calls.

    Args:
        bundles: in the order in which they are looked through.
        opened: names of the model files that were opened, by their digests.
        used: paths of bundles that served a session.

    Returns:
        ``path`` and ``reason`` of each.
    """
    first: dict[str, str] = {}
    found = []
    for bundle in bundles:
        path = bundle["path"]
        digest = next((digest for digest in opened if _is_of(bundle, digest)), None)
        if digest is None:
            reason = _other_models(bundle, opened)
        elif (before := first.setdefault(digest, path)) != path:
            reason = f"{before}, another bundle of the same model, came first"
        else:
            continue
        if path not in used:
            found.append({"path": path, "reason": reason})
    return found


def _is_of(bundle: Mapping[str, str], digest: str) -> bool:
    """Tell whether a bundle is of a model file, as the program decides it."""
    try:
        alone = source_digest(bytes.fromhex(digest), b"")
    except ValueError:  # a line that is none of ours
        return False
    return digest == bundle["file_sha256"] or alone == bundle["source_sha256"]


def _other_models(bundle: Mapping[str, str], opened: Mapping[str, str]) -> str:
    built = bundle["file_sha256"]
    reason = "no model that was opened has the digest that it was built from" + (f" ({built[:12]})" if built else "")
    stem = os.path.splitext(os.path.basename(bundle["path"]))[0]
    same = [f"{name} ({digest[:12]})" for digest, name in opened.items() if os.path.splitext(name)[0] == stem]
    if same:
        return f"{reason}; {' and '.join(same)} was opened: if the model has changed since, build again"
    others = [f"{name} ({digest[:12]})" for digest, name in opened.items()]
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return reason + (f"; opened: {', '.join(others[:_SHOWN])}{more}" if others else "")
