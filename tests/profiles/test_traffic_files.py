"""Traffic files: what each format says, what is refused with its line, and that memory stays bounded."""

import json
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import UsageError
from trtc.profiles.traffic_files import ReadOptions, collect, lines, read_traffic
from trtc.profiles.traffic_files.collect import Collector

MODEL = ReadOptions(symbols=("batch", "seq"), input_dims={"ids": ("batch", "seq"), "mask": ("batch", "seq")})


@pytest.fixture
def read(tmp_path):
    def write_and_read(name, content, options=MODEL):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_traffic([path], options).traffic

    return write_and_read


def counts(traffic):
    return {tuple(row): weight for row, weight in zip(traffic.sizes.tolist(), traffic.weights.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("t.jsonl", '{"seq": 5, "batch": 2}\n{"batch": 1, "seq": 9, "count": 3}\n', id="objects"),
        pytest.param(
            "t.jsonl", '{"sizes": {"seq": 5, "batch": 2}}\n\n{"sizes":{"batch":1,"seq":9},"count":3}', id="sizes-inside"
        ),
        pytest.param(
            "t.json", '{"symbols": ["seq", "batch"], "sizes": [[5, 2], [9, 1]], "counts": [1, 3]}', id="histogram"
        ),
        pytest.param("t.csv", "seq,batch,count\n5,2,1\n9,1,3\n", id="csv"),
        pytest.param("t.csv", "\ufeffbatch, seq\r\n2,5\r\n1,9\r\n1,9\r\n1,9\r\n", id="csv-with-mark-and-crlf"),
    ],
)
def test_every_form_says_the_same(read, name, content):
    traffic = read(name, content)
    assert traffic.symbols == ("batch", "seq")
    assert counts(traffic) == {(2, 5): 1.0, (1, 9): 3.0}
    assert traffic.requests == 4


def test_parquet_says_the_same(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet is optional")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"seq": [5, 9], "batch": [2, 1], "count": [1, 3]}), path)
    assert counts(read_traffic([path], MODEL).traffic) == {(2, 5): 1.0, (1, 9): 3.0}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"seq": [5, 0]}, "row 2: seq is 0", id="zero"),
        pytest.param({"seq": [5, None]}, "row 2: seq is empty", id="empty"),
        pytest.param({"seq": [5.5, 1.0]}, "column 'seq' is float64; sizes are whole numbers", id="fraction"),
        pytest.param({"seq": ["a", "b"]}, "column 'seq' is object", id="text"),
        pytest.param({"seq": [5, 6], "count": [1.0, float("nan")]}, "row 2: the count is nan", id="nan"),
        pytest.param({"sqe": [5, 6]}, "unknown symbol 'sqe'", id="unknown"),
    ],
)
def test_wrong_parquet_is_refused_with_its_row(tmp_path, columns, message):
    pa = pytest.importorskip("pyarrow", reason="Parquet is optional")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(UsageError, match=message):
        read_traffic([path], MODEL)


def test_a_file_that_is_no_parquet_is_refused(read):
    pytest.importorskip("pyarrow", reason="Parquet is optional")
    with pytest.raises(UsageError, match=r"t\.parquet: .*give a Parquet file"):
        read("t.parquet", "seq\n5\n")


def test_samples_give_their_shapes(tmp_path):
    for i, shape in enumerate([(2, 5), (1, 9)]):
        np.savez(tmp_path / f"{i}.npz", ids=np.zeros(shape, np.int64), mask=np.zeros(shape, np.int64))
    assert counts(read_traffic([tmp_path], MODEL).traffic) == {(2, 5): 1.0, (1, 9): 1.0}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        pytest.param({"ids": (2, 5), "mask": (2, 6)}, "seq is 5 and, in 'mask', 6", id="contradiction"),
        pytest.param({"idz": (2, 5)}, "unknown input 'idz'; did you mean 'ids'", id="unknown-input"),
        pytest.param({"ids": (5,)}, r"'ids' is \[5\], but the model has \[batch, seq\]", id="rank"),
        pytest.param({"ids": (0, 5)}, "batch is 0", id="empty"),
    ],
)
def test_wrong_samples_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "s.npz", **{name: np.zeros(shape) for name, shape in arrays.items()})
    with pytest.raises(UsageError, match=message):
        read_traffic([tmp_path / "s.npz"], MODEL)


