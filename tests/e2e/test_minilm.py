"""A sentence encoder: padding along the masked axis is proven, and every answer stays what the model says."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tokenizers import Tokenizer

from trtc.runtime import RequestError, load

SENTENCES = (
    "The cat sat on the mat.",
    "A feline rested on a rug.",
    "Interest rates rose again this quarter.",
    "Yes.",
    "When a function is called, its arguments are evaluated before the body runs.",
)
TOKENS, EMBEDDING = "onnx::Shape_422", "461"


def feeds_of(rng, rows, tokens):
    """Random ids; masks of 1 to all real tokens in each row."""
    lengths = rng.integers(1, tokens + 1, rows)
    return {
        "input_ids": rng.integers(0, 30522, (rows, tokens)),
        "attention_mask": (np.arange(tokens) < lengths[:, None]).astype(np.int64),
    }


@pytest.fixture(scope="module")
def session(minilm):
    with load(minilm.path) as session:
        yield session


@pytest.fixture(scope="module")
def reference(plain, minilm_path):
    return plain(minilm_path)


def test_padding_of_the_masked_axis_is_proven(minilm):
    padding = [e for e in minilm.manifest.evidence if e.kind == "padding"]
    assert {e.symbol for e in padding} >= {"sequence_length"}
    for evidence in padding:
        assert evidence.accepted
        assert not evidence.deviation_accepted
        assert evidence.runs >= 50
        assert {f.output for f in evidence.findings} == {"output", "463", TOKENS, EMBEDDING}
        assert all(f.max_abs <= f.allowed for f in evidence.findings)
        assert evidence.domain["attention_mask"].rows_nonzero


def test_rows_are_proven_independent(minilm):
    (rows,) = [e for e in minilm.manifest.evidence if e.kind == "rows"]
    assert rows.accepted
    assert rows.symbol == "batch_size"


def test_every_profile_was_compared_exact_and_padded(minilm):
    (engine,) = minilm.manifest.engines
    first = [v for v in engine.verification if v.reference.startswith("ONNX Runtime")]
    assert {(v.profile, v.mode) for v in first} == set(itertools.product(("p0", "p1", "p2"), ("exact", "padded")))
    assert all(v.passed and v.runs for v in first)


def test_padded_answers_equal_exact_ones_at_many_sizes(session, reference, assert_equal_outputs):
    rng = np.random.default_rng(0)
    for rows, tokens in [(1, 1), (4, 32), *zip(rng.integers(1, 5, 40), rng.integers(1, 33, 40), strict=True)]:
        feeds = feeds_of(rng, int(rows), int(tokens))
        assert_equal_outputs(session, session.run(feeds), reference(feeds))


def test_a_request_runs_at_the_bucket_of_the_smallest_profile_that_holds_it(session):
    assert session.explain({"batch_size": 3, "sequence_length": 9}).run_sizes == {
        "batch_size": 4,
        "sequence_length": 16,
    }


def test_real_sentences_get_the_embeddings_of_the_model(
    session, reference, minilm_tokenizer_path, assert_equal_outputs
):
    tokenizer = Tokenizer.from_file(str(minilm_tokenizer_path))
    tokenizer.no_padding()
    vectors = []
    for sentence in SENTENCES:
        ids = np.array([tokenizer.encode(sentence).ids], np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        got = session.run(feeds)
        assert_equal_outputs(session, got, reference(feeds))
        vectors.append(got[EMBEDDING][0] / np.linalg.norm(got[EMBEDDING]))
    likeness = np.array(vectors) @ np.array(vectors).T
    np.fill_diagonal(likeness, -1)
    assert likeness[0].argmax() == 1
    assert likeness[1].argmax() == 0


def test_a_row_without_any_token_runs_at_its_exact_size(session, reference, assert_equal_outputs):
    feeds = {"input_ids": np.arange(10, 15)[None], "attention_mask": np.zeros((1, 5), np.int64)}
    expected = reference(feeds)
    assert_equal_outputs(session, session.run(feeds), expected)
    # What padding would have given instead is far away, so the line above says something.
    padded = {name: np.pad(array, ((0, 0), (0, 3))) for name, array in feeds.items()}
    assert np.abs(reference(padded)[TOKENS][:, :5] - expected[TOKENS]).max() > 0.1


def test_a_mask_value_that_was_never_probed_runs_at_its_exact_size(session, reference, assert_equal_outputs):
    feeds = {"input_ids": np.arange(10, 15)[None], "attention_mask": np.array([[-1, 0, 0, 0, 0]])}
    assert_equal_outputs(session, session.run(feeds), reference(feeds))


def test_the_mask_may_be_left_out(session, reference, assert_equal_outputs):
    ids = np.random.default_rng(1).integers(0, 30522, (3, 11))
    expected = reference({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    assert_equal_outputs(session, session.run({"input_ids": ids}), expected)


def test_a_request_beyond_every_profile_is_refused_with_what_is_served(session):
    with pytest.raises(RequestError, match=r"sequence_length=33.*1\.\.32"):
        session.run({"input_ids": np.ones((1, 33), np.int64)})


def test_four_threads_and_mixed_sizes_always_get_the_answers_of_their_own_request(
    minilm, reference, assert_equal_outputs
):
    rng = np.random.default_rng(2)
    requests = [feeds_of(rng, rows, tokens) for rows, tokens in itertools.product((1, 2), (1, 3, 5, 8, 12))]
    expected = [reference(feeds) for feeds in requests]
    order = [rng.integers(0, len(requests), 500).tolist() for _ in range(4)]
    with load(minilm.path, slots=2) as session:

        def check(picks):
            for k in picks:
                assert_equal_outputs(session, session.run(requests[k]), expected[k])
            return len(picks)

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(check, order)) == 2000
        before = session.stats
        for feeds in requests:
            session.run(feeds)
        assert session.stats.arena.allocations == before.arena.allocations
