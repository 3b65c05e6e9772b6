"""Lines come back sorted, however few fit into memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crawltool import limits
from crawltool.stores.sorting import Sorter


@pytest.mark.parametrize("memory_bytes", [1, 5000, 10**9])
def test_lines_come_back_in_the_order_of_their_bytes(memory_bytes: int) -> None:
    lines = [b"%d \xff\n" % random.Random(n).randrange(10**6) for n in range(400)] + [b"a\n", b"B\n", b"a b\n", b"a\n"]
    with Sorter(memory_bytes) as sorter:
        for line in lines:
            sorter.add(line)
        assert list(sorter.lines()) == sorted(lines)


def test_descriptors_are_bounded_and_let_go_of() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    with Sorter(memory_bytes=1) as sorter:
        for n in range(3 * limits.SORT_RUNS_MAX):
            sorter.add(b"%d\n" % n)
            assert descriptors() <= before + limits.SORT_RUNS_MAX + 2
    assert descriptors() <= before
