"""What does the archive hold, by locator or from the first byte to the last?

Reads back what stores/warc writes: one gzip member per record. read() is the fast path of parse, dedup and `warc cat`:
one pread, one inflate, descriptors kept. records() walks a file of ours, also one that is being written, and reports
damage as data instead of ending. Everything is bounded: a record is unpacked up to a limit and flagged beyond it.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from isal import igzip_lib

from crawltool import limits
from crawltool.records import Locator

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # the stub calls the class an instance
OPEN = ".open"  # suffix of a file that is being written
_CHUNK = 64 * limits.KIB
_MAGIC = b"\x1f\x8b\x08"
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


class Unreadable(ValueError):
    """A record that a locator names cannot be read; the message says why. Data for parse, never the end of a stage."""


@dataclass(slots=True)
class StoredRecord:
    """One record, unpacked. Names of `headers` are lower case; http_headers keeps names, order and repeats."""

    headers: dict[str, str]
    http_status: int | None = None
    http_headers: list[tuple[str, str]] = field(default_factory=list)
    http_head: bytes = b""
    body: bytes = b""  # entity body with content coding; the block for records that are not HTTP
    cut: bool = False  # the body goes on beyond the limit

    @property
    def type(self) -> str:
        """Give the WARC-Type."""
        return self.headers.get("warc-type", "")

    @property
    def url(self) -> str:
        """Give the WARC-Target-URI."""
        return self.headers.get("warc-target-uri", "")

    def http_header(self, name: str) -> str | None:
        """Give the first HTTP header of that name (lower case)."""
        return next((value for key, value in self.http_headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of a file: a record, or bytes that are none and the reason."""

    offset: int
    length: int
    record: StoredRecord | None
    damage: str | None = None


def read(directory: Path | str, locator: Locator, limit: int = limits.WARC_RECORD_BYTES_MAX) -> StoredRecord:
    """Read the record a locator names, its first `limit` unpacked bytes. Raises Unreadable."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    try:
        unpacked = inflater.decompress(read_member(directory, locator), limit)
    except _InflateError as error:
        raise Unreadable(f"{locator.file}:{locator.offset}: not a gzip member ({error})") from None
    if not inflater.eof and len(unpacked) < limit:
        raise Unreadable(f"{locator.file}:{locator.offset}: the record is torn")
    try:
        return parse_record(unpacked)
    except ValueError as error:
        raise Unreadable(f"{locator.file}:{locator.offset}: {error}") from None


def read_member(directory: Path | str, locator: Locator) -> bytes:
    """Give the stored bytes of one record, packed as they are. Raises Unreadable."""
    if not 0 < locator.length <= limits.WARC_RECORD_BYTES_MAX or locator.offset < 0 or "/" in locator.file:
        raise Unreadable(f"{locator.file}:{locator.offset}:{locator.length}: not a usable locator")
    with _open_files.use(str(directory), locator.file) as descriptor:
        data = os.pread(descriptor, locator.length, locator.offset)
    if len(data) < locator.length:
        raise Unreadable(f"{locator.file}:{locator.offset}: the file ends inside the record")
    return data


def unpacked(directory: Path | str, locator: Locator) -> Iterator[bytes]:
    """Give one whole record as it was before packing, piece by piece. Raises Unreadable."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    data = read_member(directory, locator)
    while not inflater.eof:
        try:
            yield inflater.decompress(data, limits.MIB)
        except _InflateError as error:
            raise Unreadable(f"{locator.file}:{locator.offset}: not a gzip member ({error})") from None
        if not inflater.eof and inflater.needs_input:
            raise Unreadable(f"{locator.file}:{locator.offset}: the record is torn")
        data = b""


def records(path: Path | str, start: int = 0, limit: int = limits.WARC_RECORD_BYTES_MAX) -> Iterator[Found]:
    """Walk a .warc.gz from a member's first byte on; damaged stretches come as Found with `damage`.

    Whole records only: the torn tail of a file that is being written is damage of the moment. Raises OSError.
    """
    with Path(path).open("rb", buffering=0) as file:
        offset = start
        while True:
            found = _member_at(file.fileno(), offset, limit)
            if found is None:
                return
            yield found
            offset += found.length


