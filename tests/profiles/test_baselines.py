"""Ladders made by hand cover the traffic and keep to the alignment; on real text none is cheaper than the plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles.baselines import best_random, equal_counts, one_at_the_maximum, powers_of_two
from trtc.profiles.cost import CostModel, element_cost
from trtc.profiles.evaluation import evaluate_ladder
from trtc.profiles.planner import PlanRequest, plan_ladder
from trtc.profiles.traffic import traffic_from_rows

SEQ = frozenset(["seq"])
COST = CostModel(("seq",), ((1, 64, 512),), (0.1, 1.0, 12.0), "measured")
SIZES = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 300)), min_size=1, max_size=20)


def ladders(traffic, cost, align, most, tries):
    return {
        "one at the maximum": one_at_the_maximum(traffic, cost, align),
        "powers of two": powers_of_two(traffic, cost, align, most),
        "equal counts": equal_counts(traffic, cost, align, most),
        "best random": best_random(traffic, cost, align, most, tries),
    }


@given(rows=SIZES, most=st.integers(1, 5), step=st.sampled_from([1, 8, 32]))
def test_every_hand_made_ladder_covers_the_traffic_with_aligned_buckets(rows, most, step):
    traffic = traffic_from_rows(("batch", "seq"), rows)
    cost = element_cost(("batch", "seq"))
    for ladder in ladders(traffic, cost, {"seq": step}, most, tries=3).values():
        assert len(ladder.profiles) <= most
        assert evaluate_ladder(ladder, traffic, cost, frozenset(["batch", "seq"])).refused == 0.0
        assert all(p.ranges["seq"].max % step == 0 for p in ladder.profiles)


@pytest.fixture(scope="module")
def paragraphs(minilm_tokenizer_path):
    """Lengths, in tokens, of the paragraphs of Python's documentation; cut to 512."""
    from pydoc_data.topics import topics

    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm_tokenizer_path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = [text for _, topic in sorted(topics.items()) for text in topic.split("\n\n") if len(text.strip()) > 20]
    return traffic_from_rows(["seq"], [[min(len(found.ids), 512)] for found in tokenizer.encode_batch(texts)])


@pytest.mark.parametrize("cost", [pytest.param(element_cost(["seq"]), id="elements"), pytest.param(COST, id="seconds")])
@pytest.mark.parametrize("step", [1, 8])
def test_the_plan_is_cheaper_than_every_hand_made_ladder(paragraphs, cost, step):
    request = PlanRequest(max_profiles=8, padded=SEQ, align={"seq": step}, within=0.0)
    plan = plan_ladder(paragraphs, cost, request)
    for ladder in ladders(paragraphs, cost, {"seq": step}, 8, tries=300).values():
        assert plan.point.expected_s < evaluate_ladder(ladder, paragraphs, cost, SEQ).expected_s
    assert plan.point.proven


def test_waste_on_paragraphs_is_the_exact_optimum_at_every_length(paragraphs):
    """Against the O(n^2) programme, written plainly, of 1 to 16 edges."""
    sizes, weights = paragraphs.marginal("seq")
    result = plan_ladder(paragraphs, element_cost(["seq"]), PlanRequest(max_profiles=16, padded=SEQ, within=0.0))
    count, useful = len(sizes), float((sizes * weights).sum())
    before = [0.0]
    for weight in weights.tolist():
        before.append(before[-1] + weight)
    least = [0.0] + [float("inf")] * count
    for point in result.curve:
        least = [float("inf")] + [
            min(least[i] + (before[j] - before[i]) * int(sizes[j - 1]) for i in range(j)) for j in range(1, count + 1)
        ]
        assert point.waste == pytest.approx(1 - useful / least[count], abs=1e-12)
    assert [point.profiles for point in result.curve] == list(range(1, 17))
    assert result.curve[7].waste == pytest.approx(0.19, abs=0.03)  # the texts change a little with each Python
    assert result.curve[15].waste == pytest.approx(0.08, abs=0.03)
