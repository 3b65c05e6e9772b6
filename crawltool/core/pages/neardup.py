"""Which of the pages seen so far reads nearly the same as this one?

Two SimHashes of 64 bits that differ in at most DISTANCE_MAX = 3 bits agree wholly in at least one of four blocks of 16
bits (three differences cannot touch four blocks). So a page is filed under four keys, one per block, and compared with
those only that share one of them; nothing nearer is missed as long as no bucket is full (Manku, Jain and Das Sarma,
"Detecting near-duplicates for web crawling", WWW 2007). Of numpy, whose door is core/pages/simhash, this is the other wing; it is
loaded when a bucket is first so full that it pays, for it takes longer to load than thousands of pages to compare. Called by
stages/dedup and stores/signatures, which keeps the buckets.
"""

from __future__ import annotations

import struct

from crawltool import limits

DISTANCE_MAX = 3  # of 64 bits; the same paper's choice for the web
_BLOCKS = 4
_BLOCK_BITS = 16
KEY_BYTES = 3  # block number, then its 16 bits
ENTRY_BYTES = 16  # row number and SimHash, 8 bytes each, big-endian: a bucket sorts by age
_FILED = struct.Struct(f">{KEY_BYTES}xQQ")  # key, row number, SimHash
_FEW = 128  # entries that are compared one by one as fast as all at once


def signature(simhash: str | None, words: int) -> int | None:
    """Read a record's SimHash; None when it is missing or malformed, or when the page has too few words for it."""
    if simhash is None or words < limits.SIMHASH_WORDS_MIN or len(simhash) != 16:
        return None
    try:
        return int(simhash, 16)
    except ValueError:
        return None


def keys(simhash: int) -> list[bytes]:
    """Give the four bucket keys of a SimHash, ascending."""
    return [bytes((block,)) + (simhash >> block * _BLOCK_BITS & 0xFFFF).to_bytes(2, "big") for block in range(_BLOCKS)]


def entry(row: int, simhash: int) -> bytes:
    """Give what is filed in each bucket of a page."""
    return row.to_bytes(8, "big") + simhash.to_bytes(8, "big")


def near(simhash: int, filed: bytes | memoryview) -> list[tuple[int, int]]:
    """Give (distance, row) of all that lie within DISTANCE_MAX, nearest first, the older first among equals.

    `filed` is the content of the four buckets: key and entry of each, one after the other.
    """
    if len(filed) > _FEW * _FILED.size:
        return _near_among_many(simhash, filed)
    hits = set()
    for row, other in _FILED.iter_unpack(filed):
        distance = (other ^ simhash).bit_count()
        if distance <= DISTANCE_MAX:
            hits.add((distance, row))
    return sorted(hits)


def _near_among_many(simhash: int, filed: bytes | memoryview) -> list[tuple[int, int]]:
    import numpy as np

    table = np.frombuffer(filed, dtype=np.dtype([("key", f"V{KEY_BYTES}"), ("row", ">u8"), ("simhash", ">u8")]))
    left = table["simhash"].astype(np.uint64) ^ np.uint64(simhash)
    for _ in range(DISTANCE_MAX):
        left &= left - np.uint64(1)  # drops the lowest set bit; 0 stays 0. Popcount as such needs numpy 2
    hits = table[np.flatnonzero(left == 0)]
    return sorted({((int(filed_hash) ^ simhash).bit_count(), int(row)) for _, row, filed_hash in hits})