def parse_record(unpacked: bytes) -> StoredRecord:
    """Split one unpacked record (perhaps cut) into its parts. Raises ValueError."""
    end = unpacked.find(b"\r\n\r\n")
    if end < 0 or not unpacked.startswith(b"WARC/1."):
        raise ValueError("not a WARC record")
    lines = _text(unpacked[:end]).split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    try:
        length = int(headers.get("content-length", ""))
    except ValueError:
        raise ValueError("no Content-Length") from None
    block = unpacked[end + 4 : end + 4 + length]
    record = StoredRecord(headers, cut=len(block) < length)
    if headers.get("content-type", "").startswith("application/http"):
        _split_http(record, block)
    else:
        record.body = block
    return record


def _split_http(record: StoredRecord, block: bytes) -> None:
    """Fill in the HTTP side of a request, response or revisit."""
    blank = _BLANK_LINE.search(block)
    end, begin = blank.span() if blank else (len(block), len(block))
    record.http_head, record.body = block[:begin], block[begin:]
    first, *lines = _text(block[:end]).replace("\r\n", "\n").split("\n")
    words = first.split(None, 2)
    if len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdecimal():
        record.http_status = int(words[1])
    for line in lines:
        if line[:1] in (" ", "\t") and record.http_headers:  # obsolete folding, RFC 9112 section 5.2
            name, value = record.http_headers[-1]
            record.http_headers[-1] = (name, f"{value} {line.strip()}")
        else:
            name, _, value = line.partition(":")
            record.http_headers.append((name.strip(), value.strip()))


def _text(head: bytes) -> str:
    """Read a header block: UTF-8 where it is that, else Latin-1, which takes every byte."""
    try:
        return head.decode()
    except UnicodeDecodeError:
        return head.decode("latin-1")


def _member_at(descriptor: int, offset: int, limit: int) -> Found | None:
    """Read the record at an offset, or the damage up to the next member; None at the end of the file."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    unpacked, taken = bytearray(), 0
    while not inflater.eof:
        chunk = os.pread(descriptor, _CHUNK, offset + taken)
        if not chunk:
            return Found(offset, taken, None, "torn: the file ends inside a record") if taken else None
        taken += len(chunk)
        try:
            _inflate(inflater, chunk, unpacked, limit)
        except _InflateError as error:
            return _damaged(descriptor, offset, f"not a gzip member ({error})")
    taken -= len(inflater.unused_data)
    try:
        return Found(offset, taken, parse_record(bytes(unpacked)))
    except ValueError as error:
        return Found(offset, taken, None, str(error))


def _inflate(inflater: igzip_lib.IgzipDecompressor, chunk: bytes, into: bytearray, limit: int) -> None:
    """Unpack a chunk piece by piece and keep no more than limit bytes: a bomb costs time, not memory."""
    data = chunk
    while True:
        piece = inflater.decompress(data, limits.MIB)
        into += piece[: max(0, limit - len(into))]
        if inflater.eof or inflater.needs_input:
            return
        data = b""


def _damaged(descriptor: int, offset: int, reason: str) -> Found:
    """Find where the next member may begin, so that a reader can go on behind the damage."""
    position = offset + 1
    while chunk := os.pread(descriptor, _CHUNK, position):
        hit = chunk.find(_MAGIC)
        if hit >= 0:
            return Found(offset, position + hit - offset, None, reason)
        position += len(chunk) if len(chunk) < len(_MAGIC) else len(chunk) - len(_MAGIC) + 1
        if len(chunk) < _CHUNK:
            break
    return Found(offset, os.fstat(descriptor).st_size - offset, None, reason)


class _OpenFiles:
    """Descriptors of the files read last: a locator costs one pread. One thread at a time."""

    def __init__(self) -> None:
        self._descriptors: OrderedDict[tuple[str, str], int] = OrderedDict()

    @contextmanager
    def use(self, directory: str, name: str) -> Iterator[int]:
        """Give the descriptor of a WARC file. Raises Unreadable when it is nowhere."""
        key = (directory, name)
        descriptor = self._descriptors.get(key)
        if descriptor is None:
            descriptor = self._descriptors[key] = _open(directory, name)
            if len(self._descriptors) > limits.WARC_FILES_OPEN_MAX:
                os.close(self._descriptors.popitem(last=False)[1])
        else:
            self._descriptors.move_to_end(key)
        yield descriptor


def _open(directory: str, name: str) -> int:
    """Try NAME, NAME.open, NAME again: the writer may rename between two looks."""
    for candidate in (name, name + OPEN, name):
        try:
            return os.open(f"{directory}/{candidate}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            reason = error.strerror
    raise Unreadable(f"{directory}/{name}: {reason}")


_open_files = _OpenFiles()
