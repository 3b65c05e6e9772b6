"""Which 64 bits stand for this text, so that nearly the same text gives nearly the same bits?

SimHash (Charikar 2002) over shingles of three words. A word is a run of letters and digits in lower case; of scripts
without blanks each sign is a word, so that shingles are runs of three signs. All steps are whole-array arithmetic modulo
2^64: a word's hash is the sum of its signs times powers of one odd number, brought back to place zero by the number's
inverse. The door of numpy. VERSION names this arithmetic: fingerprints of two versions cannot be compared. Called by
core/htmlpage and core/plaintext.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawltool import limits

VERSION = 1

_Codes = NDArray[np.uint8] | NDArray[np.uint32]
_Words = NDArray[np.uint64]
_RADIX = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2^64
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_STEPS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))
_SIGN = 0x10000  # added to signs that are words of their own
# Scripts written without blanks: Thai to Burmese, Khmer, kana, Han, compatibility forms.
_SIGN_RANGES = ((0x0E00, 0x109F), (0x1780, 0x17FF), (0x3040, 0x31FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F))
_LOW_BITS = np.uint64(0x0101010101010101)
_ASCII = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 0 for code in range(256))


class Fingerprint(NamedTuple):
    """64 bits, None for texts of fewer than limits.SIMHASH_WORDS_MIN words, and the number of words."""

    bits: int | None
    words: int


def fingerprint(text: str) -> Fingerprint:
    """Give a text's SimHash; only its first limits.SIMHASH_CHARS_MAX signs count."""
    words = _word_hashes(text[: limits.SIMHASH_CHARS_MAX])
    count = len(words)
    if count < limits.SIMHASH_WORDS_MIN:
        return Fingerprint(None, count)
    shingles = words[2:] + words[1:-1] * _STEPS[0] + words[:-2] * _STEPS[1]
    return Fingerprint(_majority(_mixed(shingles)), count)


def distance(one: int, other: int) -> int:
    """Count the bits in which two fingerprints differ."""
    return (one ^ other).bit_count()


def to_hex(bits: int) -> str:
    """Write a fingerprint as the 16 digits of `page.simhash`."""
    return f"{bits:016x}"


def _letters(text: str) -> tuple[_Codes, NDArray[np.intp]]:
    """Give the signs of a text with zeros for what belongs to no word, and where words begin."""
    if text.isascii():
        plain = np.frombuffer(text.encode().translate(_ASCII), dtype=np.uint8)
        return plain, np.flatnonzero(_starts(plain != 0))
    codes = _FOLDED[np.frombuffer(text.encode("utf-16-le", "replace"), dtype=np.uint16)]
    is_letter = codes != 0
    is_start = _starts(is_letter)
    is_sign = codes >= _SIGN
    is_start |= is_sign  # a sign of its own always is a word, and ends the one before
    is_start[1:] |= is_sign[:-1] & is_letter[1:]
    return codes, np.flatnonzero(is_start)


def _starts(is_letter: NDArray[np.bool_]) -> NDArray[np.bool_]:
    is_start = is_letter.copy()
    is_start[1:] &= ~is_letter[:-1]
    return is_start


def _word_hashes(text: str) -> _Words:
    """Hash each word; empty when there is none."""
    codes, starts = _letters(text)
    if not len(starts):
        return np.empty(0, dtype=np.uint64)
    powers, inverses = _powers(len(codes))
    # Blanks count zero, so that the sum up to the next start is the word's own.
    sums = np.cumsum(codes * powers[: len(codes)])
    ends = np.empty(len(starts), dtype=np.uint64)
    ends[:-1] = sums[starts[1:] - 1]
    ends[-1] = sums[-1]
    ends[1:] -= ends[:-1].copy()
    # Before the first start there are only blanks: nothing to take away from the first word.
    return _mixed(ends * inverses[starts])


def _mixed(values: _Words) -> _Words:
    """Spread every bit over all bits (the finisher of MurmurHash3)."""
    for factor in _MIX:
        values = values ^ (values >> np.uint64(33))
        values *= factor
    return values ^ (values >> np.uint64(33))


def _majority(hashes: _Words) -> int:
    """Set each bit that more than half of the hashes have.

    Eight counters of one byte lie side by side in a word, so each stretch is at most 255 hashes long.
    """
    rows = -(-len(hashes) // 255)
    padded = np.zeros(rows * 255, dtype=np.uint64)
    padded[: len(hashes)] = hashes
    partial = np.empty((8, rows), dtype=np.uint64)
    for bit in range(8):
        ones = padded >> np.uint64(bit)
        ones &= _LOW_BITS
        np.add.reduce(ones.reshape(rows, 255), axis=1, out=partial[bit])
    counts = np.add.reduce(partial.view(np.uint8).reshape(8, rows, 8), axis=1, dtype=np.uint32)
    is_set = np.greater(counts.T, len(hashes) // 2)
    return int.from_bytes(np.packbits(is_set, bitorder="little").tobytes(), "little")


def _folded() -> NDArray[np.uint32]:
    """Make the table from a sign to what counts: 0 for no letter, its lower case, or more than _SIGN for a word of its own."""
    table = np.zeros(0x10000, dtype=np.uint32)
    for code in range(0x10000):
        if 0xD800 <= code <= 0xDFFF:
            table[code] = _SIGN + code  # half of a sign beyond the basic plane: rare Han, emoji
        elif chr(code).isalnum() or 0x0300 <= code <= 0x036F:
            table[code] = ord(chr(code).lower()[0])
            if any(first <= code <= last for first, last in _SIGN_RANGES):
                table[code] += _SIGN
    return table


def _table(size: int, radix: int) -> _Words:
    table = np.full(size, radix, dtype=np.uint64)
    table[0] = 1
    return np.multiply.accumulate(table)


_FOLDED = _folded()
_tables: dict[int, tuple[_Words, _Words]] = {}


def _powers(size: int) -> tuple[_Words, _Words]:
    """Give the powers of the radix and of its inverse for at least `size` places; made once per power of two."""
    rounded = 1 << max(12, (size - 1).bit_length())
    if rounded not in _tables:
        _tables[rounded] = _table(rounded, _RADIX), _table(rounded, pow(_RADIX, -1, 1 << 64))
    return _tables[rounded]
