"""IR version and operator sets: read before anything else, found and supported both said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.supported import ir_limit, opset_limits
from trtc.compiler.passes.walk import STANDARD_DOMAIN, model_nodes, plain_domain, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx

_OLDEST_KERNELS = 7
"""ONNX Runtime's documentation: kernels of the standard domain begin at operator set 7."""


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse versions that the installed libraries do not read; spell the standard domain one way.

    Raises:
        ModelError: all problems with versions at once.
    """
    changed = _spell_domains(model)
    problems = _ir_problems(model)
    imports, found = _imports(model.opset_import, "the model")
    problems += found
    if not model.opset_import:
        limit = opset_limits()[STANDARD_DOMAIN]
        problems.append(f"the model imports no operator set at all ({limit}); export it with an opset import")
    for function in model.functions:
        problems += _imports(function.opset_import, f"local function {function.name!r}")[1]
    refuse(problems, "versions:")
    if len(imports) < len(model.opset_import):
        del model.opset_import[:]
        for domain, version in imports.items():
            model.opset_import.add(domain=domain, version=version)
        changed = True
    notes: tuple[str, ...] = ()
    if imports.get(STANDARD_DOMAIN, _OLDEST_KERNELS) < _OLDEST_KERNELS:
        old = f"opset {imports[STANDARD_DOMAIN]} is older than {_OLDEST_KERNELS}, where ONNX Runtime's kernels begin"
        notes = (f"{old}; should the build fail, upgrade the model with onnx.version_converter",)
    return PassResult(model, changed, notes)


def _ir_problems(model: onnx.ModelProto) -> list[str]:
    limit = ir_limit()
    if not model.ir_version:
        return [f"ir_version is not set ({limit}); export the model again, or set the version it was written for"]
    if not 1 <= model.ir_version <= limit.newest:
        return [f"ir_version {model.ir_version}, but {limit}; export for an older version, or install newer libraries"]
    return []


def _imports(entries: Iterable[onnx.OperatorSetIdProto], whose: str) -> tuple[dict[str, int], list[str]]:
    """Return version by domain, and what is wrong with them. Unknown domains are judged by who uses them, later."""
    imports: dict[str, int] = {}
    problems = []
    for entry in entries:
        domain, version = entry.domain, entry.version
        shown = domain or "ai.onnx"
        limit = opset_limits().get(domain)
        if imports.setdefault(domain, version) != version:
            problems.append(f"{whose} imports {shown} twice, as {imports[domain]} and {version}; keep one")
        elif limit is not None and not 1 <= version <= limit.newest:
            problems.append(
                f"{whose} imports opset {version} of {shown}, but supported is 1..{limit.newest} ({limit}); "
                "export for a supported opset, or install newer libraries"
            )
    return imports, problems


def _spell_domains(model: onnx.ModelProto) -> bool:
    changed = False
    entries = [*model.opset_import, *model_nodes(model), *model.functions]
    entries += [entry for function in model.functions for entry in function.opset_import]
    for entry in entries:
        if plain_domain(entry.domain) != entry.domain:
            entry.domain = STANDARD_DOMAIN
            changed = True
    return changed
