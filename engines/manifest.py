"""The manifest of a bundle: its schema as types.

``docs/bundle-format.md`` describes every field for people.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from trtc.engines.signature import Signature
from trtc.profiles import Derived, Ladder, PadRule
from trtc.profiles.cost import CostModel

SCHEMA = "1.0"

Mode: TypeAlias = Literal["exact", "bucket"]


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Base of every part: immutable, unknown fields refused, defaults left out."""


class Source(_Record, frozen=True):
    """What was compiled. ``sha256`` covers the model file and its external data; no path, no name, no time."""

    sha256: str
    size_bytes: int
    ir_version: int
    opsets: dict[str, int]
    producer: str = ""


class BuildRecord(_Record, frozen=True):
    """How it was built: enough to build it again."""

    key: str
    trtc: str
    libraries: dict[str, str]
    machine: dict[str, str]
    options: dict[str, str]
    seed: int = 0


class ValueDomain(_Record, frozen=True):
    """The values of one input that a probe ran with. A padded request outside of it runs at its exact sizes.

    ``low`` and ``high`` bound every element, both ends included. ``rows_nonzero``: no row (last axis) was all zero.
    """

    low: float
    high: float
    rows_nonzero: bool = False


class Finding(_Record, frozen=True):
    """What one experiment saw for one output."""

    output: str
    max_abs: float
    allowed: float
    sizes: dict[str, int]


class Evidence(_Record, frozen=True):
    """The recorded result of a probe.

    ``kind``: ``padding`` (padded equals exact), ``rows`` (rows do not influence each other), ``relations``
    (output sizes follow from input sizes). ``accepted`` is False when the experiment refuted the claim;
    ``deviation_accepted`` when the user took a known deviation. ``domain`` bounds where a padded run is allowed.
    """

    kind: Literal["padding", "rows", "relations"]
    symbol: str
    accepted: bool
    runs: int
    samples: str
    findings: tuple[Finding, ...] = ()
    domain: dict[str, ValueDomain] = {}
    deviation_accepted: bool = False
    detail: str = ""


class Verification(_Record, frozen=True):
    """One engine against one reference in one profile.

    ``ran`` is False where this machine could not run the engine or the reference; ``detail`` then says why.
    ``worst`` is the output that came nearest to, or went beyond, its tolerance.
    """

    profile: str
    mode: Literal["exact", "padded"]
    reference: str
    ran: bool
    passed: bool
    runs: int
    worst: Finding | None = None
    detail: str = ""


class BlobFile(_Record, frozen=True):
    """A file of an engine: path relative to the bundle, size, and SHA-256 of its bytes."""

    path: str
    size_bytes: int
    sha256: str


class Requirements(_Record, frozen=True):
    """What a host must have: checked before any file is opened. Empty means no demand.

    ``exact_version``: every part of the library's version must agree, not only major and minor.
    ``device``: the kind of accelerator, such as ``cuda``. ``compute_capabilities``: those that the engine holds
    kernels for, such as ``sm89``; one of them must be there.
    """

    system: str = ""
    architecture: str = ""
    library: str = ""
    library_version: str = ""
    exact_version: bool = False
    cpu_features: tuple[str, ...] = ()
    device: str = ""
    compute_capabilities: tuple[str, ...] = ()


class ProfileMemory(_Record, frozen=True):
    """Memory of one profile in bytes: planned (slot), and measured inside the library (scratch)."""

    profile: str
    slot_bytes: int
    scratch_bytes: int = -1


class Execution(_Record, frozen=True):
    """How requests run: exact or padded to the bucket, how many at once, with how many threads each.

    ``threads`` 0 means: the host's share (its usable processors divided by ``slots``), decided at load.
    ``measured`` holds the figures that the choice rests on, in seconds or calls per second, by name.
    """

    mode: Mode = "exact"
    slots: int = 0
    threads: int = 0
    reason: str = ""
    measured: dict[str, float] = {}


