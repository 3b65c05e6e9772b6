"""What are the parts of one unpacked record: its headers, the HTTP message in it, the body?

Our own records are read on a fast path; those of others with the patience of core/warcformat, and out of their chunks.
Called by stores/warcread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from crawltool.core import warcformat
from crawltool.core.chunked import dechunk

_FOREIGN = re.compile(rb"(?<!\r)\n|\n[ \t]")  # line feeds alone, folded values
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


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
        """Give the WARC-Target-URI, without the angle brackets that some writers put around it."""
        url = self.headers.get("warc-target-uri", "")
        return url[1:-1] if url.startswith("<") and url.endswith(">") else url

    def http_header(self, name: str) -> str | None:
        """Give the first HTTP header of that name (lower case)."""
        return next((value for key, value in self.http_headers if key.lower() == name), None)


def parse_record(unpacked: bytes) -> StoredRecord:
    """Split one unpacked record (perhaps cut) into its parts. Raises ValueError."""
    end = unpacked.find(b"\r\n\r\n")
    if end < 0 or not unpacked.startswith(b"WARC/1.") or _FOREIGN.search(unpacked, 0, end):
        return _foreign(unpacked)
    lines = _text(unpacked[:end]).split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    try:
        length = int(headers.get("content-length", ""))
    except ValueError:
        raise ValueError("no Content-Length") from None
    return _record(headers, length, unpacked[end + 4 : end + 4 + length])


def _foreign(unpacked: bytes) -> StoredRecord:
    """Read a record that is not written as ours are: line feeds alone, or ARC. Raises ValueError."""
    arc = None if warcformat.is_warc(unpacked) else warcformat.read_arc(unpacked)
    if arc is None:
        found = _BLANK_LINE.search(unpacked)
        if found is None or not warcformat.is_warc(unpacked):
            raise ValueError("not a WARC record")
        arc = warcformat.read_warc(unpacked[: found.end()]), found.end()
    head, end = arc
    if head.content_length is None:
        raise ValueError("no Content-Length")
    headers = {name.lower(): value for name, value in head.fields}
    return _record(headers, head.content_length, unpacked[end : end + head.content_length])


def _record(headers: dict[str, str], length: int, block: bytes) -> StoredRecord:
    record = StoredRecord(headers, cut=len(block) < length)
    if headers.get("content-type", "").lower().startswith("application/http"):
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
    if len(words) > 1 and words[0][:5].upper() == "HTTP/" and words[1].isdecimal():
        record.http_status = int(words[1])
    for line in lines:
        if line[:1] in (" ", "\t"):  # obsolete folding, RFC 9112 section 5.2
            if record.http_headers:  # else it continues the status line: no field, as for libcurl
                name, value = record.http_headers[-1]
                record.http_headers[-1] = (name, f"{value} {line.strip()}")
        else:
            name, _, value = line.partition(":")
            record.http_headers.append((name.strip(), value.strip()))
    # Ours never have it; other writers keep the framing.
    if b"ransfer-" in record.http_head[:end] and "chunked" in (record.http_header("transfer-encoding") or "").lower():
        body = dechunk(record.body)
        record.body = record.body if body is None else body


def _text(head: bytes) -> str:
    """Read a header block: UTF-8 where it is that, else Latin-1, which takes every byte."""
    try:
        return head.decode()
    except UnicodeDecodeError:
        return head.decode("latin-1")
