"""The plan file: written and read back it is the same plan; edited wrongly it is refused with the path of the key."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.profiles import Ladder, Profile, Range, UsageError
from trtc.profiles.cost import CostModel
from trtc.profiles.plan_file import (
    PlanFile,
    PlannedBuild,
    PlannedCost,
    PlannedExecution,
    PlannedTraffic,
    cost_digest,
    parse_plan,
    read_plan,
)
from trtc.profiles.plan_text import plan_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SHARES = st.floats(0, 1)
SECONDS = st.floats(0, 1e9)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
RANGES = st.lists(st.integers(0, 2**40), min_size=3, max_size=3).map(lambda n: Range(*sorted(n))) | st.integers(
    0, 9
).map(lambda low: Range(low, None, None))
BUILDS = st.builds(
    PlannedBuild,
    targets=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    pads=st.lists(TEXTS, max_size=3).map(tuple),
    fills=st.lists(TEXTS, max_size=3).map(tuple),
    derives=st.lists(TEXTS, max_size=3).map(tuple),
    accept_padding_error=st.booleans(),
    atol=SECONDS,
    rtol=SECONDS,
    seed=st.integers(0, 2**40),
)
EXECUTIONS = st.builds(
    PlannedExecution,
    mode=st.sampled_from(["exact", "bucket"]),
    slots=st.integers(0, 64),
    threads=st.integers(0, 64),
    reason=TEXTS,
)
TRAFFIC = st.builds(
    PlannedTraffic, digest=DIGESTS, requests=st.integers(0, 2**40), summary=st.lists(TEXTS, max_size=30).map(tuple)
)
COSTS = st.builds(
    PlannedCost,
    expected_s=SECONDS,
    exact_s=SECONDS,
    lower_s=SECONDS,
    waste=SHARES,
    refused=SHARES,
    source=st.sampled_from(["measured", "analytic"]),
    model=DIGESTS,
    error=st.none() | SECONDS,
    reason=TEXTS,
)


@st.composite
def plans(draw):
    symbols = draw(st.lists(TEXTS, max_size=3, unique=True))
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    profiles = tuple(Profile(name, {symbol: draw(RANGES) for symbol in symbols}) for name in names)
    costs = draw(st.just(()) | st.tuples(*[SECONDS] * len(names)))
    return PlanFile(
        draw(DIGESTS),
        tuple(symbols),
        Ladder(profiles, costs),
        draw(BUILDS),
        draw(st.none() | EXECUTIONS),
        draw(st.none() | TRAFFIC),
        draw(st.none() | COSTS),
    )


@given(plan=plans())
def test_a_plan_that_is_written_and_read_is_the_same_plan(plan):
    again = parse_plan(plan_text(plan))
    assert again == plan
    assert [tuple(p.ranges) for p in again.ladder.profiles] == [tuple(p.ranges) for p in plan.ladder.profiles]
    assert plan_text(again) == plan_text(plan)


@pytest.fixture
def plan():
    profiles = tuple(
        Profile(f"p{i}", {"batch": Range(1, 4, 8), "seq": Range(1, top, top)}) for i, top in enumerate((32, 128))
    )
    return PlanFile(
        model="ab" * 32,
        symbols=("batch", "seq"),
        ladder=Ladder(profiles, (0.001, 0.004)),
        build=PlannedBuild(
            ("cpu",), ("seq:right",), ("ids=0",), (), accept_padding_error=False, atol=1e-5, rtol=1e-4, seed=0
        ),
        execution=PlannedExecution("bucket", 2, 1, "padded sizes take 0.80 of the time"),
        traffic=PlannedTraffic("cd" * 32, 1000, ("1,000 requests",)),
        cost=PlannedCost(0.002, 0.0015, 0.002, 0.2, 0.0, "measured", "ef" * 32, 0.03, "2 of at most 8 profiles"),
    )


def test_a_plan_that_does_not_speak_of_callers_leaves_them_open(plan):
    assert parse_plan(plan_text(plan).replace("callers = 0\n", "")) == plan
    with pytest.raises(UsageError, match=r"build.callers is -1; it is 0 or more"):
        parse_plan(plan_text(plan).replace("callers = 0", "callers = -1"))


def test_a_plan_reads_like_this(plan):
    assert (
        plan_text(plan)
        == f"""\
# A plan, written by `trtc plan`. Build exactly this with: trtc build MODEL --plan FILE --frozen

format = 1

# The model that this plan was made for; a frozen build refuses any other.
[model]
sha256 = "{"ab" * 32}"
symbols = ["batch", "seq"]

# Options of the build that this plan fixes.
[build]
targets = ["cpu"]
pad = ["seq:right"]
fill = ["ids=0"]
derive = []
accept_padding_error = false
atol = 1e-05
rtol = 0.0001
seed = 0
callers = 0

# exact: requests run at their own sizes; bucket: padded to a profile's max. 0: decided when loading.
[execution]
mode = "bucket"
slots = 2
threads = 1
reason = "padded sizes take 0.80 of the time"

# The profiles: [min, opt, max] of each symbol, or [min] without an upper end; cost_s is one run at max.
[[profiles]]
name = "p0"
cost_s = 0.001
ranges = {{ batch = [1, 4, 8], seq = [1, 32, 32] }}