class CostRecord(_Record, frozen=True):
    """What runs of one engine cost, and what that rests on.

    ``threads``: of one call, when it was measured. ``runs`` were timed, ``refused`` of them were outliers and not used;
    ``spread`` is the median over the grid of the middle half of a point's times, over their median.
    """

    model: CostModel
    threads: int = 0
    runs: int = 0
    refused: int = 0
    spread: float = 0.0


class PlanRecord(_Record, frozen=True):
    """The traffic that the ladder was planned for, and what was expected of it.

    ``traffic`` is the digest of the sizes and their shares. ``expected_s``: mean seconds of a served request in its
    bucket; ``exact_s``: at its own size; ``waste``: padded minus useful elements, over padded elements; ``gap``: how
    much better a ladder could be at most, as a share of ``expected_s``; ``refused``: share of the requests that no
    profile takes. The rest is what the planner was asked for.
    """

    traffic: str
    requests: int
    expected_s: float
    exact_s: float
    waste: float
    gap: float
    reason: str
    max_profiles: int
    refused: float = 0.0
    align: dict[str, int] = {}
    rare: Literal["cover", "catch_all", "refuse"] = "cover"
    refuse_share: float = 0.0


class EngineRecord(_Record, frozen=True):
    """One engine: what it is, what it needs, and what was shown about it.

    ``execution``: how this engine runs, where that differs from the bundle's. ``cost``: what its runs cost, by sizes;
    None where that was not asked. ``plugins``: paths of those files that are libraries of plug-ins, in the order to
    load them. They are code, and run only where the caller allows it.
    """

    name: str
    backend: str
    target: str
    precision: str
    entry: str
    files: tuple[BlobFile, ...]
    requirements: Requirements
    verified: bool
    memory: tuple[ProfileMemory, ...] = ()
    verification: tuple[Verification, ...] = ()
    options: dict[str, str] = {}
    execution: Execution | None = None
    cost: CostRecord | None = None
    plugins: tuple[str, ...] = ()


class ExternalPiece(_Record, frozen=True):
    """A range of a file beside the model that its tensors use: path relative to the model's folder, and bytes."""

    location: str
    start: int
    stop: int


class ValueInfo(_Record, frozen=True):
    """An input or output as ONNX Runtime describes it: a size is a number, a name, or null.

    ``shape`` is empty for scalars and for values of unknown rank alike, as ONNX Runtime has it.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] = ()


class ModelInfo(_Record, frozen=True):
    """The model's own words about itself, as ONNX Runtime reads them; its metadata is the bundle's ``metadata``."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0


class RecordedCalls(_Record, frozen=True):
    """Calls of a model by a program that ran it with ONNX Runtime: shapes by input, and seconds of all together."""

    inputs: dict[str, tuple[int, ...]]
    count: int
    seconds: float


class Original(_Record, frozen=True):
    """The model file, and what ONNX Runtime says about it: programs that hold a session ask for these.

    ``file_sha256`` is of the model file alone; with the ``external`` pieces, in their order, it gives the digest in
    ``source``. ``inputs`` are those that must be given, ``overridable`` those that may. ``info``: None where the
    model's metadata was too large to be kept. ``recorded``: what calls took before, where traffic says so.
    """

    file_sha256: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    overridable: tuple[ValueInfo, ...] = ()
    external: tuple[ExternalPiece, ...] = ()
    info: ModelInfo | None = None
    recorded: tuple[RecordedCalls, ...] = ()


class Manifest(_Record, frozen=True):
    """Everything a bundle says about itself.

    ``planned``: None where a person chose the ladder. ``original``: None where ONNX Runtime cannot open the model file.
    """

    schema: str
    source: Source
    build: BuildRecord
    signature: Signature
    ladder: Ladder
    execution: Execution
    engines: tuple[EngineRecord, ...]
    padding: tuple[PadRule, ...] = ()
    derived: tuple[Derived, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    tolerance: tuple[float, float] = (1e-5, 1e-4)
    metadata: dict[str, str] = {}
    planned: PlanRecord | None = None
    original: Original | None = None

    @property
    def padded(self) -> frozenset[str]:
        """Symbols that may be padded."""
        return frozenset(rule.symbol for rule in self.padding)
