"""LZ4 frames are unpacked, and broken ones are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core import lz4
from crawltool.records import Locator
from crawltool.stores import warcread
from crawltool.stores.warcwalk import Piece, walk
from tests.paths import shared_data

LINKED, ALONE, SUMS, SIZED = 0x44, 0x64, 0x54, 0x4C


def frame(*blocks: bytes, flags: int = LINKED, plain: bool = False) -> bytes:
    head = lz4.MAGIC + bytes((flags, 0x40)) + (b"\0" * 8 if flags & 0x08 else b"") + b"\0"
    sums = b"\0" * 4 if flags & 0x10 else b""
    parts = [(len(block) | (0x80000000 if plain else 0)).to_bytes(4, "little") + block + sums for block in blocks]
    return head + b"".join(parts) + b"\0" * 4 + b"\0" * 4


def unpacked(packed: bytes) -> bytes:
    parts = list(lz4.frame(lambda at, size: packed[at : at + size], 0))
    assert parts[-1] == len(packed)
    return b"".join(part for part in parts if isinstance(part, bytes))


def long_length(count: int) -> bytes:
    return b"\xff" * ((count - 15) // 255) + bytes(((count - 15) % 255,))


@pytest.mark.parametrize("flags", [LINKED, ALONE, SUMS, SIZED])
def test_literals_and_matches_are_unpacked(flags: int) -> None:
    assert unpacked(frame(b"\x50hello", flags=flags)) == b"hello"
    # "ab", then 20 bytes from 2 back, then a last literal
    assert unpacked(frame(b"\x2fab\x02\x00\x01\x10!", flags=flags)) == b"ab" + b"ab" * 10 + b"!"
    assert unpacked(frame(b"hello", flags=flags, plain=True)) == b"hello"
    text = b"x" * 1000
    assert unpacked(frame(b"\xf0" + long_length(1000) + text, flags=flags)) == text


def test_matches_reach_into_the_block_before_where_blocks_are_linked() -> None:
    blocks = (b"\x50hello", b"\x01\x05\x00\x10!")
    assert unpacked(frame(*blocks)) == b"hellohello!"
    with pytest.raises(lz4.BadFrame):
        unpacked(frame(*blocks, flags=ALONE))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        lz4.MAGIC,
        b"\x1f\x8b\x08" + b"\0" * 20,
        frame(b"\x50hell"),
        frame(b"\x2fab\x00\x00\x01"),
        frame(b"\x2fab\x09\x00\x01"),
        frame(b"\x50hello")[:-10],
        frame(b"a" * 70_000, plain=True),
        frame(b"\x1fa\x01\x00" + b"\xff" * 400 + b"\x00\x00"),  # a bomb: more than the block may hold
        frame(b"\x50hello", flags=0x45),  # needs a dictionary
    ],
)
def test_a_broken_frame_is_told(packed: bytes) -> None:
    with pytest.raises(lz4.BadFrame):
        unpacked(packed)


@given(st.binary(max_size=200), st.integers(0, 60), st.binary(max_size=3))
@settings(max_examples=200, deadline=None)
def test_no_bytes_raise_anything_else(text: bytes, at: int, junk: bytes) -> None:
    good = bytearray(frame(b"\x2fab\x02\x00\x01\x10!", b"\x50hello"))
    good[at : at + len(junk)] = junk
    for packed in (bytes(good), lz4.MAGIC + text):
        try:
            assert len(unpacked(packed)) < 400_000
        except (lz4.BadFrame, AssertionError):
            continue


def told(pieces: Iterator[Piece]) -> list[tuple[bytes, bytes]]:
    return [(piece.raw_head, b"".join(piece.chunks())) for piece in pieces]


def test_an_archive_so_packed_has_the_same_bytes() -> None:
    packed = shared_data("warc/chatnoir-resiliparse/warcfile.warc.lz4")
    assert told(walk(packed)) == told(walk(shared_data("warc/chatnoir-resiliparse/warcfile.warc")))
    last = list(walk(packed))[-1]
    record = warcread.read(packed.parent, Locator(file=packed.name, offset=last.offset, length=last.length))
    assert last.head is not None and record.headers["warc-record-id"] == last.head.get("warc-record-id")
