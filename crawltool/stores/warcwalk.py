"""Which records does an archive file hold, from its first byte to its last, whatever has happened to it?

walk() gives every record that can be read, of WARC and ARC, plain, gzip, zstd or LZ4, and the damage between them, each with its
place. A block is read as a stream and never longer than its record says; whoever does not read it skips it. A header that
claims a wrong length, a member that is broken, garbage between records: the walk reports it and goes on at the next record.
Every byte is looked at a bounded number of times, so no file makes it hang. Called by the stores behind `crawltool warc`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crawltool import limits
from crawltool.core import warcformat
from crawltool.core.warcformat import RecordHead
from crawltool.stores import packings
from crawltool.stores.warcstream import NEWLINES, NEXT, PATTERN_BYTES, PEEK, Stream

_CHUNK = 64 * limits.KIB
_HEAD_END = re.compile(rb"\r{0,2}\n\r{0,2}\n")
_NEXT_ARC = re.compile(rb"\n(?:https?://|dns:|ftp://)[^\r\n]*? \S+ [0-9]{14} [^\r\n]+? [0-9]+\r?\n")


class Trouble(NamedTuple):
    """Something about a record's place in its file. code is a word of core/warcchecks.CODES."""

    code: str
    text: str


class Piece:
    """One record, or bytes that are none (`head` is None, `troubles` say why).

    offset: where the record's member begins in the file (plain: the record itself); inner: unpacked bytes before it in that
    member, 0 when it can be read by offset. length and block_bytes are known after close().
    """

    def __init__(self, stream: Stream, head: RecordHead | None, offset: int, inner: int = 0) -> None:
        self.head, self.offset, self.inner, self.is_plain = head, offset, inner, stream.is_plain
        self.length = self.block_bytes = 0
        self.raw_head = b""  # the header block as it is, blank line included
        self.troubles: list[Trouble] = []
        self.is_whole = False  # header and block are all there
        self._stream, self._left, self._is_closed = stream, 0, False

    def expect(self, block_bytes: int) -> None:
        """Set how long the block is."""
        self._left = block_bytes

    def chunks(self) -> Iterator[bytes]:
        """Give the block piece by piece; once."""
        while self._left:
            data = self._stream.take(min(self._left, _CHUNK), of_record=self.block_bytes > 0)
            if not data:
                return
            self._left -= len(data)
            self.block_bytes += len(data)
            yield data

    def close(self) -> None:
        """Skip what was not read, see how the record ends, and so learn its length."""
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self.chunks():
            pass
        if self.head is not None:
            self._end()
        place = self._stream.place()
        self.length = max(0, place - self.offset) if self.head is None or self._stream.is_at_start() else 0

    def _end(self) -> None:
        stream = self._stream
        assert self.head is not None
        if self._left:
            what = "the file ends" if stream.is_at_end() else "its data break off" if stream.broken else "its member ends"
            self.troubles.append(Trouble("torn", f"{what} {self._left} bytes before the record does"))
        elif self.head.content_length is not None:
            self.is_whole = not any(trouble.code == "content_length" for trouble in self.troubles)
        ends = stream.skip_newlines()
        wanted = 1 if self.head.version == warcformat.ARC else 2
        if not self._left and ends != wanted and not (wanted == 1 and ends):
            is_last = stream.is_at_end() or (not stream.is_plain and stream.is_at_start())
            code = "last_separator" if is_last else "separator"
            self.troubles.append(Trouble(code, f"{ends} line ends after the block, not {wanted}"))


def walk(path: Path | str, start: int = 0) -> Iterator[Piece]:
    """Give every record of a file and every piece of damage, in order, from a record's first byte on.

    Each is closed when the next is asked for.

    Raises OSError; a file of another kind is one piece of damage.
    """
    with Path(path).open("rb", buffering=0) as file:
        stream = Stream(file.fileno(), packings.kind_of(file.fileno()), start)
        stream.skip_newlines()
        while (piece := _next(stream)) is not None:
            yield piece
            piece.close()


def _next(stream: Stream) -> Piece | None:
    """Give what comes next; None at the end."""
    start = stream.peek(PEEK)
    if not start:
        return _broken(stream) if stream.broken else None
    offset, inner = stream.place(), 0 if stream.is_at_start() else stream.inner
    if warcformat.is_warc(start):
        piece = _warc_record(stream, offset, inner)
    else:
        piece = _arc_record(stream, start, offset, inner)
    if piece is None:
        return _garbage(stream, offset)
    if inner:
        piece.troubles.append(Trouble("shared_member", f"begins {inner} bytes into its member: no offset leads to it"))
    return piece


