"""core/frontier/confirmed: exact, bounded, and it grows with the crawl."""

from __future__ import annotations

import random

from crawltool.core.frontier.confirmed import Confirmed


def test_it_never_holds_what_was_not_added() -> None:
    chance, cache, added = random.Random(1), Confirmed(places=16, most=64), set()
    for _ in range(5000):
        key = chance.randbytes(2).ljust(16, b"k")
        if chance.random() < 0.5:
            cache.add(key)
            added.add(key)
        assert key not in cache or key in added


def test_what_was_just_added_is_there_also_when_it_grew() -> None:
    cache = Confirmed(places=2, most=1 << 10)
    for number in range(3000):
        key = number.to_bytes(16, "little")
        cache.add(key)
        assert key in cache


def test_a_later_key_takes_the_place_of_an_earlier_one() -> None:
    cache = Confirmed(places=1, most=1)
    cache.add(b"a" * 16)
    cache.add(b"b" * 16)
    assert b"a" * 16 not in cache
    assert b"b" * 16 in cache
