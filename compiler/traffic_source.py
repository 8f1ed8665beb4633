"""Traffic for a build or a comparison: read from the files that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtc.profiles import UsageError, unknown_name
from trtc.profiles.recorded import samples_folder
from trtc.profiles.traffic_files import ReadOptions, read_traffic

if TYPE_CHECKING:
    from pathlib import Path

    from trtc.compiler.plan_options import PlanOptions
    from trtc.engines.signature import Signature
    from trtc.profiles.traffic_files import Reading


def traffic_for(options: PlanOptions, signature: Signature, file_sha256: str = "") -> Reading | None:
    """Read the traffic that a ladder is planned for; None where the options name no file.

    Args:
        options: which files, and what they do not say.
        signature: of the model: its symbols, and the dims of its inputs.
        file_sha256: digest of the model file, by which ``trtc exec --record`` tells models apart.

    Raises:
        UsageError: for files that cannot be read, naming the line, or symbols that the model does not have.
        HostError: when a library that a format needs is not installed.
    """
    if not options.traffic:
        return None
    symbols = signature.symbols
    if not symbols:
        raise UsageError("this model has one size only, so no traffic changes its profile; leave --traffic out")
    text_symbol = options.text_symbol or (symbols[0] if len(symbols) == 1 else "")
    if text_symbol and text_symbol not in symbols:
        raise UsageError(f"--text-symbol is an {unknown_name('symbol', text_symbol, symbols)}")
    dims = {spec.name: spec.dims for spec in signature.inputs if spec.dims is not None}
    return read_traffic(
        options.traffic,
        ReadOptions(
            symbols=symbols,
            model=file_sha256,
            input_dims=dims,
            tokenizer=options.tokenizer,
            text_symbol=text_symbol or None,
            longest=options.max_tokens,
        ),
    )


def recorded_samples(options: PlanOptions, file_sha256: str) -> tuple[Path, ...]:
    """Return the folders of inputs of a model that lie beside the traffic that ``trtc exec`` recorded."""
    folders = [samples_folder(record, file_sha256) for record in options.traffic]
    return tuple(folder for folder in folders if any(folder.glob("*.npz")))
