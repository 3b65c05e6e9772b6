"""stores/machine: the tightest of machine and control groups, in both versions, as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

from crawltool.stores.machine import Memory, memory

MEMINFO = "MemTotal:       16000000 kB\nMemFree:          500000 kB\nMemAvailable:    8000000 kB\nHugePages_Total:       0\n"


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_machine_without_groups_has_what_it_says(tmp_path: Path) -> None:
    assert memory(lay(tmp_path, {"proc/meminfo": MEMINFO})) == Memory(8_000_000 * 1024, 16_000_000 * 1024)


def test_a_group_above_ours_counts_and_its_file_cache_does_not(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/user/crawl\n",
        "sys/fs/cgroup/user/crawl/memory.max": "max\n",
        "sys/fs/cgroup/user/crawl/memory.current": "900\n",
        "sys/fs/cgroup/user/memory.max": "1000\n",
        "sys/fs/cgroup/user/memory.current": "950\n",
        "sys/fs/cgroup/user/memory.stat": "anon 500\ninactive_file 30\n",
    }
    assert memory(lay(tmp_path, files)) == Memory(80, 1000)


def test_version_1_and_its_way_to_say_no_limit(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/x/y\n0::/\n",
        "sys/fs/cgroup/memory/x/y/memory.limit_in_bytes": "2000\n",
        "sys/fs/cgroup/memory/x/y/memory.usage_in_bytes": "1900\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1900\n",
    }
    assert memory(lay(tmp_path, files)) == Memory(100, 2000)


def test_where_nothing_is_told_nothing_is_known(tmp_path: Path) -> None:
    assert memory(tmp_path) is None


def test_this_machine_has_memory() -> None:
    found = memory()
    assert found is None or 0 < found.available <= found.total
