"""Was this URL found in the exact store a while ago?

Two caches in front of the store for URLs that many pages link to: of texts, which saves parsing them, and of keys. Exact:
they hold the whole of what they hold, and the rest is asked of the store (law 7). Called by core/frontier/admission; only
what is known for good goes in, so nothing is ever taken out.
"""

from __future__ import annotations

KEY_BYTES = 16
PLACES = 1 << 21  # 32 MiB
FIRST_PLACES = 1 << 12  # until it has been filled once over: a small crawl needs no large cache
GENERATION = 100_000  # texts; two generations are held


class Confirmed:
    """A table with one place for each key; a later key takes the place of an earlier one."""

    def __init__(self, places: int = FIRST_PLACES, most: int = PLACES) -> None:
        self._most = most
        self._set(places)

    def _set(self, places: int) -> None:
        self._mask = places - 1
        self._keys = bytearray(places * KEY_BYTES)
        self._added = 0

    def __contains__(self, key: bytes) -> bool:
        at = (int.from_bytes(key[:4], "little") & self._mask) * KEY_BYTES
        return self._keys[at : at + KEY_BYTES] == key

    def add(self, key: bytes) -> None:
        """Hold a key."""
        if self._added > self._mask < self._most - 1:
            self._set(min(8 * (self._mask + 1), self._most))
        at = (int.from_bytes(key[:4], "little") & self._mask) * KEY_BYTES
        self._keys[at : at + KEY_BYTES] = key
        self._added += 1


class Texts:
    """The URL texts of two generations: when one is full, it takes the place of the one before."""

    def __init__(self) -> None:
        self._recent: dict[str, None] = {}
        self._older: dict[str, None] = {}

    def __contains__(self, text: str) -> bool:
        return text in self._recent or text in self._older

    def add(self, text: str) -> None:
        """Hold a text."""
        self._recent[text] = None
        if len(self._recent) > GENERATION:
            self._older, self._recent = self._recent, {}
