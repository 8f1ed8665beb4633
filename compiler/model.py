"""The model: a validated ONNX graph in a private folder, with all that the compiler may rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 (a field of a frozen value)
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

    from trtc.compiler.external_data import Piece


@dataclass(frozen=True, slots=True)
class Model:
    """A model that was checked and brought into one form.

    The form: no local functions, unique node names, nodes in dependency order, no input that is also an output,
    no two outputs that are one value, every dynamic axis of an input with a symbol of its own or a shared one.

    Attributes:
        proto: the graph; external tensors name files in ``folder``. Treat it as immutable.
        folder: private to this build; holds ``path`` and the external data. The source may vanish.
        path: the serialized ``proto``.
        sha256: of the source: model file and external data, by content.
        size_bytes: of the same.
        file_sha256: of the model file alone.
        external: pieces of other files that its tensors use, in the order in which ``sha256`` covers them.
        notes: what was changed or found odd, for people.
        public_outputs: name in the graph to the name that callers know, for outputs whose own name the form could not
            keep (an output that is also an input); empty for nearly every model.
    """

    proto: onnx.ModelProto
    folder: Path
    path: Path
    sha256: str
    size_bytes: int
    file_sha256: str = ""
    external: tuple[Piece, ...] = ()
    notes: tuple[str, ...] = ()
    public_outputs: dict[str, str] = field(default_factory=dict)
