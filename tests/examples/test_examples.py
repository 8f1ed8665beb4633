"""Each example and the demo run as a person runs them, and print the right facts."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

LINES = 17


@pytest.fixture(scope="module")
def run_example(repository, tmp_path_factory):
    """Run an example in a process of its own, with its bundles in a folder that is thrown away."""
    folder = tmp_path_factory.mktemp("examples")

    def run(name, *words):
        command = [sys.executable, repository / "examples" / name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)

    def run_quick(name):
        done = run(name, "--quick", "--out", folder)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    run_quick.plain = run
    return run_quick


def rows_under(output, title):
    """Cells of the table whose header line begins with ``title``; columns stand two or more blanks apart."""
    lines = iter(output.splitlines())
    for line in lines:
        if line.split("  ")[0].strip() == title or line.strip().split("  ")[0] == title:
            break
    else:
        raise AssertionError(f"no table {title!r} in:\n{output}")
    rows = []
    for line in lines:
        cells = re.split(r" {2,}", line.strip())
        if len(cells) < 2:
            if rows and not set(line.strip()) - set("─ "):
                break
            continue
        rows.append(cells)
    return rows


@pytest.mark.usefixtures("minilm_path", "minilm_tokenizer_path")
def test_sentences_get_sensible_neighbours_and_the_embeddings_of_onnx_runtime(run_example):
    output = run_example("01_encode_sentences.py")
    neighbours = {row[0]: row[1] for row in rows_under(output, "sentence") if len(row) == 3}
    assert len(neighbours) > 20
    (found,) = [near for sentence, near in neighbours.items() if sentence.startswith('A "break" statement')]
    assert found.startswith('A "continue" statement')
    (found,) = [near for sentence, near in neighbours.items() if sentence.startswith('The expression "lambda')]
    assert found.startswith("Lambda expressions")
    assert all(0.3 < float(row[2]) < 1 for row in rows_under(output, "sentence") if len(row) == 3)
    assert "against plain ONNX Runtime: equal within tolerance" in output
    assert {row[3] for row in rows_under(output, "batch")} == {"p0", "p1"}
    assert "using the bundle" in run_example("01_encode_sentences.py")


@pytest.mark.usefixtures("ppocr_rec_path")
def test_every_rendered_line_is_read_as_written_and_padded_widths_are_refused(run_example):
    output = run_example("02_read_text_lines.py")
    rows = rows_under(output, "width, px")
    assert len(rows) == LINES
    assert all(written == read for *_, written, read, _ in rows)
    assert {row[-1] for row in rows} == {"yes"}
    assert any(int(row[1]) > 1 for row in rows)
    assert len({row[0] for row in rows}) > 8
    assert "refused: padding p2o.DynamicDimension.1 is refused: output 'softmax_11.tmp_0' moved by" in output
    assert f"{LINES} of {LINES} lines were read as they were written" in output


@pytest.mark.usefixtures("minilm_path", "minilm_tokenizer_path")
def test_what_was_served_is_planned_for_and_built_exactly(run_example):
    output = run_example("03_plan_from_traffic.py")
    assert "served 60 sentences" in output
    profiles = rows_under(output, "profile")
    assert 1 < len(profiles) <= 4
    lengths = [float(row[2].rstrip("%")) for row in rows_under(output, "profiles") if len(row) == 3 and "%" in row[2]]
    assert lengths == sorted(lengths, reverse=True)
    assert "built planned.trtc exactly as plan.toml says" in output


@pytest.mark.usefixtures("minilm_path", "minilm_tokenizer_path", "ppocr_rec_path")
def test_the_demo_proves_compares_and_refuses(run_example):
    output = run_example("demo.py")
    proven = {row[0]: row[1:] for row in rows_under(output, "proven")}
    assert float(proven["padded = exact: sequence_length"][1]) <= 1e-4
    assert "engine = ONNX Runtime CPU" in proven
    speed = [row for row in rows_under(output, "class") if len(row) == 8]
    assert [row[0] for row in speed] == ["short", "medium", "long"]
    assert all(float(row[7]) <= 1e-4 for row in speed)
    assert all(re.fullmatch(r"\d+ ±\d+%", cell) for row in speed for cell in row[2:5])
    assert "is refused: output 'softmax_11.tmp_0'" in " ".join(output.split())
    assert output.rstrip().endswith("every answer was the same, and the wrong padding was refused")


@pytest.mark.parametrize(
    "name",
    [
        "01_encode_sentences.py",
        "02_read_text_lines.py",
        "03_plan_from_traffic.py",
        "04_benchmark_against_onnxruntime.py",
        "demo.py",
    ],
)
def test_each_example_explains_itself(run_example, name):
    done = run_example.plain(name, "--help")
    assert done.returncode == 0
    assert "--out" in done.stdout
    assert "--quick" in done.stdout


def test_an_unmodified_program_labels_files_alike_on_a_bundle_of_its_own_traffic(run_example):
    output = run_example("05_unmodified_program.py")
    labels = dict(rows_under(output, "file"))
    assert labels["inputs.py"] == "python"
    assert "labels are the same" in output
    assert re.search(r"\n[1-9]\d* calls by the bundle, 0 left to ONNX Runtime;", output)


@pytest.mark.usefixtures("minilm_path", "minilm_tokenizer_path")
def test_a_bundle_is_measured_beside_onnx_runtime_on_the_same_work(run_example):
    output = run_example("04_benchmark_against_onnxruntime.py")
    assert "the answers are the same within tolerance" in output
    sides = {row[0]: int(row[1]) for row in rows_under(output, "side") if row[1].isdigit()}
    assert sides["trtc"] == sides["ONNX Runtime"] >= 20
    ratio, low, high = map(float, re.search(r"ratio ([\d.]+), between ([\d.]+) and ([\d.]+)", output).groups())
    assert 0 < low <= ratio <= high
    waits = {row[0]: row[1:] for row in rows_under(output.partition("independent users")[2], "side")}
    assert int(waits["open loop: the wait"][0]) >= 20
