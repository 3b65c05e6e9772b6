"""Which bytes lie in an archive file, whatever it is packed in, and where are they broken?

An archive is plain, or a row of gzip members, zstd or LZ4 frames. segments() unpacks it piece by piece: each piece says at
which byte of the file its member begins, and what cannot be unpacked comes as Broken, up to where the next member may
begin. Memory is bounded by one piece whatever a member claims: a bomb costs time. Sources: RFC 1952, RFC 8878, and the IIPC's
"Use of Zstandard in WARC" for dictionaries. Called by stores/warcwalk and stores/warcread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, cast

import zstandard
from isal import igzip_lib

from crawltool import limits
from crawltool.core import lz4
from crawltool.stores.packings import (
    ZSTD_MAGIC,
    InflateError,
    ZstdError,
    gzip_follows,
    is_skippable,
    lz4_follows,
    next_member,
    zstd_follows,
)

DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"  # the skippable frame that holds a dictionary, at the start of a file
_PIECE = 64 * limits.KIB
_FINE = 64  # bytes of output at a time, to save what comes before a broken place
_TRIED = 4 * limits.KIB  # of a place where a member may begin
_DICTIONARY_PIECES = limits.ZSTD_DICTIONARY_BYTES_MAX // limits.MIB
Dictionary = zstandard.ZstdCompressionDict
_ZSTD_HEAD_MAX, _BLOCK_RLE, _BLOCK_RESERVED = 18, 1, 3


class Segment(NamedTuple):
    """Unpacked bytes. offset: the first byte of their member in the file (plain: of these bytes themselves)."""

    data: bytes
    offset: int
    begins: bool  # the first bytes of a member


class Broken(NamedTuple):
    """Bytes of the file, from a member's first on, that cannot be unpacked, or not all of them."""

    offset: int
    length: int
    reason: str


Part = Segment | Broken


def segments(descriptor: int, kind: str, start: int = 0) -> Iterator[Part]:
    """Unpack a file of a kind from a member's first byte on. Raises OSError."""
    if kind == "gzip":
        return _members(descriptor, start, _gzip_member, gzip_follows)
    if kind == "zstd":
        dictionary = zstd_dictionary(descriptor)

        def frame(descriptor: int, offset: int) -> Iterator[Segment | int]:
            return _zstd_frame(descriptor, offset, dictionary)

        return _members(descriptor, start, frame, zstd_follows)
    if kind == "lz4":
        return _members(descriptor, start, _lz4_frame, lz4_follows)
    return _plain(descriptor, start)


def _plain(descriptor: int, offset: int) -> Iterator[Part]:
    while piece := os.pread(descriptor, _PIECE, offset):
        yield Segment(piece, offset, False)
        offset += len(piece)


class _Damage(ValueError):
    """A member cannot be unpacked (any further)."""


def _members(
    descriptor: int,
    offset: int,
    unpack: Callable[[int, int], Iterator[Segment | int]],
    follows: Callable[[int, int], bool],
) -> Iterator[Part]:
    """Unpack member after member; `unpack` gives segments and at last the offset behind the member."""
    while os.pread(descriptor, 1, offset):
        try:
            for part in unpack(descriptor, offset):
                if isinstance(part, int):
                    offset = part
                else:
                    yield part
        except _Damage as damage:
            behind = next_member(descriptor, offset + 1, follows)
            yield Broken(offset, behind - offset, str(damage))
            offset = behind


def _gzip_member(descriptor: int, offset: int) -> Iterator[Segment | int]:
    """Unpack one gzip member. Raises _Damage."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    taken = given = 0
    while not inflater.eof:
        piece = b""
        if inflater.needs_input:
            piece = os.pread(descriptor, _PIECE, offset + taken)
            if not piece:
                raise _Damage("torn: the file ends inside a gzip member")
            taken += len(piece)
        try:
            data = inflater.decompress(piece, _PIECE)
        except InflateError as error:
            yield from _rest_of_broken(descriptor, offset, given)
            raise _Damage(f"broken gzip data ({error})") from None
        if data:
            yield Segment(data, offset, given == 0)
            given += len(data)
    yield offset + taken - len(inflater.unused_data)


def _rest_of_broken(descriptor: int, offset: int, given: int) -> Iterator[Segment]:
    """Unpack a broken member once more in small steps: a failing call keeps back what it had unpacked."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    taken = passed = 0
    while not inflater.eof:
        piece = os.pread(descriptor, _FINE, offset + taken) if inflater.needs_input else b""
        taken += len(piece)
        try:
            data = inflater.decompress(piece, _FINE if passed >= given else min(_PIECE, given - passed))
        except InflateError:
            return
        if data and passed >= given:
            yield Segment(data, offset, passed == 0)
        passed += len(data)
        if not data and not piece and inflater.needs_input:
            return


