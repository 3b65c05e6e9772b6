"""Which 64 bits stand for this text, so that nearly the same text gives nearly the same bits?

SimHash (Charikar 2002) over shingles of three words. A word is a run of letters and digits in lower case; of scripts
without blanks each sign is a word, so that shingles are runs of three signs. All steps are whole-array arithmetic modulo
2^64 over the UTF-8 bytes: a word's hash is made of its first eight bytes, its last eight and its length, so the work
after finding the words grows with their number and stays in the cache. The door of numpy. VERSION names this arithmetic:
fingerprints of two versions cannot be compared. Called by core/pages/htmlpage and core/pages/plaintext.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawltool import limits

VERSION = 1

_Bytes = NDArray[np.uint8]
_Hashes = NDArray[np.uint64]
_PAD = b"\0" * 8  # so that eight bytes can be taken at any place
# How bits are counted: fields of twice the width (shift, mask), then the sum of as many as the new fields hold for sure.
_WIDER = (
    (np.uint64(1), np.uint64(0x5555555555555555), 3),
    (np.uint64(2), np.uint64(0x3333333333333333), 5),
    (np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F), 17),
)
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_STEPS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
# ASCII letters in lower case, digits as they are, other ASCII zero; bytes of other signs stay.
_FOLDED = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else code & 0x80 and code for code in range(256))
# Signs outside ASCII that are no letters, by their UTF-8: lead byte, then the ranges of the 16 bits that follow it.
_NO_LETTERS: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {
    0xC2: (2, ((0x80, 0xA9), (0xAB, 0xB4), (0xB6, 0xB9), (0xBB, 0xBF))),  # the Latin-1 signs but ª µ º
    0xE2: (3, ((0x8080, 0xAFBF),)),  # punctuation, arrows, boxes and other symbols
    0xE3: (3, ((0x8080, 0x8084), (0x8088, 0x80A0), (0x83BB, 0x83BB))),  # CJK punctuation
    0xEF: (3, ((0xBC81, 0xBC8F), (0xBC9A, 0xBCA0), (0xBCBB, 0xBD80), (0xBD9B, 0xBDA5), (0xBB80, 0xBBBF))),  # full width, BOM
}
# Scripts written without blanks: Thai to Burmese and Khmer by the two first bytes, kana and Han by the first.
_SIGN_PAIRS = ((0xE0B8, 0xE0BB), (0xE180, 0xE182), (0xE19E, 0xE19F))
_SIGN_LEADS = (0xE3, 0xE9)
_ASTRAL_LEAD = 0xF0  # rare Han, emoji


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
    shingles = words[1:-1] * _STEPS[0]
    shingles += words[2:]
    shingles += words[:-2] * _STEPS[1]
    return Fingerprint(_majority(_mixed(shingles)), count)


def distance(one: int, other: int) -> int:
    """Count the bits in which two fingerprints differ."""
    return (one ^ other).bit_count()


def to_hex(bits: int) -> str:
    """Write a fingerprint as the 16 digits of `page.simhash`."""
    return f"{bits:016x}"


def _word_hashes(text: str) -> _Hashes:
    """Hash each word; empty when there is none."""
    is_plain = text.isascii()
    folded = (text if is_plain else text.lower()).encode("utf-8", "replace").translate(_FOLDED)
    codes = np.frombuffer(bytearray(_PAD + folded + _PAD), dtype=np.uint8)
    if not is_plain:
        _clear_marks(codes)
    is_letter = codes != 0
    if is_plain:
        edges = (is_letter[1:] ^ is_letter[:-1]).nonzero()[0] + 1  # where a word begins, where it ends, and so on
        starts, ends = np.ascontiguousarray(edges[::2]), edges[1::2]
    else:
        goes_on = is_letter[1:] & is_letter[:-1] & ~_sign_edges(codes)  # the byte is of the same word as the one before
        starts = np.flatnonzero(is_letter[1:] & ~goes_on) + 1
        ends = np.flatnonzero(is_letter[:-1] & ~goes_on) + 1
    lengths = ends - starts
    # Eight bytes at each place, at any alignment.
    loads: _Hashes = np.ndarray((len(codes) - 7,), dtype="<u8", buffer=codes.data, strides=(1,))
    hashes = loads.take(starts) & _MASKS.take(lengths, mode="clip")
    hashes *= _STEPS[0]
    is_long = np.flatnonzero(lengths > 8)
    hashes[is_long] ^= loads[starts[is_long] + lengths[is_long] - 8] * _STEPS[1]
    hashes += lengths.astype(np.uint64)
    return _mixed(hashes)


def _clear_marks(codes: _Bytes) -> None:
    """Put zeros in the place of signs beyond ASCII that are no letters."""
    for lead, (size, ranges) in _NO_LETTERS.items():
        places = np.flatnonzero(codes == lead)
        if not len(places):
            continue
        follow = codes[places + 1].astype(np.int64)
        if size == 3:
            follow = follow * 256 + codes[places + 2]
        found = places[np.logical_or.reduce([(follow >= first) & (follow <= last) for first, last in ranges])]
        for step in range(size):
            codes[found + step] = 0


def _sign_edges(codes: _Bytes) -> NDArray[np.bool_]:
    """Tell for each byte but the first whether a word begins there because it, or the sign before, is a word of its own."""
    leads = (codes >= _SIGN_LEADS[0]) & (codes <= _SIGN_LEADS[1]) | (codes >= _ASTRAL_LEAD)
    places = np.flatnonzero((codes == 0xE0) | (codes == 0xE1))
    pairs = codes[places].astype(np.uint16) << 8 | codes[places + 1]
    for first, last in _SIGN_PAIRS:
        leads[places[(pairs >= first) & (pairs <= last)]] = True
    edges = leads[1:].copy()
    signs = np.flatnonzero(leads)
    # The byte after a sign begins a word too, be it a letter or another sign.
    edges[signs + np.where(codes[signs] >= _ASTRAL_LEAD, 4, 3) - 1] = True
    return edges


def _mixed(values: _Hashes) -> _Hashes:
    """Spread every bit over all bits (the finisher of MurmurHash3)."""
    for factor in _MIX:
        values = values ^ (values >> np.uint64(33))
        values *= factor
    return values ^ (values >> np.uint64(33))


def _majority(hashes: _Hashes) -> int:
    """Set each bit that more than half of the hashes have.

    64 counters of one bit become 32 of two bits and 32 more in a second word, and so on until eight of one byte lie side by
    side in each of eight words; after each step as many words are added up as cannot overflow: 3, 5, 17.
    """
    rows = -(-len(hashes) // 255)
    planes = np.zeros((1, rows * 255), dtype=np.uint64)
    planes[0, : len(hashes)] = hashes
    for shift, mask, group in _WIDER:
        halves = np.empty((2, *planes.shape), dtype=np.uint64)
        np.bitwise_and(planes, mask, out=halves[0])
        np.right_shift(planes, shift, out=halves[1])
        halves[1] &= mask
        planes = np.add.reduce(halves.reshape(2 * len(planes), group, -1), axis=1)
    counts = np.add.reduce(planes.view(np.uint8).reshape(8, rows, 8), axis=1, dtype=np.uint32)
    is_set = np.greater(counts.T, len(hashes) // 2)
    return int.from_bytes(np.packbits(is_set, bitorder="little").tobytes(), "little")
