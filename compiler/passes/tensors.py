"""Every stored tensor holds exactly the bytes that its dims and element type ask for.

Counted with unbounded integers and before anything is allocated, so that dims of 2**40 by 2**40 cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from onnx import TensorProto

from trtc.compiler.passes.result import PassResult
from trtc.compiler.passes.walk import model_graphs, model_nodes, node_text
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import onnx

_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


@dataclass(frozen=True, slots=True)
class ElementLayout:
    """How one element type is stored (onnx.proto, TensorProto).

    Attributes:
        bits: of one element in raw bytes; 0 for strings, which have no raw form.
        field: the typed field that may hold elements instead.
        entries: entries of that field for each ``elements`` elements.
        elements: see ``entries``; more than one where an entry packs several.
    """

    bits: int
    field: str
    entries: int = 1
    elements: int = 1

    def size_bytes(self, count: int) -> int:
        """Bytes that ``count`` elements take, the last byte filled up."""
        return (count * self.bits + 7) // 8

    def field_entries(self, count: int) -> int:
        """Entries of the typed field that ``count`` elements take, the last one filled up."""
        return -(-count * self.entries // self.elements)


LAYOUTS: dict[int, ElementLayout] = {
    TensorProto.FLOAT: ElementLayout(32, "float_data"),
    TensorProto.DOUBLE: ElementLayout(64, "double_data"),
    TensorProto.COMPLEX64: ElementLayout(64, "float_data", entries=2),
    TensorProto.COMPLEX128: ElementLayout(128, "double_data", entries=2),
    TensorProto.INT64: ElementLayout(64, "int64_data"),
    TensorProto.UINT64: ElementLayout(64, "uint64_data"),
    TensorProto.UINT32: ElementLayout(32, "uint64_data"),
    TensorProto.INT32: ElementLayout(32, "int32_data"),
    TensorProto.STRING: ElementLayout(0, "string_data"),
}
"""Layout by element type number; types that the installed onnx does not know are absent."""

for _bits, _names in {
    16: ("FLOAT16", "BFLOAT16", "INT16", "UINT16"),
    8: ("INT8", "UINT8", "BOOL", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
    6: ("FLOAT6E2M3", "FLOAT6E3M2"),
    4: ("INT4", "UINT4", "FLOAT4E2M1"),
    2: ("INT2", "UINT2"),
}.items():
    for _name in _names:
        if _name in TensorProto.DataType.keys():  # noqa: SIM118 (an enum wrapper, not a dict)
            LAYOUTS[TensorProto.DataType.Value(_name)] = ElementLayout(
                _bits, "int32_data", elements={4: 2, 2: 4}.get(_bits, 1)
            )


def run(model: onnx.ModelProto) -> PassResult:
    """Check every tensor; nothing is changed.

    Raises:
        ModelError: for the first tensor whose stored size is not what it declares, and for sparse tensors.
    """
    for tensor, where in model_tensors(model):
        check_tensor(tensor, where)
    return PassResult(model, changed=False)


def model_tensors(model: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, str]]:
    """Yield every stored tensor of graph, subgraphs, attributes and local functions, and how to name it.

    Raises:
        ModelError: for a sparse tensor.
    """
    for graph in model_graphs(model):
        if graph.sparse_initializer:
            name = graph.sparse_initializer[0].values.name
            raise ModelError(f"sparse initializer {name!r}: sparse tensors are not supported; export it dense")
        for tensor in graph.initializer:
            yield tensor, f"initializer {tensor.name!r}"
    for node in model_nodes(model):
        if node.attribute:
            yield from _attribute_tensors(node.attribute, node_text(node))
    for function in model.functions:
        yield from _attribute_tensors(function.attribute_proto, f"local function {function.name!r}")


def check_tensor(tensor: onnx.TensorProto, where: str) -> None:
    """Compare what a tensor declares with what it stores.

    Raises:
        ModelError: when they differ. Size and place of external data are checked where the file is opened.
    """
    layout = LAYOUTS.get(tensor.data_type)
    if layout is None:
        raise ModelError(f"{where}: element type {tensor.data_type} is unknown; export the model again")
    if any(dim < 0 for dim in tensor.dims):
        raise ModelError(f"{where}: dims {list(tensor.dims)}, but a stored tensor has no negative dim; export it again")
    if tensor.HasField("segment"):
        raise ModelError(f"{where}: stored in segments, which no library reads; export the model again")
    filled = [field for field in _FIELDS if len(getattr(tensor, field))]
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, layout, filled, where)
        return
    if tensor.external_data:
        raise ModelError(f"{where}: names external data but is not marked as external; export the model again")
    raw = tensor.HasField("raw_data") and bool(tensor.raw_data)
    if raw and (filled or not layout.bits):
        extra = filled[0] if filled else "a string type"
        raise ModelError(f"{where}: holds raw_data beside {extra}; a tensor has one form of data, export it again")
    if wrong := [field for field in filled if field != layout.field]:
        raise ModelError(f"{where}: holds {wrong[0]}, but its type is stored in {layout.field}; export it again")
    count = prod(tensor.dims)
    found = len(tensor.raw_data) if raw else len(getattr(tensor, layout.field))
    needed = layout.size_bytes(count) if raw else layout.field_entries(count)
    if found != needed:
        unit = "bytes of raw_data" if raw else f"entries of {layout.field}"
        raise ModelError(
            f"{where}: dims {list(tensor.dims)} and type {TensorProto.DataType.Name(tensor.data_type).lower()} "
            f"need {needed} {unit}, found {found}; the file is damaged, fetch or export it again"
        )


def _check_external(tensor: onnx.TensorProto, layout: ElementLayout, filled: list[str], where: str) -> None:
    if not layout.bits:
        raise ModelError(f"{where}: strings cannot be external data; store them in the model file")
    if filled or (tensor.HasField("raw_data") and tensor.raw_data):
        raise ModelError(f"{where}: marked as external, but holds data too; a tensor has one form of data")


def _attribute_tensors(attributes: Iterable[onnx.AttributeProto], whose: str) -> Iterator[tuple[onnx.TensorProto, str]]:
    for attribute in attributes:
        where = f"attribute {attribute.name!r} of {whose}"
        if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
            raise ModelError(f"{where}: sparse tensors are not supported; export it dense")
        if attribute.HasField("t"):
            yield attribute.t, where
        for tensor in attribute.tensors:
            yield tensor, where
