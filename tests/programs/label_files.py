"""Label files with Magika, as its own documentation shows; print labels and scores."""

import json
import sys
from pathlib import Path

from magika import Magika

engine = Magika()
for path in sys.argv[1:]:
    found = engine.identify_path(Path(path))
    print(json.dumps([Path(path).name, found.output.label, found.score]))
