"""Libraries of plug-ins in a build: compiled here, and loaded by the registries of the real libraries."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import tensorrt_lean
import tensorrt_lean_libs
import tensorrt_rtx
from onnx import TensorProto, helper

from trtc.compiler import BuildOptions, ShapeOptions, build
from trtc.compiler.plugins import plugin_digest, with_private_plugins
from trtc.engines.build import unheard
from trtc.engines.builder_options import BuilderOptions
from trtc.engines.errors import EngineError
from trtc.engines.gpu import survey_gpus
from trtc.engines.target import parse_target
from trtc.engines.tensorrt.build import build_engine, build_job, examine
from trtc.engines.tensorrt.log import error_texts, new_logger
from trtc.engines.tensorrt.plugins import load_plugins, operators_of
from trtc.engines.tensorrt.process import run_job
from trtc.engines.tensorrt.rules import Facts, node_problems
from trtc.profiles import UsageError

FLOAT = TensorProto.FLOAT
SMALL = {"n": (1, 3, 4)}
SOURCE = Path(__file__).with_name("plugin.cpp")
BEFORE_TEN = 'extern "C" void* const* getPluginCreators(int& count) { count = 0; return nullptr; }'


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile a library: ``compiled("name.so", "-DOPERATOR=...")``, or from other source text."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ here to compile a library of plug-ins with")

    def make(name: str, *flags: str, text: str | None = None) -> Path:
        folder = tmp_path_factory.mktemp("library")
        source = SOURCE
        if text is not None:
            source = folder / "source.cpp"
            source.write_text(text)
        made = folder / name
        words = ["g++", "-std=c++17", "-shared", "-fPIC", *flags, "-o", made, source]
        subprocess.run(words, check=True, capture_output=True, timeout=120)
        return made

    return make


@pytest.fixture(scope="module")
def same(compiled):
    """A library that brings the operator ``Same``."""
    return compiled("libsame.so")


@pytest.fixture(scope="module")
def fast_gelu(compiled):
    return compiled("libgelu.so", '-DOPERATOR="FastGelu"')


@pytest.fixture
def registry():
    """The registry of a builder of TensorRT for RTX, and its log."""
    logger = new_logger(tensorrt_rtx)
    builder = tensorrt_rtx.Builder(logger)
    yield builder.get_plugin_registry(), logger
    del builder


@pytest.fixture
def contrib(graph):
    """``y = FastGelu(x)``: ONNX Runtime has the operator, and TensorRT has none."""
    node = helper.make_node("FastGelu", ["x"], ["y"], name="gelu", domain="com.microsoft")
    model = graph([node], {"x": (FLOAT, ["n", 4])}, {"y": (FLOAT, ["n", 4])})
    model.opset_import.add(domain="com.microsoft", version=1)
    return model


def with_plugins(*libraries: Path) -> BuilderOptions:
    return BuilderOptions(plugins=libraries)


class TestRegistries:
    def test_a_library_registers_what_it_brings_with_one_builder_only(self, registry, same):
        ours, _ = registry
        assert operators_of(ours) == ()
        assert load_plugins(ours, [same]) is None
        assert operators_of(ours) == ("Same",)
        other = tensorrt_rtx.Builder(new_logger(tensorrt_rtx))
        assert operators_of(other.get_plugin_registry()) == ()

    def test_the_lean_runtime_takes_the_same_library_and_its_makers_own(self, same):
        real = next(Path(tensorrt_lean_libs.__path__[0]).glob("libnvinfer_vc_plugin.so*"))
        registry = tensorrt_lean.get_plugin_registry()
        for library, operator in ((same, "Same"), (real, "ROIAlign_TRT")):
            handle = registry.load_library(str(library))
            assert handle is not None
            assert operator in operators_of(registry)
            registry.deregister_library(handle)

    def test_the_first_library_that_is_refused_is_named_and_the_log_says_why(self, registry, same):
        ours, logger = registry
        real = next(Path(tensorrt_lean_libs.__path__[0]).glob("libnvinfer_vc_plugin.so*"))
        assert load_plugins(ours, [same, same, real]) == same
        assert "plugin creator of Same exists already" in str(error_texts(logger.lines))


class TestBuilds:
    def test_the_library_is_a_blob_of_the_engine_under_its_digest(self, request_for, relu, same):
        built = build_engine(request_for(relu, SMALL, builder=with_plugins(same)))
        digest = hashlib.sha256(same.read_bytes()).hexdigest()
        assert built.plugins == (f"blobs/{digest}.so",)
        assert built.files[built.plugins[0]].name == f"{digest}.so"
        assert built.files[built.plugins[0]].read_bytes() == same.read_bytes()
        assert built.entry not in built.plugins

    def test_libraries_stay_in_the_order_in_which_they_were_given(self, request_for, relu, same, fast_gelu):
        request = request_for(relu, SMALL, builder=with_plugins(fast_gelu, same))
        assert build_engine(request).plugins == tuple(f"blobs/{plugin_digest(p)}.so" for p in (fast_gelu, same))

    def test_code_that_no_node_needs_is_told(self, request_for, relu, compiled):
        """TensorRT prefers its own Relu over a plug-in of that name, and does not say so."""
        built = build_engine(request_for(relu, SMALL, builder=with_plugins(compiled("r.so", '-DOPERATOR="Relu"'))))
        assert "no node of the model became a plug-in" in built.notes[0]

    def test_without_plugins_nothing_is_loaded_or_told(self, request_for, relu):
        built = build_engine(request_for(relu, SMALL))
        assert (built.plugins, built.notes, len(built.files)) == ((), (), 1)


def test_a_bundle_keeps_the_library_and_so_does_the_cache(relu, same, tmp_path):
    (tmp_path / "model.onnx").write_bytes(relu.SerializeToString())
    shapes = ShapeOptions(dim=("n=1..4",))
    options = BuildOptions(targets=("rtx",), shapes=shapes, builder=with_plugins(same), measure_s=0.0, verify_s=2.0)
    for name, hit in (("first.trtc", False), ("second.trtc", True)):
        report = build(tmp_path / "model.onnx", tmp_path / name, options)
        (record,) = report.manifest.engines
        assert report.hit == hit
        assert record.plugins == (f"blobs/{plugin_digest(same)}.so",)
        assert (report.path / record.plugins[0]).read_bytes() == same.read_bytes()
        assert report.manifest.build.options["plugin"] == plugin_digest(same)
        assert any("no node of the model became a plug-in" in note for note in report.notes)


class TestFilesThatAreNoPlugins:
    def refusal(self, request, library):
        with pytest.raises(UsageError) as caught:
            build_engine(replace(request, builder=with_plugins(library)))
        assert f"plug-in library '{library.name}': " in str(caught.value)
        return str(caught.value)

    def test_a_library_of_something_else(self, request_for, relu, compiled):
        said = self.refusal(request_for(relu, SMALL), compiled("other.so", text="int f() { return 1; }"))
        assert "getCreators could not be loaded" in said
        assert "give a library that exports getCreators and setLoggerFinder" in said

    def test_a_library_of_the_older_kind(self, request_for, relu, compiled):
        assert "an older kind" in self.refusal(request_for(relu, SMALL), compiled("old.so", text=BEFORE_TEN))

    def test_a_text(self, request_for, relu, tmp_path):
        (tmp_path / "text.so").write_text("no library")
        said = self.refusal(request_for(relu, SMALL), tmp_path / "text.so")
        assert "Unable to load library" in said
        assert "ldd" in said

    def test_a_library_that_needs_another_which_is_nowhere(self, request_for, relu, compiled):
        lost = compiled("liblost.so", text="int lost() { return 1; }")
        words = (f"-L{lost.parent}", "-Wl,--no-as-needed", "-llost")
        library = compiled("needy.so", *words, text="int f();")
        assert "liblost.so" in self.refusal(request_for(relu, SMALL), library)

    def test_two_libraries_that_bring_the_same(self, request_for, relu, same, compiled):
        again = compiled("again.so", "-O2")
        assert plugin_digest(again) != plugin_digest(same)
        with pytest.raises(UsageError, match=r"'again.so': .*exists already.*leave that --plugin out"):
            build_engine(request_for(relu, SMALL, builder=with_plugins(same, again)))

    def test_it_is_found_before_a_long_build(self, request_for, relu, compiled, tmp_path):
        library = compiled("other.so", text="int f() { return 1; }")
        with pytest.raises(UsageError, match="getCreators"):
            examine(request_for(relu, SMALL).model_path, parse_target("rtx"), tmp_path, (library,))


class TestNodes:
    def test_the_parser_gives_a_node_that_it_does_not_know_to_its_plugin(self, request_for, contrib, fast_gelu):
        """Without a GPU TensorRT for RTX 1.7 ends its process right behind that."""
        if survey_gpus().gpus:
            pytest.skip("there is a GPU here, so the library does not end its process")
        request = request_for(contrib, SMALL, builder=with_plugins(fast_gelu))
        with pytest.raises(EngineError) as caught:
            build_engine(request)
        assert "signal SIGABRT, while reading the model" in str(caught.value)
        assert "likely: TensorRT for RTX without a GPU" in str(caught.value)
        assert "build on a machine with a GPU, without --plugin, or" in str(caught.value)
        with pytest.raises(EngineError, match="likely: TensorRT for RTX without a GPU"):
            examine(request.model_path, request.target, request.folder, (fast_gelu,))

    def test_without_the_plugin_the_node_is_refused(self, request_for, contrib, tmp_path):
        request = request_for(contrib, SMALL)
        found = run_job(build_job(request), tmp_path / "log", unheard).failure
        assert found is not None
        assert (found.stage, found.problems[0].node) == ("parse", "gelu")

    @pytest.mark.parametrize("operator", ["NonZero", "Sinh"])
    def test_an_operator_that_a_plugin_stands_for_is_not_refused_by_a_rule(self, graph, operator):
        """One that the library cannot build, and one that its parser does not know."""
        model = graph([helper.make_node(operator, ["x"], ["y"])], {"x": (FLOAT, ["n"])}, {"y": (FLOAT, [None, "n"])})
        facts = Facts("tensorrt_rtx", {}, frozenset(["Sinh"]), 24, 17)
        assert [p.operator for p in node_problems(model.graph, facts)] == [operator]
        assert not list(node_problems(model.graph, replace(facts, plugins=frozenset([operator]))))

    def test_a_plugin_does_not_hide_what_the_library_ignores_in_its_own_operators(self, graph):
        node = helper.make_node("Attention", ["q", "k", "v", "", "", "", "lengths"], ["y"])
        sizes = {name: (FLOAT, ["b", 4, "s", 8]) for name in "qkv"}
        model = graph([node], sizes | {"lengths": (TensorProto.INT64, ["b"])}, {"y": (FLOAT, [None] * 4)}, opset=24)
        facts = Facts("tensorrt_rtx", {}, frozenset(), 24, 24, frozenset(["Attention"]))
        assert "would be ignored without an error" in next(node_problems(model.graph, facts)).message


class TestPrivateCopies:
    def options(self, *libraries: Path) -> BuildOptions:
        return BuildOptions(builder=with_plugins(*libraries))

    def test_what_is_hashed_is_what_is_loaded_also_when_the_file_changes_meanwhile(self, tmp_path):
        given = tmp_path / "x.so"
        given.write_bytes(b"first")
        (copy,) = with_private_plugins(self.options(given), tmp_path / "private").builder.plugins
        given.write_bytes(b"second")
        assert (copy.name, copy.read_bytes()) == ("x.so", b"first")

    def test_a_link_leads_to_its_library(self, tmp_path):
        (tmp_path / "x.so.1").write_bytes(b"code")
        (tmp_path / "x.so").symlink_to("x.so.1")
        (copy,) = with_private_plugins(self.options(tmp_path / "x.so"), tmp_path / "private").builder.plugins
        assert not copy.is_symlink()
        assert copy.read_bytes() == b"code"

    @pytest.mark.parametrize(
        ("name", "said"),
        [("none.so", "cannot be read .No such file"), ("folder", "it is no file"), ("pipe.so", "it is no file")],
    )
    def test_what_is_no_file_is_wrong_use_and_no_pipe_is_waited_for(self, tmp_path, name, said):
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "pipe.so")
        with pytest.raises(UsageError, match=rf"--plugin .*{name}: {said}"):
            with_private_plugins(self.options(tmp_path / name), tmp_path / "private")

    def test_the_same_bytes_twice_are_wrong_use(self, tmp_path):
        for name in ("a.so", "b.so"):
            (tmp_path / name).write_bytes(b"code")
        with pytest.raises(UsageError, match=r"b\.so: this library was given twice"):
            with_private_plugins(self.options(tmp_path / "a.so", tmp_path / "b.so"), tmp_path / "private")
