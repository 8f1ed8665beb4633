"""Bundles that no session was served by are named, each with its reason."""

from __future__ import annotations

from trtc.engines.source_digest import source_digest
from trtc.tools.exec_not_used import not_used

A, B, C = "a" * 64, "b" * 64, "c" * 64


def bundle(path, file_sha256, source_sha256="f" * 64):
    return {"path": path, "file_sha256": file_sha256, "source_sha256": source_sha256}


def reasons(*args):
    return {item["path"]: item["reason"] for item in not_used(*args)}


def test_a_second_bundle_of_a_model_is_named_with_the_first():
    bundles = [bundle("/x/one.trtc", A), bundle("/x/two.trtc", A), bundle("/x/one.trtc", A)]
    assert reasons(bundles, {A: "m.onnx"}, {"/x/one.trtc"}) == {
        "/x/two.trtc": "/x/one.trtc, another bundle of the same model, came first"
    }


def test_a_bundle_that_knows_its_content_only_is_of_the_model_too():
    bundles = [bundle("/x/one.trtc", "", source_digest(bytes.fromhex(A), b"")), bundle("/x/two.trtc", A)]
    assert list(reasons(bundles, {A: "m.onnx"}, {"/x/one.trtc"})) == ["/x/two.trtc"]


def test_an_edited_model_of_the_same_name_is_named_with_both_digests():
    [reason] = reasons([bundle("/x/m.trtc", A)], {B: "other.onnx", C: "m.onnx"}, ()).values()
    assert f"built from ({A[:12]}); m.onnx ({C[:12]}) was opened: if the model has changed since, build again" in reason
    assert "other.onnx" not in reason


def test_without_a_model_of_its_name_those_that_were_opened_are_named():
    opened = {str(i) * 64: f"{i}.onnx" for i in range(5)}
    [reason] = reasons([bundle("/x/m.trtc", A)], opened, ()).values()
    assert reason.endswith("; opened: 0.onnx (000000000000), 1.onnx (111111111111), 2.onnx (222222222222) and 2 more")
    assert reasons([bundle("/x/m.trtc", "")], {}, ()) == {
        "/x/m.trtc": "no model that was opened has the digest that it was built from"
    }


def test_a_bundle_whose_session_was_refused_is_told_of_elsewhere():
    assert reasons([bundle("/x/m.trtc", A)], {A: "m.onnx"}, ()) == {}