def zstd_dictionary(descriptor: int) -> Dictionary | None:
    """Give the dictionary that a file begins with; None when it has none, or none that is within bounds."""
    head = os.pread(descriptor, 8, 0)
    size = int.from_bytes(head[4:8], "little")
    if head[:4] != DICTIONARY_MAGIC or not 0 < size <= limits.ZSTD_DICTIONARY_BYTES_MAX:
        return None
    content = os.pread(descriptor, size, 8)
    if content.startswith(ZSTD_MAGIC):
        try:
            content = b"".join(piece for piece, _ in zip(unzstd(content, None), range(_DICTIONARY_PIECES), strict=False))
        except ZstdError:
            return None
    return zstandard.ZstdCompressionDict(content)


def unzstd(frames: bytes, dictionary: Dictionary | None) -> Iterator[bytes]:
    """Unpack frames piece by piece. Raises ZstdError."""
    reader = _unpacker(dictionary).stream_reader(frames, read_across_frames=True)
    while data := reader.read(limits.MIB):
        yield data


def _unpacker(dictionary: Dictionary | None) -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=limits.ZSTD_WINDOW_BYTES_MAX)


def _zstd_frame(descriptor: int, offset: int, dictionary: Dictionary | None) -> Iterator[Segment | int]:
    """Unpack one frame, or pass a skippable one by. Raises _Damage."""
    head = os.pread(descriptor, _ZSTD_HEAD_MAX, offset)
    if is_skippable(head[:4]) and len(head) >= 8:
        after = offset + 8 + int.from_bytes(head[4:8], "little")
        if after > os.fstat(descriptor).st_size:
            raise _Damage("torn: the file ends inside a skippable frame")
        yield after
        return
    if not head.startswith(ZSTD_MAGIC):
        raise _Damage("not a zstd frame")
    behind = _behind_frame(descriptor, offset, head)
    source = _Window(descriptor, offset, behind or os.fstat(descriptor).st_size)
    reader = _unpacker(dictionary).stream_reader(cast("IO[bytes]", source), read_size=_PIECE)
    is_first = True
    try:
        while data := reader.read(_PIECE):
            yield Segment(data, offset, is_first)
            is_first = False
    except ZstdError as error:
        raise _Damage(f"broken zstd data ({error})") from None
    if behind is None:
        raise _Damage("torn: the file ends inside a zstd frame, or its blocks are broken")
    yield behind


def _lz4_frame(descriptor: int, offset: int) -> Iterator[Segment | int]:
    """Unpack one frame. Raises _Damage."""
    is_first = True
    try:
        for part in lz4.frame(lambda at, size: os.pread(descriptor, size, at), offset):
            if isinstance(part, int):
                yield part
            elif part:
                yield Segment(part, offset, is_first)
                is_first = False
    except lz4.BadFrame as error:
        raise _Damage(str(error)) from None


def unlz4(frame: bytes) -> Iterator[bytes]:
    """Unpack a frame piece by piece. Raises core.lz4.BadFrame."""
    return (part for part in lz4.frame(lambda at, size: frame[at : at + size], 0) if isinstance(part, bytes))


def _behind_frame(descriptor: int, offset: int, head: bytes) -> int | None:
    """Give the offset behind a frame by walking over its blocks; None when it is not whole."""
    end = os.fstat(descriptor).st_size
    try:
        at = offset + zstandard.frame_header_size(head)
        has_checksum = zstandard.get_frame_parameters(head).has_checksum
    except ZstdError:
        return None
    window, window_at, is_last = b"", 0, False
    while not is_last:
        if not window_at <= at <= window_at + len(window) - 3:
            window, window_at = os.pread(descriptor, _TRIED, at), at
        block = int.from_bytes(window[at - window_at : at - window_at + 3], "little")
        is_last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _BLOCK_RLE else size)
        if at > end or kind == _BLOCK_RESERVED:
            return None
    at += 4 * has_checksum
    return at if at <= end else None


class _Window:
    """A part of a file as something to read from."""

    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self._descriptor, self._at, self._end = descriptor, start, end

    def read(self, size: int = -1) -> bytes:
        """Give the next bytes."""
        data = os.pread(self._descriptor, min(size if size >= 0 else _PIECE, self._end - self._at), self._at)
        self._at += len(data)
        return data
