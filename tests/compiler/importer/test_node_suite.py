"""The node tests of onnx: 1,884 one-operator models that nobody here wrote."""

from __future__ import annotations

import ctypes
import warnings
from collections import Counter

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from trtc.compiler.importer import load_model_bytes
from trtc.profiles import ModelError

UNKNOWN_TO_THE_REFERENCE = {
    "ai.onnx.preview.training::Adagrad",
    "ai.onnx.preview.training::Adam",
    "ai.onnx.preview.training::Momentum",
    "ai.onnx.preview::FlexAttention",
}


def cases():
    with warnings.catch_warnings():  # expected values of the suite overflow on purpose
        warnings.simplefilter("ignore")
        return collect_testcases(None)


def session(data):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def feed(case):
    """The first data set, by input name, as arrays."""
    feeds = {}
    for value, given in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
        array = numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else given
        feeds[value.name] = np.asarray(array) if isinstance(array, np.generic) else array
    return feeds


def answer(opened, feeds):
    """Names of the outputs, and their values in a form whose equality is equality of bits."""
    names = [output.name for output in opened.get_outputs()]
    tensors = all(o.type.startswith("tensor(") and "string" not in o.type for o in opened.get_outputs())
    if tensors and all(isinstance(array, np.ndarray) and array.dtype != object for array in feeds.values()):
        types = {o.name: TYPES.get(o.type) for o in opened.get_inputs()}
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, types[name])
            if array.dtype.kind == "V" and types.get(name)
            else onnxruntime.OrtValue.ortvalue_from_numpy(array)
            for name, array in feeds.items()
        }
        return names, [bits_of_value(value) for value in opened.run_with_ort_values(None, values)]
    return names, [bits(result) for result in opened.run(None, feeds)]


TYPES = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}


def bits_of_value(value):
    """Also for element types that numpy lacks."""
    size_bytes = value.tensor_size_in_bytes()
    return (
        value.data_type(),
        tuple(value.shape()),
        ctypes.string_at(value.data_ptr(), size_bytes) if size_bytes else b"",
    )


def bits(result):
    if isinstance(result, list):
        return [bits(item) for item in result]
    if isinstance(result, np.ndarray):
        return result.dtype.str, result.shape, result.tolist() if result.dtype == object else result.tobytes()
    return result


def test_node_models_load_and_answer_as_before_or_are_refused_for_an_operator(tmp_path):
    counts: Counter[str] = Counter()
    refused, wrong = set(), []
    for i, case in enumerate(cases()):
        data = case.model.SerializeToString()
        try:
            loaded = load_model_bytes(data, None, tmp_path / str(i))
        except ModelError as error:
            counts["refused"] += 1
            refused.add(str(error).split(": ")[2])
            continue
        try:
            before = answer(session(data), feed(case))
        except Exception:  # noqa: BLE001 (what plain ONNX Runtime cannot do is not at issue)
            counts["without a reference"] += 1
            continue
        names, results = answer(session(loaded.path.read_bytes()), feed(case))
        if ([loaded.public_outputs.get(n, n) for n in names], results) != before:
            wrong.append(case.name)
        counts["same"] += 1
    assert refused == UNKNOWN_TO_THE_REFERENCE
    assert wrong == [], counts
    assert counts["refused"] < 0.02 * counts.total()
    assert counts["same"] > 0.8 * counts.total(), counts