def test_texts_are_counted_in_tokens(read, minilm_tokenizer_path):
    options = ReadOptions(tokenizer=minilm_tokenizer_path, text_symbol="seq", longest=6, other_sizes={"batch": 1})
    traffic = read("t.txt", "hello world\n\na b c d e f g h\n", options)
    assert {symbol: traffic.marginal(symbol)[0].tolist() for symbol in traffic.symbols} == {"batch": [1], "seq": [4, 6]}


def test_texts_without_a_tokenizer_are_refused(read):
    with pytest.raises(UsageError, match="add --tokenizer FILE --text-symbol SYMBOL"):
        read("t.txt", "hello\n")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("t.jsonl", "", "no request in it", id="empty"),
        pytest.param("t.jsonl", "\n\n", "no request in it", id="blank-lines"),
        pytest.param("t.csv", "seq,batch\n", "no request in it", id="header-only"),
        pytest.param("t.jsonl", '{"seq": 5}\n{"seq": 5', "line 2: Expecting ',' delimiter at byte", id="cut-off"),
        pytest.param("t.jsonl", "[5]\n", r"line 1: '\[5\]' is no object", id="no-object"),
        pytest.param("t.jsonl", '{"seq": 5, "seq": 6}\n', "line 1: 'seq' stands twice", id="symbol-twice"),
        pytest.param(
            "t.jsonl", '{"seq": 5}\n{"batch": 5}\n', r"line 2: sizes of batch, but .* line 1 has seq", id="differs"
        ),
        pytest.param("t.jsonl", '{"sqe": 5}\n', "line 1: unknown symbol 'sqe'; did you mean 'seq'", id="unknown"),
        pytest.param("t.jsonl", '{"seq": 0}\n', "line 1: seq is 0; sizes are whole numbers from 1", id="zero"),
        pytest.param("t.jsonl", '{"seq": -4}\n', "line 1: seq is -4", id="negative"),
        pytest.param("t.jsonl", '{"seq": 5.0}\n', r"line 1: seq is 5\.0", id="fraction"),
        pytest.param("t.jsonl", '{"seq": true}\n', "line 1: seq is True", id="bool"),
        pytest.param("t.jsonl", '{"seq": 99999999999}\n', "line 1: seq is 99999999999", id="too-large"),
        pytest.param("t.jsonl", '{"seq": NaN}\n', "line 1: NaN is no number", id="nan-size"),
        pytest.param("t.jsonl", '{"seq": 5, "count": NaN}\n', "line 1: NaN is no number", id="nan-count"),
        pytest.param(
            "t.jsonl", '{"seq": 5, "count": -1}\n', "line 1: the count is -1; counts are positive", id="count"
        ),
        pytest.param("t.jsonl", '{"seq": 5, "count": 0}\n', "line 1: the count is 0", id="count-0"),
        pytest.param("t.jsonl", '{"seq": 5, "count": 1e999}\n', "line 1: the count is inf", id="count-infinite"),
        pytest.param("t.jsonl", '{"seq": 5, "time_s": "now"}\n', "line 1: time_s is 'now'", id="time"),
        pytest.param("t.jsonl", '{"sizes": {"seq": 5}, "batch": 1}\n', "'batch' stands beside 'sizes'", id="two-forms"),
        pytest.param("t.jsonl", "{}\n", "line 1: no symbol has a size", id="nothing"),
        pytest.param("t.jsonl", b"\xff\xfe\n", "line 1: ", id="no-utf-8"),
        pytest.param("t.jsonl", "[" * 100_000 + "\n", "line 1: ", id="deep"),
        pytest.param(
            "t.json",
            '{"symbols":["seq"],"sizes":[[5],[6]],"counts":[1]}',
            "2 sizes with 1 counts",
            id="histogram-lengths",
        ),
        pytest.param(
            "t.json",
            '{"symbols":["seq"],"sizes":[[5],[6, 7]],"counts":[1, 1]}',
            r"sizes\[1\]: not one size",
            id="histogram-row",
        ),
        pytest.param("t.csv", "seq,seq\n5,6\n", "line 1: the header .* repeats a name", id="csv-header"),
        pytest.param("t.csv", "seq,batch\n5,1\n5\n", "line 3: 1 fields, but the header names 2", id="csv-fields"),
        pytest.param("t.csv", "seq\n5\nx\n", "line 3: seq is 'x'; write a number", id="csv-text"),
        pytest.param("t.csv", "seq,count\n5,nan\n", "line 2: the count is nan", id="csv-nan"),
        pytest.param("t.csv", b"seq\n5\n\xff\n", "write comma-separated text in UTF-8", id="csv-no-utf-8"),
        pytest.param("t.npz", "no archive", "save samples with numpy.savez", id="no-npz"),
        pytest.param("t.xml", "<seq/>", "the ending '.xml' is none of .jsonl", id="ending"),
    ],
)
def test_wrong_files_are_refused_with_the_line(read, name, content, message):
    with pytest.raises(UsageError, match=message) as error:
        read(name, content)
    assert name in str(error.value)


