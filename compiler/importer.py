"""Load a model safely: recognise, check, normalise, and copy it into a private folder."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError

from trtc.compiler.external_data import store_external_data
from trtc.compiler.external_source import SourceRoot
from trtc.compiler.model import Model
from trtc.compiler.passes import run_passes
from trtc.compiler.recognize import MAX_PROTO_BYTES, decode_model, read_model_file
from trtc.engines.source_digest import source_digest
from trtc.profiles import HostError, ModelError, UsageError

if TYPE_CHECKING:
    import onnx

MODEL_FILE = "model.onnx"
_MANY_NODES = 100_000


def load_model(path: str | Path, *, work_folder: Path, model_root: Path | None = None) -> Model:
    """Load the model at ``path``.

    Args:
        path: an ``.onnx`` file; external data is looked for relative to its folder.
        work_folder: private to this build; made when missing, and must not hold a model yet. The caller removes it.
        model_root: a trusted folder above the model that external data may lie in, links included; without one,
            external data stays inside the model's own folder.

    Raises:
        UsageError: when the file or a folder is missing or cannot be used.
        ModelError: when the file is no model, or one that is broken or not supported.
        HostError: when the copy does not fit the disk.
    """
    file = Path(path)
    data = read_model_file(file)
    return _load(data, SourceRoot.of(file.parent, model_root), work_folder, str(file))


def load_model_bytes(
    data: bytes, base_folder: Path | None, work_folder: Path, *, model_root: Path | None = None, name: str = "model"
) -> Model:
    """Load a model that is in memory already; as ``load_model`` otherwise.

    Args:
        data: the bytes of an ``.onnx`` file.
        base_folder: what locations of external data are relative to; None when there is none. Never the current folder.
        work_folder: as for ``load_model``.
        model_root: as for ``load_model``.
        name: what to call the model in errors.

    Raises:
        UsageError, ModelError, HostError: as ``load_model``.
    """
    return _load(data, SourceRoot.of(base_folder, model_root), work_folder, name)


def _load(data: bytes, source: SourceRoot, work_folder: Path, name: str) -> Model:
    proto = decode_model(data, name)
    try:
        public = list(dict.fromkeys(value.name for value in proto.graph.output))
        result = run_passes(proto)
        folder = _prepare_folder(work_folder)
        stored = store_external_data(result.model, source, folder)
        payload = _serialize(result.model, len(data))
    except UnicodeDecodeError as error:
        raise ModelError(
            f"{name}: a name is not UTF-8 text ({error}); the model is damaged, fetch or export it again"
        ) from error
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    path = folder / MODEL_FILE
    _write_new(path, payload)
    file_digest = sha256(data)
    inner = [value.name for value in result.model.graph.output]
    return Model(
        proto=result.model,
        folder=folder,
        path=path,
        sha256=source_digest(file_digest.digest(), stored.digest),
        file_sha256=file_digest.hexdigest(),
        external=stored.pieces,
        size_bytes=len(data) + stored.size_bytes,
        notes=result.notes,
        public_outputs={new: old for new, old in zip(inner, public, strict=True) if new != old},
    )


def _prepare_folder(folder: Path) -> Path:
    """Make the work folder, readable by this user alone.

    Raises:
        HostError: when it cannot be made.
        UsageError: when it holds a model already: the source may be that very model.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"work folder {folder}: cannot be made ({error}); name another one") from error
    if (folder / MODEL_FILE).exists():
        raise UsageError(f"work folder {folder} holds a {MODEL_FILE} already; give an empty folder")
    return folder.resolve()


def _serialize(model: onnx.ModelProto, source_bytes: int) -> bytes:
    # Counting walks the whole model once more; only one that was large, or grew by inlining, can come near the limit.
    near = source_bytes > MAX_PROTO_BYTES // 4 or len(model.graph.node) > _MANY_NODES
    size_bytes = model.ByteSize() if near else 0
    try:
        if size_bytes <= MAX_PROTO_BYTES:
            payload: bytes = model.SerializeToString(deterministic=True)
            return payload
    except (EncodeError, ValueError) as error:
        raise ModelError(f"the checked model cannot be written ({error}); export it with external data") from error
    raise ModelError(
        f"{size_bytes} bytes after inlining, but a protobuf holds at most {MAX_PROTO_BYTES}; use external data"
    )


def _write_new(path: Path, payload: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(payload)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already; give an empty work folder") from error
    except OSError as error:
        raise HostError(f"{path}: writing {len(payload)} bytes failed ({error}); free disk space") from error
