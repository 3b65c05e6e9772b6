"""Whatever lies within three bits is found, and nothing else."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.pages import neardup

BITS = st.integers(0, 2**64 - 1)


def filed(hashes: list[int]) -> dict[bytes, bytes]:
    """The buckets, as stores/signatures keeps them."""
    buckets: dict[bytes, bytes] = {}
    for row, each in enumerate(hashes):
        for key in neardup.keys(each):
            buckets[key] = buckets.get(key, b"") + key + neardup.entry(row, each)
    return buckets


def search(probe: int, buckets: dict[bytes, bytes]) -> list[tuple[int, int]]:
    return neardup.near(probe, b"".join(buckets.get(key, b"") for key in neardup.keys(probe)))


def apart(a: int, b: int) -> int:
    return bin(a ^ b).count("1")


@given(BITS, st.lists(st.sets(st.integers(0, 63), max_size=6), max_size=12), st.lists(BITS, max_size=5))
def test_search_by_blocks_equals_comparing_with_all(probe: int, flips: list[set[int]], others: list[int]) -> None:
    hashes = [probe ^ sum(1 << bit for bit in flip) for flip in flips] + others
    slow = sorted((apart(probe, each), row) for row, each in enumerate(hashes) if apart(probe, each) <= 3)
    assert search(probe, filed(hashes)) == slow


def test_equal_and_extreme_values_are_found() -> None:
    for value in (0, 1, 2**64 - 1, 2**63):
        assert search(value, filed([value])) == [(0, 0)]
    assert search(0, filed([2**64 - 1])) == []
    assert neardup.near(5, b"") == []


def test_keys_are_four_and_ascend() -> None:
    keys = neardup.keys(0x0123456789ABCDEF)
    assert [key.hex() for key in keys] == ["00cdef", "0189ab", "024567", "030123"]


def test_few_words_or_a_broken_simhash_say_nothing() -> None:
    enough = limits.SIMHASH_WORDS_MIN
    assert neardup.signature("00000000000000ff", enough) == 255
    for simhash, words in (("00000000000000ff", enough - 1), (None, 500), ("ff", 500), ("zzzzzzzzzzzzzzzz", 500)):
        assert neardup.signature(simhash, words) is None


def test_a_bucket_of_thousands_is_searched_right() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    hashes = [rng.getrandbits(48) << 16 | 0xBEEF for _ in range(5000)]
    probe = hashes[1234] ^ (1 << 40) ^ (1 << 63)
    assert (2, 1234) in search(probe, filed(hashes))
    assert search(probe, filed(hashes)) == sorted((apart(probe, h), r) for r, h in enumerate(hashes) if apart(probe, h) <= 3)