def _broken(stream: Stream) -> Piece:
    """Report what could not be unpacked."""
    broken = stream.pass_broken()
    piece = Piece(stream, None, broken.offset)
    piece.troubles.append(Trouble("broken", broken.reason))
    return piece


def _garbage(stream: Stream, offset: int) -> Piece:
    """Pass by what is no record, up to a member's beginning, the next record or the end."""
    piece = Piece(stream, None, offset)
    shown = stream.peek(60)
    piece.troubles.append(Trouble("no_record", f"not a record: {shown!r}"))
    is_first = True
    while window := stream.peek(_CHUNK):
        if not is_first and not stream.is_plain and stream.is_at_start():
            break
        hit = NEXT.search(window) or _NEXT_ARC.search(window)
        if hit:
            stream.discard(hit.start() + 1)
            break
        stream.take(max(1, len(window) - PATTERN_BYTES) if len(window) == _CHUNK else len(window))
        is_first = False
    return piece


def _warc_record(stream: Stream, offset: int, inner: int) -> Piece | None:
    """Read the header of a WARC record; None when it has no end within its bound."""
    size = PEEK
    while True:
        window = stream.peek(size)
        found = _HEAD_END.search(window)
        if found or len(window) < size or size >= limits.WARC_HEAD_BYTES_MAX:
            break
        size *= 4
    end = found.end() if found else len(window)
    if found is None and (len(window) >= limits.WARC_HEAD_BYTES_MAX or b"\n" not in window):
        return None
    piece = Piece(stream, warcformat.read_warc(window[:end]), offset, inner)
    assert piece.head is not None
    piece.raw_head = window[:end]
    stream.discard(end)
    if found is None:
        piece.troubles.append(Trouble("torn", "the file ends, or breaks off, inside the header"))
    elif piece.head.content_length is None:
        length = piece.head.get("content-length")
        piece.troubles.append(Trouble("content_length", f"no length of the block: {length[:40]!r}"))
    else:
        piece.expect(_true_length(stream, piece, piece.head.content_length))
    return piece


def _arc_record(stream: Stream, start: bytes, offset: int, inner: int) -> Piece | None:
    """Read the header line of an ARC record; None when it is none."""
    if b"\n" not in start:
        start = stream.peek(limits.WARC_HEAD_BYTES_MAX)
    read = warcformat.read_arc(start)
    if read is None:
        return None
    head, end = read
    piece = Piece(stream, head, offset, inner)
    piece.raw_head = start[:end]
    stream.discard(end)
    if head.content_length is not None:
        piece.expect(_true_length(stream, piece, head.content_length))
        return piece
    piece.troubles.append(Trouble("content_length", "no length of the block"))
    if head.type == "warcinfo":  # the block about the file ends with a blank line
        found = _HEAD_END.search(stream.peek(PEEK))
        piece.expect(found.start() + 1 if found else 0)
    return piece


def _true_length(stream: Stream, piece: Piece, claimed: int) -> int:
    """Give how long a block is: what its header claims, unless that leads into the middle of nowhere.

    Only where the file can be looked at there (plain). A packed record ends with its member at the latest.
    """
    if not stream.is_plain:
        return claimed
    begin = stream.place()
    end = begin + claimed
    if end <= stream.size and _is_boundary(os.pread(stream.descriptor, PEEK, end)):
        return claimed
    found = _next_record(stream, begin, min(end, stream.size))
    if found is None:
        return claimed  # torn at the end of the file, or followed by garbage
    length, text = found - begin, f"says {claimed}, but the next record begins after"
    piece.troubles.append(Trouble("content_length", f"{text} {length} bytes"))
    return length


def _is_boundary(window: bytes) -> bool:
    """Tell whether these bytes may follow a block."""
    rest = window.lstrip(NEWLINES)
    return not rest or warcformat.is_warc(rest) or warcformat.read_arc(rest) is not None


def _next_record(stream: Stream, begin: int, end: int) -> int | None:
    """Find the first record that begins between two places of a plain file; gives where the block before it ends."""
    at = begin
    while at < end:
        window = os.pread(stream.descriptor, min(_CHUNK, end - at), at)
        hit = NEXT.search(window)
        if hit:
            tail = os.pread(stream.descriptor, min(4, at + hit.end() - begin), max(begin, at + hit.start() - 3))
            before = tail[: at + hit.start() + 1 - max(begin, at + hit.start() - 3)]
            return at + hit.start() + 1 - (len(before) - len(before.rstrip(NEWLINES)))
        if len(window) <= PATTERN_BYTES:
            return None
        at += len(window) - PATTERN_BYTES
    return None
