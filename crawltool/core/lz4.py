"""What lies in a frame of LZ4?

FastWARC writes archives so packed (.warc.lz4), one frame a record; no other writer is known, so this is short rather than fast:
some 50 MB/s. Checksums are not looked at: archives have digests. Bounded by the block sizes of the format (4 MiB). Sources:
the LZ4 frame format 1.6 and the LZ4 block format. Called by stores/unpacking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

MAGIC = b"\x04\x22\x4d\x18"
_WINDOW = 64 * 1024
_VERSION, _LINKED_NOT, _BLOCK_SUMS, _SIZE, _SUM, _DICTIONARY = 0x40, 0x20, 0x10, 0x08, 0x04, 0x01
_PLAIN = 0x80000000
_LONG = 15  # a length of four bits that goes on in the next bytes
_MATCH_MIN = 4


class BadFrame(ValueError):
    """The bytes are no frame, or a broken one."""


def frame(read: Callable[[int, int], bytes], at: int) -> Iterator[bytes | int]:
    """Give the content of the frame at a place block by block, and at last the place behind it.

    read(place, size) gives bytes, fewer at the end. Raises BadFrame.
    """
    flags, most, at = _header(read, at)
    history = b""
    while size := int.from_bytes(_exactly(read, at, 4), "little"):
        at += 4
        packed_size = size & ~_PLAIN
        if packed_size > most:
            raise BadFrame("a block beyond the frame's block size")
        packed = _exactly(read, at, packed_size)
        data = packed if size & _PLAIN else block(packed, history, most)
        history = b"" if flags & _LINKED_NOT else (history + data)[-_WINDOW:]
        at += packed_size + (4 if flags & _BLOCK_SUMS else 0)
        yield data
    yield at + 4 + (4 if flags & _SUM else 0)


def _header(read: Callable[[int, int], bytes], at: int) -> tuple[int, int, int]:
    """Give the flags, the most bytes a block may have, and the place of the first block."""
    head = _exactly(read, at, 7)
    flags, sizes = head[4], head[5] >> 4 & 7
    if head[:4] != MAGIC or flags & 0xC0 != _VERSION or flags & _DICTIONARY or not 4 <= sizes <= 7:
        raise BadFrame("not an LZ4 frame that can be read")
    return flags, 1 << (8 + 2 * sizes), at + 7 + (8 if flags & _SIZE else 0)


def block(packed: bytes, history: bytes, most: int) -> bytes:
    """Unpack one block; matches may reach into the history before it. Raises BadFrame."""
    out = bytearray(history)
    try:
        at = 0
        while True:
            token = packed[at]
            count, at = _length(packed, at + 1, token >> 4)
            out += packed[at : at + count]
            at += count
            if at > len(packed):
                raise BadFrame("a block that breaks off")
            if at == len(packed):
                break
            offset = packed[at] | packed[at + 1] << 8
            count, at = _length(packed, at + 2, token & _LONG)
            _copy(out, offset, min(count + _MATCH_MIN, most + 1))
            if len(out) - len(history) > most:
                raise BadFrame("a block that unpacks to more than its bound")
    except IndexError:
        raise BadFrame("a block that breaks off") from None
    return bytes(out[len(history) :])


def _length(packed: bytes, at: int, bits: int) -> tuple[int, int]:
    """Read the rest of a length, and give the place behind it."""
    if bits < _LONG:
        return bits, at
    while True:
        more = packed[at]
        bits += more
        at += 1
        if more < 255:
            return bits, at


def _copy(out: bytearray, offset: int, count: int) -> None:
    """Append what stands `offset` bytes before the end, again and again until there are `count` bytes of it."""
    if not 0 < offset <= len(out):
        raise BadFrame("a match before the beginning")
    start = len(out) - offset
    if offset >= count:
        out += out[start : start + count]
    else:
        out += (bytes(out[start:]) * (count // offset + 1))[:count]


def _exactly(read: Callable[[int, int], bytes], at: int, size: int) -> bytes:
    data = read(at, size)
    if len(data) < size:
        raise BadFrame("torn: the file ends inside an LZ4 frame")
    return data
