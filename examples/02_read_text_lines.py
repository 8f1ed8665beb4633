"""Read lines of text with a recogniser whose width varies, and see a wrong padding refused.

    python examples/02_read_text_lines.py [--out FOLDER] [--quick]

Builds a bundle of the PP-OCRv4 recogniser. First with padded widths, which changes what it reads and is therefore
refused; then with exact widths and padded rows, which is proven. Reads rendered lines in batches of equal width.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import inputs
import numpy as np

from trtc.compiler import BuildOptions, PaddingRefusedError, ShapeOptions, build
from trtc.runtime import TrtcError, load
from trtc.tools.output import Progress, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH, HEIGHT, WIDTH = "p2o.DynamicDimension.0", "x_2", "p2o.DynamicDimension.1"
"""What `trtc inspect` calls the symbols of this model; the exporter did not name the second."""
OUTPUT = "softmax_11.tmp_0"
ROWS = 4
LINES = (
    "while",
    "Python 3",
    "Room 12, Floor 4",
    "Room 21, Floor 4",
    "Room 14, Floor 2",
    "nothing happens",
    "The pass statement",
    "is a null operation",
    "when it is executed",
    "lambda x: x + 1",
    "Invoice 2024-0917",
    "Invoice 2024-0791",
    "Total: 1,284.50 EUR",
    "Total: 2,481.05 EUR",
    "It is useful as a placeholder",
    "when a statement is required",
    "but no code needs to be executed.",
)


def show_refusal(folder: Path) -> bool:
    """Ask for padded widths; return whether that was refused."""
    options = BuildOptions(
        shapes=ShapeOptions(dim=(f"{BATCH}=1..2", f"{HEIGHT}={inputs.LINE_HEIGHT_PX}", f"{WIDTH}=32..128")),
        pads=(WIDTH,),
        fills=("x=1",),
        use_cache=False,
    )
    print_line(f"asking for widths padded with white paper: --pad {WIDTH} --fill x=1")
    try:
        build(inputs.locate(*inputs.RECOGNISER), folder / "refused.trtc", options)
    except PaddingRefusedError as error:
        print_line(f"refused: {error}")
        return True
    return False


def build_bundle(folder: Path, *, quick: bool) -> Path:
    """Build the bundle unless it is there already: widths as they come, rows that may be padded."""
    bundle = folder / ("recogniser-quick.trtc" if quick else "recogniser.trtc")
    if bundle.exists():
        print_line(f"using the bundle {bundle}; remove it to build again")
        return bundle
    options = BuildOptions(
        shapes=ShapeOptions(dim=(f"{BATCH}=1:2:{ROWS}", f"{HEIGHT}={inputs.LINE_HEIGHT_PX}", f"{WIDTH}=32:256:640")),
        pads=(f"{BATCH}:rows",),
        measure_s=0.0 if quick else 3.0,
        verify_s=2.0 if quick else 15.0,
    )
    progress = Progress()
    try:
        report = build(inputs.locate(*inputs.RECOGNISER), bundle, options, progress)
    finally:
        progress.done()
    print_line(f"built {report.path}: widths run exact, rows were proven independent")
    return bundle


def alphabet_of(metadata: dict[str, str]) -> list[str]:
    """Return what each class of the output means: nothing, the characters of the model's own list, a blank."""
    return ["", *metadata["character"].splitlines(), " "]


def decoded(scores: np.ndarray, alphabet: Sequence[str]) -> str:
    """Decode one line, float32 [steps, classes]: the best class of each step, repeats joined, blanks dropped (CTC)."""
    best = scores.argmax(axis=-1).tolist()
    return "".join(alphabet[label] for label, _ in groupby(best)).strip()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the example; 0 when every line was read as it was written, and the wrong padding was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=inputs.BUILD_FOLDER, help="folder for the bundle (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="measure and verify less")
    given = parser.parse_args(argv)

    refused = show_refusal(given.out)
    print_line()
    images = sorted(((line, inputs.render_line(line)) for line in LINES), key=lambda pair: pair[1].shape[3])
    rows = []
    with load(build_bundle(given.out, quick=given.quick)) as session:
        alphabet = alphabet_of(session.manifest.metadata)
        for width_px, group in groupby(images, key=lambda pair: pair[1].shape[3]):
            members = list(group)
            for start in range(0, len(members), ROWS):
                batch = members[start : start + ROWS]
                scores = session.run({"x": np.concatenate([image for _, image in batch])})[OUTPUT]
                for (line, _), row in zip(batch, scores, strict=True):
                    read = decoded(row, alphabet)
                    rows.append((width_px, len(batch), scores.shape[1], line, read, "yes" if read == line else "NO"))
    print_table("lines", ("width, px", "rows", "steps", "written", "read", "equal"), rows)
    equal = sum(row[-1] == "yes" for row in rows)
    print_line(f"{equal} of {len(rows)} lines were read as they were written")
    return 0 if refused and equal == len(rows) else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except TrtcError as error:
        sys.exit(f"trtc: error: {error}")
