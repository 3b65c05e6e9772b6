"""How much memory may still be taken on this machine, and in its control groups?

Reads what Linux tells in /proc and /sys/fs/cgroup (both versions); where neither is there, nothing is known. Called by
stages/fetchpressure once a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_UNLIMITED = 1 << 60  # version 1 of control groups writes "no limit" as a number near 2^63


class Memory(NamedTuple):
    """Bytes that may be taken without harm, and all bytes there are."""

    available: int
    total: int


def memory(root: Path = Path("/")) -> Memory | None:
    """Give the tightest of the machine's memory and of the limits of our control groups; None when nothing is known."""
    found = [one for one in (_machine(root), *_groups(root)) if one is not None]
    return min(found, key=lambda one: one.available / max(1, one.total), default=None)


def _machine(root: Path) -> Memory | None:
    fields = _fields(root / "proc/meminfo")
    if "MemAvailable:" not in fields or "MemTotal:" not in fields:
        return None
    return Memory(fields["MemAvailable:"] * 1024, fields["MemTotal:"] * 1024)


def _groups(root: Path) -> Iterator[Memory | None]:
    """Look at our group and all above it, as far as this process can see them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):
            yield _group(top.joinpath(*parts[:depth]), *names)


def _group(folder: Path, limit_name: str, used_name: str, cache_name: str) -> Memory | None:
    limit, used = _text(folder / limit_name).strip(), _text(folder / used_name).strip()
    if not limit.isdecimal() or not used.isdecimal() or int(limit) >= _UNLIMITED:
        return None
    cache = _fields(folder / "memory.stat").get(cache_name, 0)  # pages of files that the kernel gives back when asked
    return Memory(max(0, int(limit) - int(used) + cache), int(limit))


def _fields(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) > 1 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
