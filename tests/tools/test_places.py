"""Every option that names a file to write is looked at before any work begins."""

from __future__ import annotations

import errno
import os
import tempfile

import click
import pytest

from trtc.tools.cli import command

SIZES = ("--sizes", "batch=1,seq=5")
WRITERS = {
    ("build", "-o"): ("{model}",),
    ("plan", "-o"): ("{model}", "--traffic", "{traffic}"),
    ("plan", "--html"): ("{model}", "--traffic", "{traffic}"),
    ("inspect", "--html"): ("{bundle}",),
    ("run", "--save-outputs"): ("{bundle}", *SIZES),
    ("bench", "--export-times"): ("{bundle}", *SIZES),
    ("bench", "--html"): ("{bundle}", *SIZES),
    ("bench", "--trace"): ("{bundle}", *SIZES),
    ("compare", "--save-inputs"): ("{bundle}", "{model}"),
    ("compare", "--save-outputs"): ("{bundle}", "{model}"),
    ("diff", "--junit"): ("{bundle}", "{bundle}"),
}
"""What each needs beside the option itself. ``exec`` has tests of its own: there the program runs all the same."""
READ = {
    *("--onnx", "--traffic", "--samples", "--inputs", "--model", "--model-root", "--tokenizer", "--plan"),
    *("--from-bundle", "--load-engine", "--load-inputs", "--load-outputs", "--plugins", "--timing-cache"),
}
"""Options that name something to read; one that is in neither table is new: say which it is."""
FILES = {writer: words for writer, words in WRITERS.items() if writer != ("build", "-o")}


@pytest.fixture
def say(trtc, encoder, built, tmp_path):
    """Run a command that is to write to a place."""
    traffic = tmp_path / "traffic.jsonl"
    traffic.write_text('{"sizes": {"batch": 1, "seq": 5}}\n')
    names = {"model": encoder, "bundle": built, "traffic": traffic}

    def run(writer, place):
        verb, option = writer
        return trtc(verb, *(word.format(**names) for word in WRITERS[writer]), option, place)

    return run


def named(writers):
    return [pytest.param(writer, id=" ".join(writer)) for writer in writers]


def refused(said, code, text):
    assert (said.code, said.out) == (code, ""), said.err
    assert text in said.err
    assert ": " in said.err
    assert not [line for line in said.err.splitlines() if line.startswith(("loading", "comparing", "measuring"))]


def test_every_option_that_names_a_path_is_known_to_read_or_to_write():
    context = click.Context(command)
    options = [
        (verb, option.opts)
        for verb in command.list_commands(context)
        if verb != "exec"
        for option in command.get_command(context, verb).params
        if isinstance(option, click.Option) and isinstance(option.type, click.Path)
    ]
    written = {(verb, name) for verb, names in options for name in names} & set(WRITERS)
    assert written == set(WRITERS)
    others = [set(names) for verb, names in options if not any((verb, name) in WRITERS for name in names)]
    assert [names for names in others if not names & READ] == []


@pytest.mark.parametrize("writer", named(WRITERS))
def test_a_place_that_takes_no_file_is_refused_before_any_work(say, writer):
    suffix = ".npz" if writer[1].startswith("--save") else ".out"
    refused(say(writer, f"/proc/trtc-test{suffix}"), 4, "/proc may not be written")


@pytest.mark.parametrize("writer", named(WRITERS))
def test_a_folder_without_rights_is_refused_before_any_work(say, writer, tmp_path, monkeypatch):
    """Rights are taken away in the look-up alone: tests may run as a user who may write everywhere."""

    def refuse(dir=None):  # noqa: A002 (named as in tempfile)
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    name = "x.trtc" if writer[0] == "build" else "x.npz"
    refused(say(writer, tmp_path / name), 4, f"{tmp_path} may not be written (Permission denied)")


@pytest.mark.parametrize("writer", named(FILES))
def test_folders_and_devices_are_no_files(say, writer, tmp_path):
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    refused(say(writer, folder), 2, "that is a folder")
    refused(say(writer, tmp_path / "none" / "x.npz"), 2, "there is no folder")
    device = tmp_path / "device.npz"
    device.symlink_to("/dev/null")
    refused(say(writer, device), 2, "no regular file")
    assert device.is_symlink()


def test_a_bundle_is_not_written_to_links_that_lead_in_circles(say, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for place in (loop, loop / "m.trtc"):
        refused(say(("build", "-o"), place), 2, "its links lead in circles")
    assert loop.is_symlink()


def test_a_file_takes_the_place_of_a_link_that_leads_in_circles(say, tmp_path):
    loop = tmp_path / "loop.toml"
    loop.symlink_to("loop.toml")
    said = say(("plan", "-o"), loop)
    assert said.code == 0, said.err
    assert loop.is_file()
    assert not loop.is_symlink()


def test_verify_says_at_once_that_it_cannot_write_what_it_finds(trtc, bundle, encoder, monkeypatch):
    def refuse(dir=None):  # noqa: A002 (named as in tempfile)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    refused(trtc("verify", bundle, "--model", encoder), 4, "look only, with --dry-run")
    assert trtc("verify", bundle, "--model", encoder, "--dry-run").code == 0


def test_a_place_that_is_looked_at_keeps_what_it_holds(say, tmp_path):
    place = tmp_path / "out.npz"
    place.write_bytes(b"before")
    assert say(("run", "--save-outputs"), place).code == 0
    assert place.read_bytes() != b"before"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".", "tmp"))] == []
