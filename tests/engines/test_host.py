"""What the host offers is read from fake ``proc`` and ``sys`` trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtc.engines.cachedir import cache_dir
from trtc.engines.cgroup import cgroup_cpu_quota, cgroup_memory_limit
from trtc.engines.host import CPU_FEATURES, ThreadLimits, cpu_info, this_host, thread_limits, usable_threads
from trtc.engines.host_memory import (
    HugePagePool,
    HugePages,
    NumaNode,
    host_memory,
    huge_pages,
    numa_nodes,
    parse_cpu_list,
)

GIB = 2**30
V1_UNLIMITED = "9223372036854771712"
GROUP = "sys/fs/cgroup"


@pytest.fixture
def root(tmp_path: Path):
    """Write files below a root folder: ``root({"proc/meminfo": "..."})`` returns the folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        pytest.param({}, None, id="no-cgroups"),
        pytest.param({"proc/self/cgroup": "0::/\n"}, None, id="v2-root-has-no-limit-file"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "250000 100000\n"}, 2.5, id="v2-container"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "max 100000\n"}, None, id="v2-no-limit"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pod/app\n",
                f"{GROUP}/pod/cpu.max": "100000 100000\n",
                f"{GROUP}/pod/app/cpu.max": "400000 100000\n",
            },
            1.0,
            id="v2-the-outer-limit-is-the-least",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pod/app\n",
                f"{GROUP}/pod/cpu.max": "400000 100000\n",
                f"{GROUP}/pod/app/cpu.max": "50000 100000\n",
            },
            0.5,
            id="v2-the-inner-limit-is-the-least",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pod/app\n",
                f"{GROUP}/pod/cpu.max": "300000 100000\n",
                f"{GROUP}/pod/app/cpu.max": "max 100000\n",
            },
            3.0,
            id="v2-only-the-outer-group-is-limited",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/app\n", f"{GROUP}/other/cpu.max": "100000 100000\n"},
            None,
            id="v2-a-sibling-does-not-count",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:memory:/m\n2:cpu,cpuacct:/docker/abc\n0::/\n",
                f"{GROUP}/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "150000\n",
                f"{GROUP}/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
            },
            1.5,
            id="v1-two-controllers-on-one-mount",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "1:cpu:/docker/abc\n",
                f"{GROUP}/cpu/cpu.cfs_quota_us": "200000\n",
                f"{GROUP}/cpu/cpu.cfs_period_us": "100000\n",
            },
            2.0,
            id="v1-container-sees-its-own-group-as-the-root",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "1:cpu:/a/b\n",
                f"{GROUP}/cpu/a/cpu.cfs_quota_us": "100000\n",
                f"{GROUP}/cpu/a/cpu.cfs_period_us": "100000\n",
                f"{GROUP}/cpu/a/b/cpu.cfs_quota_us": "-1\n",
                f"{GROUP}/cpu/a/b/cpu.cfs_period_us": "100000\n",
            },
            1.0,
            id="v1-no-limit-of-its-own-below-a-limit",
        ),
        pytest.param(
            {"proc/self/cgroup": "1:cpu:/\n0::/app\n", f"{GROUP}/unified/app/cpu.max": "100000 50000\n"},
            2.0,
            id="both-versions-mounted",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/../other\n", "sys/fs/other/cpu.max": "100000 100000\n"},
            None,
            id="a-path-out-of-the-namespace-is-not-followed",
        ),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "100000 0\n"}, None, id="period-of-zero"),
        pytest.param({"proc/self/cgroup": "0::/\n", f"{GROUP}/cpu.max": "what is this\n"}, None, id="other-text"),
        pytest.param({"proc/self/cgroup": "nonsense\n", f"{GROUP}/cpu.max": "100000 100000\n"}, 1.0, id="odd-own-file"),
    ],
)
def test_the_cpu_quota_is_the_least_on_the_way_to_the_root(root, files, quota):
    assert cgroup_cpu_quota(root(files)) == quota


@given(quotas=st.lists(st.one_of(st.none(), st.integers(1_000, 10_000_000)), min_size=1, max_size=6))
def test_however_deep_the_groups_are_nested_the_least_quota_counts(tmp_path_factory, quotas):
    base = tmp_path_factory.mktemp("root")
    names = [f"g{depth}" for depth in range(len(quotas))]
    group = base / GROUP
    for name, quota in zip(names, quotas, strict=True):
        group /= name
        group.mkdir(parents=True)
        (group / "cpu.max").write_text(f"{'max' if quota is None else quota} 100000\n")
    (base / "proc/self").mkdir(parents=True)
    (base / "proc/self/cgroup").write_text(f"0::/{'/'.join(names)}\n")
    limits = [quota / 100_000 for quota in quotas if quota is not None]
    assert cgroup_cpu_quota(base) == (min(limits) if limits else None)


@pytest.mark.parametrize(
    ("files", "limit_bytes"),
    [
        pytest.param({}, None, id="no-cgroups"),
        pytest.param({f"{GROUP}/memory.max": "max\n"}, None, id="v2-no-limit"),
        pytest.param({f"{GROUP}/memory.max": f"{2 * GIB}\n"}, 2 * GIB, id="v2-container"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/pod/app\n",
                f"{GROUP}/pod/memory.max": f"{GIB}\n",
                f"{GROUP}/pod/app/memory.max": f"{4 * GIB}\n",
            },
            GIB,
            id="v2-the-outer-limit-is-the-least",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "4:memory:/app\n",
                f"{GROUP}/memory/memory.limit_in_bytes": f"{V1_UNLIMITED}\n",
                f"{GROUP}/memory/app/memory.limit_in_bytes": f"{3 * GIB}\n",
            },
            3 * GIB,
            id="v1",
        ),
        pytest.param({f"{GROUP}/memory/memory.limit_in_bytes": f"{V1_UNLIMITED}\n"}, None, id="v1-no-limit"),
    ],
)
def test_the_memory_limit_is_the_least_on_the_way_to_the_root(root, files, limit_bytes):
    assert cgroup_memory_limit(root(files)) == limit_bytes


