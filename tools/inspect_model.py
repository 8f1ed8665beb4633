"""What a model takes and gives: names and symbols as one can type them, and what runs when it is asked to run."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtc.engines.host import this_host
from trtc.engines.signature import Signature, TensorSpec
from trtc.profiles.grammar import quote_name, val_ranges
from trtc.tools.output import (
    counted,
    print_command,
    print_facts,
    print_line,
    print_note,
    print_signature,
    print_table,
    print_text,
    size_text,
)
from trtc.tools.source_names import CONTENT_DIGEST
from trtc.tools.suggestions import suggested

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtc.compiler.model import Model
    from trtc.compiler.signature import SignatureResult
    from trtc.compiler.size_rule import SizeRule
    from trtc.tools.output import Progress

METADATA_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is shown about a model.

    Attributes:
        path: of the model file.
        source: digest, size, versions.
        signature: inputs; outputs with relations after runs, as declared before.
        ran: whether the model was run.
        sizes: by symbol, sizes that run; empty when it was not run.
        values: what the model was run with.
        metadata: keys of the model's metadata.
        notes: what was changed or found odd.
        given: options that the runs needed, as words; a build needs them too.
    """

    path: Path
    source: dict[str, Any]
    signature: Signature
    ran: bool
    sizes: dict[str, SizeRule]
    values: str
    metadata: tuple[str, ...]
    notes: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def build_command(self) -> str:
        """A command line that builds this model; with ranges only when runs told which sizes there are."""
        words = ["trtc", "build", str(self.path), *self.given]
        for i, symbol in enumerate(self.signature.symbols):
            if (rule := self.sizes.get(symbol)) is not None:
                words += suggested(symbol, i, rule.min, rule.max)
        return shlex.join(words)

    def fields(self) -> dict[str, Any]:
        """The fields of the JSON object."""
        return {
            "path": str(self.path),
            "source": self.source,
            "symbols": [{"symbol": s, "typed": quote_name(s)} for s in self.signature.symbols],
            "inputs": self.signature.inputs,
            "outputs": self.signature.outputs,
            "ran": self.ran,
            "sizes": self.sizes,
            "values": self.values,
            "metadata_keys": self.metadata,
            "notes": self.notes,
            "build_command": self.build_command,
        }


def model_facts(path: Path, given: Mapping[str, Any], progress: Progress) -> ModelFacts:
    """Read a model, and run it when ``given["runs"]`` says so.

    Raises:
        UsageError, ModelError, HostError: as loading and running a model.
    """
    from trtc.compiler.importer import load_model
    from trtc.compiler.onnx_types import dtype_text, tensor_dims
    from trtc.compiler.signature import model_inputs

    with tempfile.TemporaryDirectory(prefix="trtc-inspect-") as work:
        progress.stage("loading the model")
        model = load_model(path, work_folder=Path(work) / "model", model_root=given["model_root"])
        found = _run(model, given, progress) if given["runs"] else None
    proto = model.proto
    declared = Signature(
        model_inputs(model),
        tuple(
            TensorSpec(
                out.name, dtype_text(out.type), tensor_dims(out.type), alias=model.public_outputs.get(out.name, "")
            )
            for out in proto.graph.output
        ),
    )
    return ModelFacts(
        path=path,
        source={
            "file_sha256": model.file_sha256,
            "sha256": model.sha256,
            "size_bytes": model.size_bytes,
            "ir_version": proto.ir_version,
            "opsets": {opset.domain: opset.version for opset in proto.opset_import},
            "producer": f"{proto.producer_name} {proto.producer_version}".strip(),
            "nodes": len(proto.graph.node),
        },
        signature=found.signature if found is not None else declared,
        ran=found is not None,
        sizes=dict(found.workable) if found is not None else {},
        values=found.values.describe() if found is not None else "",
        metadata=tuple(entry.key for entry in proto.metadata_props),
        notes=(*model.notes, *(found.notes if found is not None else ())),
        given=_words(given),
    )


def _words(given: Mapping[str, Any]) -> tuple[str, ...]:
    texts = [("--samples", given["samples"]), ("--val-range", given["val_range"])]
    texts.append(("--model-root", [given["model_root"]] if given["model_root"] else []))
    return tuple(word for option, values in texts for value in values for word in (option, str(value)))


def _run(model: Model, given: Mapping[str, Any], progress: Progress) -> SignatureResult:
    from trtc.compiler.reference import open_reference
    from trtc.compiler.samples import load_samples
    from trtc.compiler.signature import SourceOptions, find_signature

    progress.stage("running the model to find how its sizes relate")
    samples = load_samples(given["samples"]) if given["samples"] else None
    options = SourceOptions(samples, dict(val_ranges(given["val_range"])))
    return find_signature(model, open_reference(model, this_host().threads), options, {})


def show_model(found: ModelFacts) -> None:
    """Print it for people."""
    source = found.source
    opsets = ", ".join(f"{domain or 'ai.onnx'} {number}" for domain, number in source["opsets"].items())
    print_facts(
        [
            ("model", f"{found.path} ({size_text(source['size_bytes'])})"),
            ("sha256", source["file_sha256"]),
            ("content", f"{source['sha256']} ({CONTENT_DIGEST})"),
            ("made by", source["producer"] or "not said"),
            ("versions", f"IR {source['ir_version']}, opset {opsets}; {counted(source['nodes'], 'node')}"),
        ]
    )
    print_line()
    print_signature(found.signature)
    print_line()
    if found.signature.symbols:
        rows = [(quote_name(s), _sizes_text(found, s), _carriers(found.signature, s)) for s in found.signature.symbols]
        print_table("symbols, as you type them", ("symbol", "sizes that run", "inputs"), rows)
    else:
        print_line("no symbols: every size is fixed")
    if found.ran:
        print_text(f"run with values {found.values}")
        if found.signature.symbols:
            print_text("size 0 is not tried here: build and check try it, apart, for it can end a process")
    else:
        print_text("nothing was run; --run finds the sizes that run and how outputs follow from inputs")
    if found.metadata:
        more = len(found.metadata) - METADATA_SHOWN
        listed = ", ".join(found.metadata[:METADATA_SHOWN]) + (f" and {more} more" if more > 0 else "")
        print_text(f"metadata keys: {listed}")
    for note in found.notes:
        print_note(note)
    print_line()
    if not found.ran and found.signature.symbols:
        print_command("to see which sizes run", shlex.join(["trtc", "inspect", str(found.path), "--run"]))
    print_command("to build it", found.build_command)


def _sizes_text(found: ModelFacts, symbol: str) -> str:
    """Tell the sizes; why others do not run is a note."""
    rule = found.sizes.get(symbol)
    return "not run" if rule is None else str(rule)


def _carriers(signature: Signature, symbol: str) -> str:
    return ", ".join(
        f"{spec.name} axis {axis}"
        for spec in signature.inputs
        for axis, dim in enumerate(spec.dims or ())
        if dim == symbol
    )
