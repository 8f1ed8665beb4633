"""Every name and every text is text: a damaged one would travel far before it surfaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
from google.protobuf.descriptor import FieldDescriptor

from trtc.compiler.passes.result import PassResult
from trtc.profiles import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message

_TENSOR_FIELDS = ("name", "doc_string", "external_data", "metadata_props")
"""The text fields of a tensor, read one by one: listing all of its fields would copy its data."""


def run(model: onnx.ModelProto) -> PassResult:
    """Refuse text that is not UTF-8; nothing is changed. Protobuf hands it out as bytes, without an error.

    Raises:
        ModelError: naming the field.
    """
    waiting: list[Message] = [model]
    while waiting:
        message = waiting.pop()
        for field, values in _fields(message):
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                waiting.extend(values)
            elif not all(isinstance(value, str) for value in values):
                raise ModelError(
                    f"{field.full_name} {next(v for v in values if not isinstance(v, str))[:40]!r} is not UTF-8 text; "
                    "the model is damaged, fetch or export it again"
                )
    return PassResult(model, changed=False)


def _fields(message: Message) -> Iterator[tuple[Any, Any]]:
    """Yield the fields of a message that are text or messages, each with its values."""
    if isinstance(message, onnx.TensorProto):
        by_name = message.DESCRIPTOR.fields_by_name
        listed = [(by_name[name], getattr(message, name)) for name in _TENSOR_FIELDS]
    else:
        listed = message.ListFields()
    for field, value in listed:
        if field.type in {FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_STRING}:
            yield field, value if field.is_repeated else [value]
