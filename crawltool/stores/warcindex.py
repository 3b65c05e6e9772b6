"""Which lines does the index of these archives have?

Reads files from end to end (stores/warcwalk) and gives the CDXJ line (core/cdxj) of every record that can be read by offset,
sorted on disk by bytes, each once. A record without payload digest gets the SHA-1 of its payload as it is stored, as
cdxj-indexer does. Called by cli/warcindex.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crawltool import limits
from crawltool.core import cdxj, warcrecords
from crawltool.core.warcformat import RecordHead
from crawltool.stores import warcread
from crawltool.stores.sorting import Sorter
from crawltool.stores.warcwalk import Piece, walk

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_HTTP = frozenset({"response", "revisit"})


@dataclass
class Indexer:
    """lines() of files; then the counts tell how many, and what has no line although it is a capture."""

    lines_written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # records by file that no offset leads to, or that are torn

    def lines(self, files: Sequence[Path]) -> Iterator[bytes]:
        """Give the lines of all files, sorted. Raises OSError, DiskTrouble."""
        with Sorter() as sorter:
            for path in files:
                for line in self._of_file(path):
                    sorter.add(line)
            for line in _once(sorter.lines()):
                self.lines_written += 1
                yield line

    def _of_file(self, path: Path) -> Iterator[bytes]:
        name = path.name.removesuffix(warcread.OPEN)
        for piece in walk(path):
            head = piece.head
            if head is None or not cdxj.is_indexed(head.type, head.get("content-type")):
                continue
            facts = _facts(piece, head)
            if piece.is_whole and not piece.inner and piece.length and head.url:
                yield _line(piece, head, facts, name)
            else:
                self.left_out[str(path)] += 1


def _facts(piece: Piece, head: RecordHead) -> tuple[int | None, str | None, str]:
    """Give status, content type and digest, reading as much of the block as they need, and close the record."""
    digest = head.get("warc-payload-digest")
    is_answer = head.type in _HTTP
    is_http = is_answer and head.url.lower().startswith(("http:", "https:"))  # others, as of DNS, have no HTTP header
    hashed = hashlib.sha1(usedforsecurity=False)
    start = b"" if is_http else None  # of the block, until the HTTP header is whole
    status, content_type = None, None if is_answer else head.get("content-type")
    for data in piece.chunks():
        if start is not None:
            start += data
            found = _BLANK_LINE.search(start)
            if found is None and len(start) < limits.HEADER_BYTES_MAX:
                continue
            end = found.end() if found else 0
            status, content_type = cdxj.http_facts(start[:end])
            data, start = start[end:], None
        if digest:
            break
        hashed.update(data)
    piece.close()
    if start:
        status, content_type = cdxj.http_facts(start)
    elif start is not None:
        content_type = None
    if not digest and head.type != "revisit":  # whose payload is elsewhere
        digest = warcrecords.digest(hashed.digest())
    return status, content_type, digest


def _line(piece: Piece, head: RecordHead, facts: tuple[int | None, str | None, str], name: str) -> bytes:
    status, content_type, digest = facts
    return cdxj.line(
        url=head.url,
        date=head.get("warc-date"),
        record_type=head.type,
        content_type=content_type,
        status=status,
        digest=digest,
        # Of a plain record without the line ends behind it, as others count.
        length=len(piece.raw_head) + piece.block_bytes if piece.is_plain else piece.length,
        offset=piece.offset,
        file=name,
    )


def _once(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out a line that is like the one before."""
    before = b""
    for line in lines:
        if line != before:
            yield line
        before = line
