"""Read pages with RapidOCR, as its own documentation shows; print boxes, texts and scores."""

import json
import sys

from rapidocr_onnxruntime import RapidOCR

engine = RapidOCR()
for page in sys.argv[1:]:
    lines, _ = engine(page)
    for box, text, score in lines or []:
        print(json.dumps([page, text, float(score), [[float(v) for v in point] for point in box]]))
