"""Every operator is one that the reference can run; all that are not are listed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.supported import CONTRIB_DOMAIN, runtime_operators
from trtc.compiler.passes.walk import STANDARD_DOMAIN, listed, node_text, refuse, walk_nodes
from trtc.engines.onnxruntime import onnxruntime
from trtc.profiles import nearest_name

if TYPE_CHECKING:
    from collections.abc import Mapping


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse unknown operators; import ``com.microsoft`` where it is used without, and drop imports of domains unused.

    Raises:
        ModelError: with every unknown operator and the nodes that use it.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    users: dict[tuple[str, str], list[str]] = {}
    for node in walk_nodes(model.graph.node):
        users.setdefault((node.domain, node.op_type), []).append(node_text(node))
    used = {domain for domain, _ in users}
    known = {domain for domain, _ in runtime_operators()}
    notes = []
    if CONTRIB_DOMAIN in used and CONTRIB_DOMAIN not in versions:
        versions[CONTRIB_DOMAIN] = 1
        model.opset_import.add(domain=CONTRIB_DOMAIN, version=1)
        notes.append(f"{CONTRIB_DOMAIN} is used without an opset import; version 1 was added")
    problems = [
        f"{operator[0] or 'ai.onnx'}::{operator[1] or '(no op_type)'}: {reason}; used by {listed(nodes)}"
        for operator, nodes in users.items()
        if (reason := _fault(operator, versions, known)) is not None
    ]
    refuse(problems, "operators that cannot run:")
    foreign = [domain for domain in versions if domain not in known and domain not in used]
    if foreign:
        kept = [entry for entry in model.opset_import if entry.domain not in foreign]
        kept = [onnx.OperatorSetIdProto(domain=entry.domain, version=entry.version) for entry in kept]
        del model.opset_import[:]
        model.opset_import.extend(kept)
        notes.append(f"imports of domains that no node uses were dropped: {listed(sorted(foreign))}")
    return PassResult(model, changed=bool(notes), notes=tuple(notes))


def _fault(operator: tuple[str, str], versions: Mapping[str, int], known: set[str]) -> str | None:
    """Say why an operator cannot run, or None when it can."""
    domain, name = operator
    shown = domain or "ai.onnx"
    library = f"ONNX Runtime {onnxruntime.__version__}"
    if onnx.defs.has(name, domain) and operator not in runtime_operators():
        return f"defined by onnx {onnx.__version__}, but {library} has no such operator; export without it"
    if domain not in known:
        return f"foreign: {library} has no operators in this domain; export without custom operators"
    if domain not in versions:
        return f"the model does not import {shown}; add an opset import"
    sinces = runtime_operators().get(operator)
    if sinces is None:
        near = nearest_name(name, [n for d, n in runtime_operators() if d == domain])
        hint = f"; did the exporter mean {near}?" if near else ""
        kind = "standard" if domain == STANDARD_DOMAIN else "contrib" if domain == CONTRIB_DOMAIN else "library"
        return f"{kind} domain, but {library} has no operator of this name{hint}"
    fitting = [since for since in sinces if since <= versions[domain]]
    if not fitting:
        return f"first in opset {min(sinces)} of {shown}, and the model imports {versions[domain]}; export a newer one"
    if sinces[max(fitting)]:
        return f"removed in opset {max(fitting)} of {shown}, and the model imports {versions[domain]}; export it again"
    return None
