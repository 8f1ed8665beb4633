"""What a program asks a session about its model, answered from the manifest as ONNX Runtime would answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trtc.engines.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtc.engines.manifest import Manifest, ValueInfo


class NodeArg(Value, frozen=True, eq=False):
    """An input or output: name, type such as ``tensor(float)``, and shape of numbers, names and None."""

    name: str
    type: str
    dims: tuple[int | str | None, ...]

    @property
    def shape(self) -> list[int | str | None]:
        """A list of the caller's own."""
        return list(self.dims)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata(Value, frozen=True, eq=False):
    """The model's own words about itself."""

    properties: dict[str, str] = msgspec.field(default_factory=dict)
    description: str = ""
    domain: str = ""
    graph_description: str = ""
    graph_name: str = ""
    producer_name: str = ""
    version: int = 0

    @property
    def custom_metadata_map(self) -> dict[str, str]:
        """What the model says by keys: a dict of the caller's own."""
        return dict(self.properties)


class Facts(Value, frozen=True):
    """Answers of one session.

    Attributes:
        inputs, outputs, overridable: as ONNX Runtime lists them.
        meta: None where the bundle does not hold it.
    """

    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    meta: ModelMetadata | None


def facts_of(manifest: Manifest) -> Facts | None:
    """Read the answers from a manifest; None where it does not hold them."""
    original = manifest.original
    if original is None:
        return None
    meta = None
    if original.info is not None:
        info = original.info
        meta = ModelMetadata(
            properties=dict(manifest.metadata),
            description=info.description,
            domain=info.domain,
            graph_description=info.graph_description,
            graph_name=info.graph_name,
            producer_name=info.producer_name,
            version=info.version,
        )
    return Facts(_args(original.inputs), _args(original.outputs), _args(original.overridable), meta)


def _args(values: Sequence[ValueInfo]) -> list[NodeArg]:
    return [NodeArg(value.name, value.type, tuple(value.shape)) for value in values]
