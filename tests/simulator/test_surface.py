"""The simulator offers what the real libraries have, under the same names and with the same parameters, and no more.

The libraries are the installed ones: TensorRT for RTX, TensorRT's lean runtime (the runtime API of TensorRT 11), and
``cuda.core``. None of this needs a driver.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import cuda.core
import cuda.core.graph
import cuda.core.utils
import numpy as np
import pytest
import tensorrt_lean
import tensorrt_rtx

from simulator import cuda_core, runtime_api, streams
from trtc.engines.tensorrt.late import output_allocator
from trtc.engines.tensorrt.opened import DTYPES

RUN_HALF = (
    *("call", "choice", "context_run", "device", "device_arena", "failures", "graphs", "lane", "late", "load"),
    *("opened", "runtime_cache", "size_classes", "spans", "toolkit", "log", "device_views"),
)
BOTH = ["Runtime", "ICudaEngine", "IRuntimeConfig", "IExecutionContext"]
RTX_ONLY = {"RtxRuntimeConfig": "IRuntimeConfig", "RtxExecutionContext": "IExecutionContext", "IRuntimeCache": ""}
LIBRARIES = [pytest.param(tensorrt_rtx, id="rtx"), pytest.param(tensorrt_lean, id="lean")]
OF_THE_SIMULATOR = {"compute", "state", "strategy", "used", "kernels", "pending", "recorded", "submit", "size"}
"""Names that only the simulator and its tests use."""


def source() -> str:
    folder = Path(inspect.getfile(output_allocator)).parent
    return "\n".join((folder / f"{name}.py").read_text() for name in RUN_HALF if (folder / f"{name}.py").exists())


def offered(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_") and name not in OF_THE_SIMULATOR]


def overloads(doc: str, name: str) -> list[list[str]]:
    """Parameters of each form of a bound C++ method, as its docstring writes them."""
    found = []
    for line in doc.splitlines():
        form = re.match(rf"(?:\d+\. )?{name}\((self: .*)\) -> ", line.strip())
        if form:
            plain = re.sub(r"\[[^\[\]]*\]|<[^<>]*>", "", form[1])
            found.append([part.split(":")[0].strip() for part in plain.split(",")][1:])
    return found


def parameters(kind: type, name: str) -> list[str]:
    return list(inspect.signature(getattr(kind, name)).parameters)[1:]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", BOTH)
def test_every_method_is_one_of_the_real_class_with_the_same_parameters(library, name):
    compare(getattr(runtime_api, name), getattr(library, name))


@pytest.mark.parametrize("name", RTX_ONLY)
def test_what_only_rtx_has_is_asked_for_before_it_is_used(name):
    ours = getattr(runtime_api, name)
    compare(ours, getattr(tensorrt_rtx, RTX_ONLY[name] or name))
    lean = getattr(tensorrt_lean, RTX_ONLY[name] or name, None)
    for method in offered(ours):
        assert not hasattr(lean, method)
    for asked in ("create_runtime_cache", "cuda_graph_strategy", "is_stream_capturable", "create_runtime_config"):
        assert re.search(rf'hasattr\(\w+, "{asked}"\)', source()), asked


def compare(ours: type, real: type) -> None:
    assert offered(ours)
    for method in offered(ours):
        found = inspect.getattr_static(real, method)
        if isinstance(inspect.getattr_static(ours, method), property):
            assert isinstance(found, property), method
            continue
        assert parameters(ours, method) in overloads(getattr(real, method).__doc__, method), method


def test_attributes_of_the_rtx_configuration_are_real_properties():
    for name in ("cuda_graph_strategy", "dynamic_shapes_kernel_specialization_strategy"):
        assert isinstance(inspect.getattr_static(tensorrt_rtx.IRuntimeConfig, name), property)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_output_allocator_overrides_what_the_library_calls(library):
    ours = type(output_allocator(library, None))
    documented = dict(re.findall(r"def (\w+)\(self, ([\w, ]+)\):", library.IOutputAllocator.__doc__))
    assert set(documented) == set(offered(ours))
    for name, listed in documented.items():
        assert parameters(ours, name) == listed.split(", ")


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_member_that_the_backend_names_is_there(library):
    named = set(re.findall(r"\btrt\.([A-Z]\w+)(?:\.([A-Z][A-Z_]*))?", source()))
    rtx = {("CudaGraphStrategy", "DISABLED"), ("DynamicShapesKernelSpecializationStrategy", "")}
    assert named - rtx == {
        ("TensorIOMode", "INPUT"),
        ("TensorLocation", "HOST"),
        ("ExecutionContextAllocationStrategy", "USER_MANAGED"),
        ("IOutputAllocator", ""),
        ("Runtime", ""),
    }
    for kind, member in named - rtx if library is tensorrt_lean else named:
        assert hasattr(library, kind)
        assert not member or member in getattr(library, kind).__members__
    assert DTYPES.keys() <= library.DataType.__members__.keys()
    if library is tensorrt_rtx:
        assert {"EAGER", "NONE"} <= library.DynamicShapesKernelSpecializationStrategy.__members__.keys()
    assert isinstance(inspect.getattr_static(library.Runtime, "__init__"), object)
    assert overloads(library.Runtime.__init__.__doc__, "__init__") == [["logger"]]


@pytest.mark.parametrize(
    ("ours", "real"),
    [
        (cuda_core.Device, cuda.core.Device),
        (cuda_core.Buffer, cuda.core.Buffer),
        (cuda_core._Buffers, cuda.core.Buffer),
        (cuda_core.LegacyPinnedMemoryResource, cuda.core.LegacyPinnedMemoryResource),
        (cuda_core.StridedMemoryView, cuda.core.utils.StridedMemoryView),
        (streams.Stream, cuda.core.Stream),
        (streams.GraphBuilder, cuda.core.graph.GraphBuilder),
        (streams.Graph, cuda.core.graph.Graph),
    ],
)
def test_every_method_is_one_of_cuda_core_with_the_same_parameters(ours, real):
    assert offered(ours)
    for name in offered(ours):
        if isinstance(inspect.getattr_static(ours, name), property):
            assert not callable(getattr(real, name)), name
            continue
        found = inspect.signature(getattr(real, name)).parameters
        for parameter in list(inspect.signature(getattr(ours, name)).parameters.values())[1:]:
            assert parameter.name in found, f"{name}: {parameter}"
            assert parameter.kind == found[parameter.name].kind, f"{name}: {parameter}"
    assert "device_id" in cuda.core.Device.__new__.__doc__


def test_a_view_has_the_attributes_of_cuda_core():
    real = cuda.core.utils.StridedMemoryView.from_any_interface(np.zeros((2, 3), np.float32), -1)
    ours = vars(cuda_core.StridedMemoryView(None)).keys() - {"_world"}
    for name in ours:
        assert hasattr(real, name), name
    assert (tuple(real.shape), tuple(real.strides), real.dtype) == ((2, 3), (3, 1), np.float32)
    assert {"__dlpack__", "__dlpack_device__"} <= vars(type(real)).keys()


def test_stream_options_have_the_names_of_cuda_core():
    real = cuda.core.StreamOptions(nonblocking=True, priority=None)
    assert vars(cuda_core.StreamOptions(nonblocking=True)) == {
        "nonblocking": real.nonblocking,
        "priority": real.priority,
    }


def test_nothing_is_offered_that_the_backend_does_not_use():
    text = source()
    kinds = [getattr(runtime_api, name) for name in (*BOTH, *RTX_ONLY)]
    kinds += [cuda_core.Device, cuda_core.Buffer, cuda_core._Buffers, cuda_core.LegacyPinnedMemoryResource]
    kinds += [streams.Stream, streams.GraphBuilder, streams.Graph]
    for kind in kinds:
        for name in offered(kind):
            assert re.search(rf"[.\"]{name}\b", text), f"{kind.__name__}.{name}"