[[profiles]]
name = "p1"
cost_s = 0.004
ranges = {{ batch = [1, 4, 8], seq = [1, 128, 128] }}

# What the profiles were chosen for. Only for people to read.
[traffic]
digest = "{"cd" * 32}"
requests = 1000
summary = ["1,000 requests"]

# What to expect, in seconds a request and shares. Only for people to read.
[cost]
expected_s = 0.002
exact_s = 0.0015
lower_s = 0.002
waste = 0.2
refused = 0.0
source = "measured"
model = "{"ef" * 32}"
error = 0.03
reason = "2 of at most 8 profiles"
"""
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("atol = 1e-05", "atoll = 1e-05", r"plan\.toml: build\.atol is missing", id="missing-key"),
        pytest.param("seed = 0", "seed = 0\nsede = 1", r"build\.sede: .*did you mean 'seed'", id="unknown-key"),
        pytest.param(
            "format = 1", "format = 1\nlater = 2", r"plan\.toml: later: this key has no meaning", id="unknown-top"
        ),
        pytest.param("format = 1", "format = 2", "format is 2, but this trtc reads 1", id="another-format"),
        pytest.param("format = 1", "format = true", "write a whole number", id="bool-for-a-number"),
        pytest.param("seed = 0", "seed = -1", r"build\.seed is -1; it is 0 or more", id="negative"),
        pytest.param("atol = 1e-05", "atol = nan", r"build\.atol is nan", id="nan"),
        pytest.param("atol = 1e-05", 'atol = "x"', r"build\.atol is 'x'; write a number", id="text-for-a-number"),
        pytest.param(
            'pad = ["seq:right"]', "pad = [1]", r"build\.pad is \[1\]; it is a list of texts", id="list-of-other"
        ),
        pytest.param('targets = ["cpu"]', "targets = []", r"build\.targets is empty", id="no-target"),
        pytest.param(
            'mode = "bucket"', 'mode = "fast"', "execution.mode is 'fast'; it is 'exact' or 'bucket'", id="mode"
        ),
        pytest.param(
            "seq = [1, 32, 32]", "seq = [9, 3, 4]", r"profiles\[0\]\.ranges\.seq is \[9, 3, 4\]", id="no-range"
        ),
        pytest.param("seq = [1, 32, 32]", "seq = [1, 2]", r"profiles\[0\]\.ranges\.seq is \[1, 2\]", id="two-numbers"),
        pytest.param(
            "seq = [1, 32, 32]", "sqe = [1, 32, 32]", "profile 'p0' has ranges of batch, sqe", id="other-symbol"
        ),
        pytest.param('name = "p1"', 'name = "p0"', "profiles: a ladder needs .* different names", id="name-twice"),
        pytest.param("cost_s = 0.001\n", "", "1 of 2 profiles have cost_s", id="cost-for-some"),
        pytest.param("cost_s = 0.001", "costs = 1", r"profiles\[0\]\.costs: .*did you mean 'cost_s'", id="profile-key"),
        pytest.param("ab" * 32, "xy", r"model\.sha256 is 'xy'; it is a SHA-256", id="no-digest"),
        pytest.param("waste = 0.2", "waste = 20", r"cost\.waste is 20\.0; it is a share", id="share"),
        pytest.param("[traffic]", "[traffic", "correct that line", id="no-toml"),
    ],
)
def test_a_wrong_edit_is_refused_with_the_path_of_the_key(plan, old, new, message):
    text = plan_text(plan)
    assert old in text
    with pytest.raises(UsageError, match=message):
        parse_plan(text.replace(old, new, 1))


def test_a_whole_number_may_stand_where_a_number_belongs(plan):
    assert parse_plan(plan_text(plan).replace("atol = 1e-05", "atol = 1", 1)).build.atol == 1.0


def test_a_figure_that_is_not_finite_is_not_written(plan):
    wrong = PlannedBuild(("cpu",), (), (), (), accept_padding_error=False, atol=math.inf, rtol=0.0, seed=0)
    with pytest.raises(UsageError, match="finite"):
        plan_text(PlanFile(plan.model, plan.symbols, plan.ladder, wrong))


def test_a_text_that_is_no_unicode_is_not_written(plan):
    wrong = PlannedExecution("exact", 0, 0, "\ud800")
    with pytest.raises(UsageError, match="no Unicode"):
        plan_text(PlanFile(plan.model, plan.symbols, plan.ladder, plan.build, wrong))


@pytest.mark.parametrize("content", [pytest.param(b"\xff", id="no-utf-8"), pytest.param(None, id="missing")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "plan.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"plan\.toml cannot be read"):
        read_plan(path)


def test_the_file_is_read_back(tmp_path, plan):
    path = tmp_path / "plan.toml"
    path.write_text(plan_text(plan), encoding="utf-8")
    assert read_plan(path) == plan


def test_cost_models_that_differ_have_different_digests():
    models = [
        CostModel(("seq",), ((1, 64),), (1.0, top), source) for top in (2.0, 3.0) for source in ("measured", "analytic")
    ]
    assert len({cost_digest(model) for model in models}) == len(models)
