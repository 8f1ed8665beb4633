"""Reads traffic from files, each by the ending of its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trtc.profiles.errors import UsageError
from trtc.profiles.traffic_files.collect import Collector
from trtc.profiles.traffic_files.csv_rows import read_csv
from trtc.profiles.traffic_files.json_lines import read_json_lines
from trtc.profiles.traffic_files.parquet import read_parquet
from trtc.profiles.traffic_files.samples import read_sample
from trtc.profiles.traffic_files.texts import read_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtc.profiles.dims import Dim
    from trtc.profiles.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a file alone does not say.

    Attributes:
        symbols: that the model has; None allows any.
        model: digest of the model file, for records of several models.
        input_dims: dims of each input, for samples and such records.
        tokenizer: ``tokenizer.json``, for texts.
        text_symbol: whose sizes are the lengths of texts, in tokens.
        longest: texts are cut to this many tokens, as the program that serves them does; 0 for no limit.
        other_sizes: sizes of all other symbols with every text, such as ``{"batch": 1}``.
    """

    symbols: tuple[str, ...] | None = None
    model: str = ""
    input_dims: Mapping[str, tuple[Dim, ...]] = field(default_factory=dict)
    tokenizer: Path | None = None
    text_symbol: str | None = None
    longest: int = 0
    other_sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """Traffic that was read.

    Attributes:
        traffic: of all files together.
        notes: what was changed on the way.
    """

    traffic: Traffic
    notes: tuple[str, ...] = ()


_SHOWN = 3
"""Other models that an error names."""
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".npz", ".txt")


def read_traffic(paths: Sequence[Path], options: ReadOptions) -> Reading:
    """Read files, and folders of ``.npz`` samples, as the traffic of one model.

    Memory is bounded whatever the number of requests: about 60 MB for the sizes (see ``Collector``), 10 MB for arrival
    times, and one block of the file.

    Args:
        paths: ``.jsonl``, ``.ndjson`` or ``.json`` (one object a line), ``.csv``, ``.parquet``, ``.npz`` or folders of
            them, ``.txt``.
        options: what the files do not say.

    Raises:
        UsageError: naming file and line, for anything that is not what its ending says, or no request at all.
        HostError: when a library that the format needs is not installed.
    """
    if not paths:
        raise UsageError("no traffic file was named; name at least one")
    collector = Collector(options.symbols)
    for path in paths:
        before = collector.requests
        collector.passed_over.clear()
        try:
            _read(Path(path), options, collector)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"{path} cannot be read: {reason}; give the path of a traffic file") from error
        if collector.requests == before:
            raise UsageError(f"{path}: {_nothing(collector.passed_over, options.model)}")
    notes = []
    if collector.bits < 31:  # noqa: PLR2004 - as many as a size has
        notes.append(
            f"more different sizes than are kept: all were rounded up to {collector.bits} significant bits "
            f"(at most {100 / 2 ** (collector.bits - 1):.1f} % more)"
        )
    return Reading(collector.traffic(", ".join(map(str, paths))), tuple(notes))


def _nothing(passed_over: Mapping[str, tuple[str, int]], model: str) -> str:
    """Say what a file holds instead of requests of this model."""
    if not passed_over:
        return "there is no request in it; record or write at least one"
    most = sorted(passed_over.items(), key=lambda item: -item[1][1])
    found = [
        f"{requests} request{'' if requests == 1 else 's'} of {name or 'a model'} ({other[:12]}...)"
        for other, (name, requests) in most[:_SHOWN]
    ]
    more = f" and more of {len(most) - _SHOWN} other models" if len(most) > _SHOWN else ""
    this = f"this model file ({model[:12]}...)" if model else "a model file whose digest is known here"
    return (
        f"it has {', '.join(found)}{more}, none of {this}; has the model changed since? record again, "
        "or give the file that was recorded"
    )


def _read(path: Path, options: ReadOptions, collector: Collector) -> None:
    if path.is_dir():
        for file in sorted(path.glob("*.npz")):
            read_sample(file, options.input_dims, collector)
        return
    match path.suffix.lower():
        case ".jsonl" | ".ndjson" | ".json":
            read_json_lines(path, collector, options.model, options.input_dims)
        case ".csv":
            read_csv(path, collector)
        case ".parquet":
            read_parquet(path, collector)
        case ".npz":
            read_sample(path, options.input_dims, collector)
        case ".txt":
            read_texts(path, options, collector)
        case _ if not path.exists():
            raise UsageError(f"{path}: there is no such file; give the path of a traffic file")
        case ending:
            raise UsageError(f"{path}: the ending {ending!r} is none of {', '.join(ENDINGS)}; rename the file")
