"""core/diskroom: a pause begins below --min-free, ends a fifth above it, and does not last for ever."""

from __future__ import annotations

from crawltool import limits
from crawltool.core.diskroom import DiskRoom, least_bytes


def test_a_pause_ends_only_when_a_fifth_more_is_free() -> None:
    rule = DiskRoom(1000, 60.0)
    seen = [rule.look(free, now) for now, free in enumerate([1001, 1000, 999, 1000, 1199, 1200, 1000, 999])]
    assert seen == [True, True, False, False, False, True, True, False]


def test_patience_counts_from_the_begin_of_the_pause() -> None:
    rule = DiskRoom(1000, 60.0)
    rule.look(10, 5.0)
    rule.look(500, 30.0)
    assert not rule.is_over(64.9) and rule.is_over(65.0)
    rule.look(5000, 66.0)
    assert not rule.is_over(1000.0)


def test_nothing_to_be_kept_free_never_pauses() -> None:
    assert DiskRoom(0, 1.0).look(0, 0.0)


def test_the_default_is_a_share_of_a_small_disk_and_an_amount_of_a_large_one() -> None:
    assert least_bytes(None, 20 * 10**9) == 10**9
    assert least_bytes(None, 10**13) == limits.FREE_BYTES_MIN
    assert least_bytes(7, 10**13) == 7
