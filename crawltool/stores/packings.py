"""How is an archive packed, and where in it may a member begin?

By the first bytes; where these are broken, by what can be found behind them. A place where a magic number stands by chance is
told from a member by looking into it. Called by stores/unpacking.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import zstandard
from isal import igzip_lib

from crawltool import limits
from crawltool.core import lz4, warcformat

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_PIECE = 64 * limits.KIB
_TRIED = 4 * limits.KIB  # of a place where a member may begin
_ZSTD_HEAD_MAX = 18
_GZIP_HEAD = 10
_MARKS = re.compile(b"|".join([*map(re.escape, (GZIP_MAGIC, ZSTD_MAGIC, lz4.MAGIC)), rb"\nWARC/[0-9]\.[0-9]"]))
_MARK_BYTES = 9
ZstdError = zstandard.ZstdError
InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # the stub calls the class an instance


def kind_of(descriptor: int) -> str:
    """Tell how a file is packed, by its first bytes: gzip, zstd, lz4 or plain. Where these are broken, by what comes next."""
    head = os.pread(descriptor, _ZSTD_HEAD_MAX, 0)
    if head.startswith(GZIP_MAGIC) and gzip_follows(descriptor, 0):
        return "gzip"
    if head.startswith(lz4.MAGIC):
        return "lz4"
    if zstd_follows(descriptor, 0) or is_skippable(head[:4]):
        return "zstd"
    if is_start(head.lstrip(b"\r\n")):
        return "plain"
    return _kind_behind(descriptor) or ("gzip" if head.startswith(GZIP_MAGIC) else "plain")


def _kind_behind(descriptor: int) -> str | None:
    """Tell a kind by the first member that begins somewhere in the file, or the first record that is not packed."""
    at = 0
    while piece := os.pread(descriptor, _PIECE, at):
        for found in _MARKS.finditer(piece):
            place = at + found.start()
            if found[0] == GZIP_MAGIC and gzip_follows(descriptor, place):
                return "gzip"
            if found[0] == ZSTD_MAGIC and zstd_follows(descriptor, place):
                return "zstd"
            if found[0] == lz4.MAGIC:
                return "lz4"
            if found[0].startswith(b"\n"):
                return "plain"
        if len(piece) < _PIECE:
            break
        at += _PIECE - _MARK_BYTES
    return None


def next_member(descriptor: int, position: int, follows: Callable[[int, int], bool]) -> int:
    """Find where a member begins behind damage; the end of the file when there is none."""
    while piece := os.pread(descriptor, _PIECE, position):
        for magic in (GZIP_MAGIC, ZSTD_MAGIC, lz4.MAGIC):
            at = piece.find(magic)
            while at >= 0:
                if follows(descriptor, position + at):
                    return position + at
                at = piece.find(magic, at + 1)
        if len(piece) < _PIECE:
            break
        position += _PIECE - len(ZSTD_MAGIC) + 1
    return os.fstat(descriptor).st_size


def gzip_follows(descriptor: int, offset: int) -> bool:
    """Tell whether a gzip member begins here, and a record in it."""
    head = os.pread(descriptor, _TRIED, offset)
    if not head.startswith(GZIP_MAGIC) or len(head) <= _GZIP_HEAD or head[3] & 0xE0:  # RFC 1952: reserved flags are 0
        return False
    try:
        return is_start(igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP).decompress(head, 512))
    except InflateError:
        return False


def zstd_follows(descriptor: int, offset: int) -> bool:
    """Tell whether a zstd frame begins here that has a plausible header; its data is proved by unpacking."""
    head = os.pread(descriptor, _ZSTD_HEAD_MAX, offset)
    try:
        return head.startswith(ZSTD_MAGIC) and zstandard.get_frame_parameters(head).window_size <= limits.ZSTD_WINDOW_BYTES_MAX
    except ZstdError:
        return False


def lz4_follows(descriptor: int, offset: int) -> bool:
    return os.pread(descriptor, 4, offset) == lz4.MAGIC


def is_start(data: bytes) -> bool:
    """Tell whether unpacked bytes look like the beginning of a record, of WARC or ARC."""
    return warcformat.is_warc(data) or data.startswith((b"http://", b"https://", b"filedesc:", b"dns:"))


def is_skippable(magic: bytes) -> bool:
    """RFC 8878 section 3.1.2: 0x184D2A50 to 0x184D2A5F."""
    return len(magic) == 4 and magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50
