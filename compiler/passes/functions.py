"""Inline local functions: afterwards a model is one graph, and every name in it is its own."""

from __future__ import annotations

import copy
from collections import deque
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeAlias

import onnx

from trtc.compiler.passes.function_checks import Expansion, check_functions, check_references, function_key, node_key
from trtc.compiler.passes.limits import check_size
from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import (
    FreshNames,
    defined_names,
    definitions,
    node_graphs,
    node_text,
    rename_in_graph,
    rename_in_nodes,
    used_names,
    walk_graphs,
    walk_nodes,
)
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Key: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function."""

_MAX_BYTES = 2**31 - 1


def run(model: onnx.ModelProto) -> PassResult:
    """Replace every call of a local function by the function's nodes, under fresh names.

    Raises:
        ModelError: for missing imports, functions that call themselves, names that a function takes from outside, and
            expansions beyond the limits of a model.
    """
    check_references(model)
    if not model.functions:
        return PassResult(model, changed=False)
    functions = {function_key(function): function for function in model.functions}
    check_functions(model)
    _check_expansion(model, functions)
    names = used_names(model)
    for function in functions.values():
        names.update(_body_names(function))
    fresh = FreshNames(names)
    calls = 0
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        if any(node_key(node) in functions for node in graph.node):
            expanded = list(_expand(graph.node, functions, fresh))
            calls += 1
            del graph.node[:]
            graph.node.extend(expanded)
        waiting.extend(sub for node in graph.node for sub in node_graphs(node))
    _merge_imports(model)
    notes = (f"{len(functions)} local functions were inlined",) if calls else ()
    del model.functions[:]
    return PassResult(model, changed=True, notes=notes)


def _expand(
    nodes: Iterable[onnx.NodeProto], functions: dict[Key, onnx.FunctionProto], fresh: FreshNames
) -> Iterator[onnx.NodeProto]:
    """Yield nodes with all calls among them replaced; calls inside subgraphs are left for later."""
    waiting = deque(nodes)
    while waiting:
        node = waiting.popleft()
        function = functions.get(node_key(node))
        if function is None:
            yield copy.deepcopy(node)
        else:
            waiting.extendleft(reversed(_instance(node, function, fresh)))


def _instance(call: onnx.NodeProto, function: onnx.FunctionProto, fresh: FreshNames) -> list[onnx.NodeProto]:
    """Copy a function's body for one call: formal names become actual ones, all others fresh ones."""
    if len(call.input) > len(function.input) or len(call.output) > len(function.output):
        raise ModelError(
            f"{node_text(call)}: {len(call.input)} inputs and {len(call.output)} outputs, but local function "
            f"{function.name!r} takes {len(function.input)} and makes {len(function.output)}; export the model again"
        )
    prefix = call.name or call.op_type
    names = dict.fromkeys(function.input, "")
    names.update(zip(function.input, call.input, strict=False))
    actual = [call.output[i] if i < len(call.output) else "" for i in range(len(function.output))]
    direct: list[tuple[str, str]] = []  # outputs that are no node's own: an input, or listed a second time
    for formal, outer in zip(function.output, actual, strict=True):
        if formal in names:
            direct.append((formal, outer))
        else:
            names[formal] = outer or fresh.make(f"{prefix}/{formal}")
    for node in function.node:
        for name in node.output:
            if name and name not in names:
                names[name] = fresh.make(f"{prefix}/{name}")
    body = [copy.deepcopy(node) for node in function.node]
    _rename_inner(body, prefix, fresh)
    rename_in_nodes(body, names)
    _fill_attributes(body, call, function)
    for formal, outer in direct:
        if outer:
            body.append(onnx.helper.make_node("Identity", [names[formal]], [outer], name=f"{prefix}/{outer}"))
    for node in body:
        node.name = f"{prefix}/{node.name or node.op_type}"
    return body


def _rename_inner(body: list[onnx.NodeProto], prefix: str, fresh: FreshNames) -> None:
    """Give what subgraphs define fresh names, so that no actual name can be captured by one of them."""
    for node in body:
        for sub in node_graphs(node):
            for graph in walk_graphs(sub):
                names = {name: fresh.make(f"{prefix}/{name}") for name, _ in definitions(graph) if name}
                rename_in_graph(graph, names)


def _body_names(function: onnx.FunctionProto) -> set[str]:
    """Every name that a function's body defines, at any depth."""
    names = {name for node in function.node for name in node.output if name}
    for node in function.node:
        for sub in node_graphs(node):
            for graph in walk_graphs(sub):
                names |= defined_names(graph)
    return names


def _fill_attributes(body: list[onnx.NodeProto], call: onnx.NodeProto, function: onnx.FunctionProto) -> None:
    """Replace references to the function's attributes by what the call gives, or the default, or nothing."""
    given = {attribute.name: attribute for attribute in function.attribute_proto}
    given.update((attribute.name, attribute) for attribute in call.attribute)
    for node in list(walk_nodes(body)):
        if not any(attribute.ref_attr_name for attribute in node.attribute):
            continue
        filled = []
        for attribute in node.attribute:
            value = attribute
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in given:
                    continue
                value = copy.deepcopy(given[attribute.ref_attr_name])
                value.name = attribute.name
            filled.append(copy.deepcopy(value))
        del node.attribute[:]
        node.attribute.extend(filled)


def _check_expansion(model: onnx.ModelProto, functions: dict[Key, onnx.FunctionProto]) -> None:
    """Count what inlining would make, before making it: calls of calls grow without bound."""
    calls = {key: [k for n in walk_nodes(f.node) if (k := node_key(n)) in functions] for key, f in functions.items()}
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        cycle = " -> ".join("::".join(filter(None, key)) for key in error.args[1])
        raise ModelError(f"local functions call themselves: {cycle}; a function must not, export it again") from error
    sizes: dict[Key, Expansion] = {}
    for key in order:
        sizes[key] = Expansion.of(functions[key].node, sizes)
    whole = Expansion.of(model.graph.node, sizes)
    check_size(whole.nodes, whole.depth)
    if whole.size_bytes > _MAX_BYTES:
        raise ModelError(
            f"inlining the local functions would take {whole.size_bytes} bytes, but a protobuf holds at most "
            f"{_MAX_BYTES}; export the model without functions, or with external data"
        )


def _merge_imports(model: onnx.ModelProto) -> None:
    """Import what inlined bodies use, and drop the domains that only named functions."""
    used = {node.domain for node in walk_nodes(model.graph.node)}
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for function in model.functions:
        for entry in function.opset_import:
            versions.setdefault(entry.domain, entry.version)
    local = {function.domain for function in model.functions}
    del model.opset_import[:]
    for domain, version in versions.items():
        if domain in used or domain not in local:
            model.opset_import.add(domain=domain, version=version)