@pytest.mark.parametrize(
    ("limits", "usable", "reason"),
    [
        pytest.param(ThreadLimits(8, 8, None), 8, "all processors of the machine", id="nothing-limits"),
        pytest.param(ThreadLimits(8, 2, None), 2, "affinity mask", id="affinity"),
        pytest.param(ThreadLimits(8, 4, 2.9), 2, "cgroup quota of 2.9 processors", id="quota-is-rounded-down"),
        pytest.param(ThreadLimits(8, 4, 0.25), 1, "cgroup quota of 0.25 processors", id="at-least-one"),
        pytest.param(ThreadLimits(8, 4, 6.0), 4, "affinity mask", id="quota-beyond-the-mask"),
        pytest.param(ThreadLimits(8, None, 16.0), 8, "all processors of the machine", id="no-masks-on-this-system"),
    ],
)
def test_the_least_limit_decides_the_threads_and_is_named(limits, usable, reason):
    assert (limits.usable, limits.reason) == (usable, reason)


def test_threads_follow_the_quota_of_the_tree_that_is_read(root):
    folder = root({f"{GROUP}/cpu.max": "100000 100000\n"})
    assert usable_threads(folder) == 1
    assert thread_limits(folder).quota == 1.0


def test_threads_without_a_quota_are_the_affinity_mask(root):
    assert usable_threads(root({})) == len(os.sched_getaffinity(0))


def test_the_first_processor_speaks_for_all(root):
    folder = root({"proc/cpuinfo": "model name\t: A: B\nflags\t\t: fpu avx2\n\nmodel name\t: other\n"})
    assert cpu_info(folder) == {"model name": "A: B", "flags": "fpu avx2"}


def test_a_system_without_cpuinfo_has_no_entries(root):
    assert cpu_info(root({})) == {}


def test_this_host_lists_its_features_in_the_fixed_order():
    features = this_host().cpu_features
    assert [name for name in CPU_FEATURES if name in features] == list(features)


def test_memory_is_total_available_and_the_cgroups_limit(root):
    folder = root(
        {
            "proc/meminfo": "MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\nHugePages_Total: 7\n",
            f"{GROUP}/memory.max": "1048576\n",
        }
    )
    memory = host_memory(folder)
    assert (memory.total_bytes, memory.available_bytes, memory.limit_bytes) == (2 * 2**20, 2**20, 2**20)


def test_huge_pages_are_read_with_their_pools(root):
    pools = "sys/kernel/mm/hugepages"
    folder = root(
        {
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            f"{pools}/hugepages-1048576kB/nr_hugepages": "1\n",
            f"{pools}/hugepages-1048576kB/free_hugepages": "0\n",
            f"{pools}/hugepages-2048kB/nr_hugepages": "64\n",
            f"{pools}/hugepages-2048kB/free_hugepages": "60\n",
        }
    )
    assert huge_pages(folder) == HugePages("madvise", (HugePagePool(2**21, 64, 60), HugePagePool(GIB, 1, 0)))


def test_a_kernel_without_huge_pages_offers_none(root):
    assert huge_pages(root({})) == HugePages(None, ())


def test_numa_nodes_come_in_the_order_of_their_numbers(root):
    nodes = "sys/devices/system/node"
    folder = root(
        {
            f"{nodes}/node10/cpulist": "\n",
            f"{nodes}/node10/meminfo": "Node 10 MemTotal:       4 kB\n",
            f"{nodes}/node2/cpulist": "0-2,8\n",
            f"{nodes}/node2/meminfo": "Node 2 MemUsed: 1 kB\nNode 2 MemTotal: 2 kB\n",
            f"{nodes}/online": "2,10\n",
        }
    )
    assert numa_nodes(folder) == (NumaNode(2, (0, 1, 2, 8), 2048), NumaNode(10, (), 4096))


@pytest.mark.parametrize("text", ["a", "1-", "1,,2", "1-2-3"])
def test_a_processor_list_in_another_format_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpu_list(text)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"TRTC_CACHE_DIR": "/a/b", "XDG_CACHE_HOME": "/x"}, Path("/a/b"), id="own-variable-wins"),
        pytest.param({"TRTC_CACHE_DIR": "c", "HOME": "/h"}, Path.cwd() / "c", id="relative-to-the-working-folder"),
        pytest.param({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, Path("/x/trtc"), id="xdg"),
        pytest.param({"XDG_CACHE_HOME": "x", "HOME": "/h"}, Path("/h/.cache/trtc"), id="relative-xdg-is-ignored"),
        pytest.param({"TRTC_CACHE_DIR": "", "HOME": "/h"}, Path("/h/.cache/trtc"), id="empty-is-unset"),
        pytest.param({}, Path.home() / ".cache/trtc", id="home-from-the-password-file"),
    ],
)
def test_the_cache_folder_follows_the_environment(environ, expected):
    assert cache_dir(environ) == expected
