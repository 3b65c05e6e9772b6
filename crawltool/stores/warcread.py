"""What does the archive hold, by locator or from the first byte to the last?

Reads back what stores/warc writes, one gzip member (or zstd frame) per record, and what others wrote. read() is the fast
path of parse, dedup and `warc cat`: one pread, one inflate, descriptors kept. records() walks a file of ours, also one that
is being written, and reports damage as data instead of ending. Everything is bounded: a record is unpacked up to a limit
and flagged beyond it.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isal import igzip_lib

from crawltool import limits
from crawltool.core import lz4
from crawltool.core.warcparts import StoredRecord, parse_record
from crawltool.records import Locator
from crawltool.stores import packings, unpacking
from crawltool.stores.warcwalk import walk

__all__ = ["Found", "Locator", "StoredRecord", "Unreadable", "parse_record", "read", "read_member", "records", "unpacked"]

_InflateError: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # the stub calls the class an instance
OPEN = ".open"  # suffix of a file that is being written
_CHUNK = 64 * limits.KIB
_MAGIC = b"\x1f\x8b\x08"


class Unreadable(ValueError):
    """A record that a locator names cannot be read; the message says why. Data for parse, never the end of a stage."""


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of a file: a record, or bytes that are none and the reason."""

    offset: int
    length: int
    record: StoredRecord | None
    damage: str | None = None


def read(directory: Path | str, locator: Locator, limit: int = limits.WARC_RECORD_BYTES_MAX) -> StoredRecord:
    """Read the record a locator names, its first `limit` unpacked bytes. Raises Unreadable."""
    data = read_member(directory, locator)
    if data.startswith(packings.GZIP_MAGIC):
        record = _first_bytes(data, locator, limit)
    else:
        record = b"".join(_bounded(_other(directory, locator, data), limit))
    try:
        return parse_record(record)
    except ValueError as error:
        raise Unreadable(f"{locator.file}:{locator.offset}: {error}") from None


def _first_bytes(member: bytes, locator: Locator, limit: int) -> bytes:
    """Unpack a gzip member in one step. Raises Unreadable."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    try:
        record: bytes = inflater.decompress(member, limit)
    except _InflateError as error:
        raise Unreadable(f"{locator.file}:{locator.offset}: not a gzip member ({error})") from None
    if not inflater.eof and len(record) < limit:
        raise Unreadable(f"{locator.file}:{locator.offset}: the record is torn")
    return record


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
    data = read_member(directory, locator)
    if not data.startswith(packings.GZIP_MAGIC):
        yield from _other(directory, locator, data)
        return
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    while not inflater.eof:
        try:
            yield inflater.decompress(data, limits.MIB)
        except _InflateError as error:
            raise Unreadable(f"{locator.file}:{locator.offset}: not a gzip member ({error})") from None
        if not inflater.eof and inflater.needs_input:
            raise Unreadable(f"{locator.file}:{locator.offset}: the record is torn")
        data = b""


def _other(directory: Path | str, locator: Locator, data: bytes) -> Iterator[bytes]:
    """Give a record that is not gzip: zstd frames, with the dictionary of their file, or plain. Raises Unreadable."""
    if data.startswith(lz4.MAGIC):
        try:
            yield from unpacking.unlz4(data)
        except lz4.BadFrame as error:
            raise Unreadable(f"{locator.file}:{locator.offset}: {error}") from None
        return
    if not data.startswith(packings.ZSTD_MAGIC):
        if not packings.is_start(data):
            raise Unreadable(f"{locator.file}:{locator.offset}: no record is there")
        yield data
        return
    try:
        yield from unpacking.unzstd(data, _open_files.dictionary(str(directory), locator.file))
    except packings.ZstdError as error:
        raise Unreadable(f"{locator.file}:{locator.offset}: not zstd frames ({error})") from None


def _bounded(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Give the first `limit` bytes."""
    for piece in pieces:
        yield piece[:limit]
        limit -= len(piece)
        if limit <= 0:
            return


def records(path: Path | str, start: int = 0, limit: int = limits.WARC_RECORD_BYTES_MAX) -> Iterator[Found]:
    """Walk an archive from a record's first byte on; damaged stretches come as Found with `damage`.

    Whole records only: the torn tail of a file that is being written is damage of the moment. Raises OSError.
    """
    with Path(path).open("rb", buffering=0) as file:
        if packings.kind_of(file.fileno()) == "zstd":
            yield from _walked(path, start, limit)
            return
        offset = start
        while True:
            found = _member_at(file.fileno(), offset, limit)
            if found is None:
                return
            yield found
            offset += found.length


def _walked(path: Path | str, start: int, limit: int) -> Iterator[Found]:
    """Do the same where records are not gzip members. A torn record is part of the damage that tore it."""
    for piece in walk(path, start):
        block = b"".join(_bounded(piece.chunks(), limit))
        piece.close()
        if piece.head is not None and piece.is_whole and piece.length:
            yield Found(piece.offset, piece.length, parse_record(piece.raw_head + block))
        elif piece.length:
            yield Found(piece.offset, piece.length, None, "; ".join(text for _, text in piece.troubles))


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
        self._dictionaries: dict[tuple[str, str], unpacking.Dictionary | None] = {}

    @contextmanager
    def use(self, directory: str, name: str) -> Iterator[int]:
        """Give the descriptor of a WARC file. Raises Unreadable when it is nowhere."""
        key = (directory, name)
        descriptor = self._descriptors.get(key)
        if descriptor is None:
            descriptor = self._descriptors[key] = _open(directory, name)
            if len(self._descriptors) > limits.WARC_FILES_OPEN_MAX:
                old, number = self._descriptors.popitem(last=False)
                self._dictionaries.pop(old, None)
                os.close(number)
        else:
            self._descriptors.move_to_end(key)
        yield descriptor

    def dictionary(self, directory: str, name: str) -> unpacking.Dictionary | None:
        """Give the dictionary that a .warc.zst begins with."""
        key = (directory, name)
        with self.use(directory, name) as descriptor:
            if key not in self._dictionaries:
                self._dictionaries[key] = unpacking.zstd_dictionary(descriptor)
        return self._dictionaries[key]


def _open(directory: str, name: str) -> int:
    """Try NAME, NAME.open, NAME again: the writer may rename between two looks."""
    for candidate in (name, name + OPEN, name):
        try:
            return os.open(f"{directory}/{candidate}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            reason = error.strerror
    raise Unreadable(f"{directory}/{name}: {reason}")


_open_files = _OpenFiles()
