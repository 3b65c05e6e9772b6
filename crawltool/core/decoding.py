"""What did the server pack? Undoes Content-Encoding, never beyond a bound.

Servers mislabel: a plain body called gzip is kept as it is and said so, an unknown word is ignored, bytes after the last
member are dropped. Sizes are counted while unpacking, the only place that sees them (a bomb is 1,000 times its wire
size). The door of isal and zstandard for content coding. Called by core/pages/content for pages and core/pages/sitemaps for files
that are gzip by nature. Source: RFC 9110 section 8.4, RFC 9659 (zstd window).
"""

from __future__ import annotations

from typing import NamedTuple

import zstandard
from isal import igzip_lib

from crawltool import limits

ACCEPTED = "gzip, deflate, zstd"  # what we ask for, and what is undone here

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # the stub calls the class an instance
_PIECE = 64 * limits.KIB  # input is fed so, since the decompressor copies what follows a member
_STEP = 16 * limits.KIB  # output is taken so: what came before a broken place is kept
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = frozenset({"br", "compress", "x-compress", "dcb", "dcz", "pack200-gzip", "exi", "aes128gcm"})


class Decoded(NamedTuple):
    """Unpacked bytes, and one sentence when not everything went as labelled; no data when nothing is readable."""

    data: bytes
    trouble: str | None = None


def decode(body: bytes, content_encoding: str | None, limit: int) -> Decoded:
    """Undo all codings of a body, the last applied first; the result has at most `limit` bytes.

    The bound on expansion (limits.DECODED_RATIO_MAX) holds beyond 1 MiB only: small pages of blanks pack well.
    """
    if not content_encoding:
        return Decoded(body[:limit])
    words = [word.strip().lower() for word in content_encoding.split(",")]
    codings = [word for word in words if word and word != "identity"]
    if len(codings) > limits.DECODED_LAYERS_MAX:
        return Decoded(b"", f"{len(codings)} content codings: not decoded")
    bound = _bound(len(body), limit)
    data, troubles = body, []
    for coding in reversed(codings):
        data, trouble = _undo(coding, data, bound)
        if trouble:
            troubles.append(trouble)
    return Decoded(data[:limit], "; ".join(troubles) or None)


def is_gzip(data: bytes) -> bool:
    """Tell by its first bytes whether data is a gzip file, whatever it is called."""
    return data.startswith(_GZIP_MAGIC)


def _bound(packed: int, limit: int) -> int:
    by_ratio = max(limits.MIB, packed * limits.DECODED_RATIO_MAX)
    return min(limit, limits.DECODED_BYTES_MAX, by_ratio)


def _undo(coding: str, data: bytes, bound: int) -> Decoded:
    if coding in ("gzip", "x-gzip"):
        if not data.startswith(_GZIP_MAGIC):
            return Decoded(data, "labelled gzip but is not" if data else None)
        return _inflate(data, igzip_lib.DECOMP_GZIP, bound)
    if coding == "deflate":
        return _deflate(data, bound)
    if coding in ("zstd", "x-zstd"):
        if not data.startswith(_ZSTD_MAGIC):
            return Decoded(data, "labelled zstd but is not" if data else None)
        return _unzstd(data, bound)
    if coding in _FOREIGN:
        return Decoded(b"", f"encoding not supported: {coding}")
    return Decoded(data, f"unknown content coding: {coding[:40]}")


def _deflate(data: bytes, bound: int) -> Decoded:
    """Undo zlib, or the bare deflate stream that some servers send under the same name."""
    if len(data) > 1 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0:
        return _inflate(data, igzip_lib.DECOMP_ZLIB, bound)
    bare = _inflate(data, igzip_lib.DECOMP_DEFLATE, bound)
    if data and not bare.data:
        return Decoded(data, "labelled deflate but is not")
    return bare


def _inflate(data: bytes, flag: int, bound: int) -> Decoded:
    """Unpack all members; what follows the last one is junk and dropped, as browsers do."""
    out: list[bytes] = []
    room, at, members = bound, 0, 0
    while at < len(data) and room > 0:
        if members == limits.DECODED_MEMBERS_MAX:
            return Decoded(b"".join(out), f"more than {members} gzip members: the rest was not read")
        machine = igzip_lib.IgzipDecompressor(flag=flag)
        try:
            at, room = _one_member(machine, data, at, room, out)
        except _InflateError as error:
            return Decoded(b"".join(out), f"broken compressed data: {error}")
        members += 1
        if not machine.eof:
            break
        if flag != igzip_lib.DECOMP_GZIP or not data.startswith(_GZIP_MAGIC, at):
            return Decoded(b"".join(out))
    if room <= 0:
        return Decoded(b"".join(out), f"unpacks to more than {bound} bytes: the rest was not read")
    return Decoded(b"".join(out), None if at >= len(data) and members and machine.eof else "compressed data is cut")


def _one_member(machine: igzip_lib.IgzipDecompressor, data: bytes, at: int, room: int, out: list[bytes]) -> tuple[int, int]:
    """Unpack one member from `at`; gives the first byte after it and the room that is left."""
    while not machine.eof and room > 0:
        piece = b""
        if machine.needs_input:
            piece = data[at : at + _PIECE]
            if not piece:
                break
            at += len(piece)
        got = machine.decompress(piece, min(room, _STEP))
        if got:
            out.append(got)
            room -= len(got)
    return at - len(machine.unused_data), room


def _unzstd(data: bytes, bound: int) -> Decoded:
    machine = zstandard.ZstdDecompressor(max_window_size=limits.ZSTD_WINDOW_BYTES_MAX)
    out: list[bytes] = []
    room = bound
    try:
        with machine.stream_reader(data, read_across_frames=True) as reader:
            while room > 0:
                got = reader.read(min(room, limits.MIB))
                if not got:
                    return Decoded(b"".join(out), None if out else "compressed data is cut")
                out.append(got)
                room -= len(got)
    except zstandard.ZstdError as error:
        return Decoded(b"".join(out), f"broken compressed data: {error}")
    return Decoded(b"".join(out), f"unpacks to more than {bound} bytes: the rest was not read")