def test_the_line_is_right_beyond_the_first_block(read, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    with pytest.raises(UsageError, match="line 101: seq is 0"):
        read("t.jsonl", '{"seq": 5}\n' * 100 + '{"seq": 0}\n{"seq": 0}')


def test_a_line_without_end_is_refused(read, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    with pytest.raises(UsageError, match="line 2: longer than 16 MiB"):
        read("t.jsonl", '{"seq": 5}\n' + " " * 5000)


def test_equal_lines_with_a_time_are_arrivals_of_their_own(read):
    traffic = read("t.jsonl", '{"seq": 9, "time_s": 1}\n' * 3)
    assert (traffic.requests, traffic.total, traffic.arrivals.count) == (3, 3.0, 3)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.jsonl cannot be read: No such file"):
        read_traffic([tmp_path / "gone.jsonl"], MODEL)


def test_files_are_read_together_and_each_must_hold_something(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"seq": 5}\n')
    (tmp_path / "b.csv").write_text("seq\n5\n6\n")
    both = read_traffic([tmp_path / "a.jsonl", tmp_path / "b.csv"], MODEL)
    assert counts(both.traffic) == {(5,): 2.0, (6,): 1.0}
    (tmp_path / "b.csv").write_text("seq\n")
    with pytest.raises(UsageError, match=r"b\.csv: there is no request"):
        read_traffic([tmp_path / "a.jsonl", tmp_path / "b.csv"], MODEL)


def recorded_line(model, name, count):
    call = {"model": model, "name": name, "inputs": {"x": [2, 5]}, "count": count, "seconds": 0.1, "times_s": []}
    return json.dumps(call) + "\n"


def test_requests_of_other_models_are_counted_and_named(read):
    lines = recorded_line("b" * 64, "minilm.onnx", 100) + recorded_line("b" * 64, "minilm.onnx", 200)
    this = ReadOptions(symbols=("seq",), model="1" * 64)
    wanted = (
        f"it has 300 requests of minilm.onnx ({'b' * 12}...), none of this model file ({'1' * 12}...); "
        "has the model changed since? record again, or give the file that was recorded"
    )
    with pytest.raises(UsageError, match=re.escape(wanted)):
        read("t.jsonl", lines, this)
    with pytest.raises(UsageError, match="none of a model file whose digest is known here"):
        read("t.jsonl", lines, ReadOptions(symbols=("seq",)))


def test_of_many_other_models_those_with_most_requests_are_named(read):
    lines = "".join(recorded_line(f"{i}" * 64, f"{i}.onnx", i) for i in range(1, 6))
    with pytest.raises(
        UsageError, match=r"it has 5 requests of 5\.onnx .*, 3 requests of 3\.onnx .* and more of 2 other"
    ):
        read("t.jsonl", lines, ReadOptions(symbols=("seq",), model="f" * 64))


def test_other_models_of_one_file_are_not_named_for_the_next(tmp_path):
    (tmp_path / "a.jsonl").write_text(recorded_line("b" * 64, "m.onnx", 3) + '{"seq": 5}\n')
    (tmp_path / "b.jsonl").write_text(recorded_line("c" * 64, "n.onnx", "many"))
    with pytest.raises(UsageError, match=r"b\.jsonl: there is no request in it"):
        read_traffic([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], MODEL)


def test_arrival_times_are_kept_in_order(read):
    traffic = read("t.jsonl", '{"seq": 9, "time_s": 2.5}\n{"seq": 5, "time_s": 0.5}\n{"seq": 7}\n')
    arrivals = traffic.arrivals
    assert (arrivals.count, arrivals.first_s, arrivals.last_s, arrivals.every) == (2, 0.5, 2.5, 1)
    assert traffic.sizes[arrivals.rows, 0].tolist() == [5, 9]


def test_many_arrival_times_are_thinned_evenly(monkeypatch):
    monkeypatch.setattr(collect, "MOST_ARRIVALS", 100)
    collector = Collector(None)
    for i in range(1000):
        collector.add({"seq": 1 + i % 3}, 1, float(i), f"row {i}")
    arrivals = collector.traffic("rows").arrivals
    assert len(arrivals.times_s) <= 100
    assert arrivals.count == 1000
    assert np.unique(np.diff(arrivals.times_s)).tolist() == [float(arrivals.every)]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 5000)), min_size=1, max_size=60),
    order=st.randoms(use_true_random=False),
)
def test_more_sizes_than_are_kept_are_rounded_up_whatever_their_order(sizes, order):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collect, "MOST_DISTINCT", 16)
        shuffled = list(sizes)
        order.shuffle(shuffled)
        found = []
        for rows in (sizes, shuffled):
            collector = Collector(("batch", "seq"))
            try:
                for row in rows:
                    collector.add(dict(zip(("batch", "seq"), row, strict=True)), 1, None, "row")
                found.append((collector.bits, counts(collector.traffic("rows"))))
            except UsageError:
                found.append(None)
        assert found[0] == found[1]
        if found[0] is not None:
            bits, kept = found[0]
            assert len(kept) <= 16
            assert sum(kept.values()) == len(sizes)
            for column in (0, 1):  # sorted, each rounded size is above its own by at most the last bit
                given_, rounded = (
                    sorted(s[column] for s in sizes),
                    sorted(k[column] for k, w in kept.items() for _ in range(int(w))),
                )
                assert all(a <= b <= a * (1 + 2.0 ** (1 - bits)) for a, b in zip(given_, rounded, strict=True))


def test_memory_does_not_grow_with_the_number_of_requests(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 13)
    path = tmp_path / "t.jsonl"
    rng = np.random.default_rng(0)
    requests = [json.dumps({"seq": int(s), "batch": int(b)}) for s, b in rng.integers(1, 9, (1000, 2))]
    peaks = []
    for repeat in (1, 8):
        path.write_text("\n".join(requests * repeat) + "\n")
        tracemalloc.start()
        read_traffic([path], MODEL)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 30_000


def test_planning_imports_no_optional_library():
    modules = "trtc.profiles.traffic_files, trtc.profiles.planner"
    code = f"import sys, {modules}; print({{'scipy', 'pyarrow', 'tokenizers'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
