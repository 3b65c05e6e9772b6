"""Is what a record says of itself true?

Each check is a word of CODES: how grave it is, and what it means. Judged are the fields of the header against ISO 28500, and
the two digests against the bytes, which come piece by piece. Writers of the past hashed chunk framing into payload digests
(section 6.3.2 says the entity body): such a digest is right about its bytes, and noted. Called by stores/warcverify.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from crawltool import limits
from crawltool.core.chunked import Dechunker
from crawltool.core.warcformat import ARC, MANDATORY, REPEATABLE, TYPES, RecordHead
from crawltool.core.warcrecords import TRUNCATED_REASONS

Severity = Literal["damage", "wrong", "note"]
CODES: dict[str, tuple[Severity, str]] = {
    "broken": ("damage", "bytes that cannot be unpacked"),
    "torn": ("damage", "the file or the record's member ends before the record does"),
    "no_record": ("damage", "bytes that are no record"),
    "content_length": ("damage", "Content-Length is missing, or leads into the middle of nowhere"),
    "shared_member": ("wrong", "several records in one gzip member or zstd frame: they are read, but no offset leads to them"),
    "separator": ("wrong", "a record does not end with two line ends"),
    "last_separator": ("note", "the last record of a file, or of its member, does not"),
    "header": ("wrong", "a header that is not as the standard writes it"),
    "field": ("wrong", "a mandatory field is missing, repeated or has no usable value"),
    "block_digest": ("wrong", "WARC-Block-Digest is not that of the block"),
    "payload_digest": ("wrong", "WARC-Payload-Digest is not that of the payload"),
    "truncated": ("wrong", "WARC-Truncated has no known reason"),
    "record_id": ("wrong", "two records have the same WARC-Record-ID"),
    "revisit_digest": ("wrong", "a revisit and the record it refers to have different payload digests"),
    "revisit_fields": ("note", "a revisit that does not say which URL and date it refers to, or by which profile"),
    "revisit_target": ("note", "the record that a revisit refers to is not in these files"),
    "digest_form": ("note", "a digest whose algorithm is not known: not checked"),
    "framing": ("note", "the payload digest is taken over the chunk framing, not over the entity body"),
    "short_body": ("note", "the HTTP body is shorter than its Content-Length, and the record is not marked as truncated"),
    "http": ("note", "the block is said to be HTTP and is not"),
}
_DATE = re.compile(r"\d{4}(-\d\d(-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z)?)?")
_DIGEST = re.compile(r"([A-Za-z0-9-]{2,20}):([A-Za-z0-9+/=_-]{8,160})")
_ALGORITHMS = {"sha1": "sha1", "sha-1": "sha1", "sha256": "sha256", "sha-256": "sha256", "sha512": "sha512", "sha-512": "sha512"}
_ALGORITHMS |= {"md5": "md5", "sha384": "sha384"}
_BLANK_LINE = re.compile(rb"\r{0,2}\n\r{0,2}\n")
_FIELD = re.compile(rb"^(transfer-encoding|content-length)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_HTTP_TYPES = frozenset({"response", "request", "revisit"})


class Problem(NamedTuple):
    """One word of CODES and what is so."""

    code: str
    text: str

    @property
    def severity(self) -> Severity:
        """Tell how grave it is."""
        return CODES[self.code][0]


def of_header(head: RecordHead) -> Iterator[Problem]:
    """Judge the fields of a WARC record. ARC has none that could be judged."""
    if head.version == ARC:
        return
    for text in head.odd:
        yield Problem("header", text)
    names = [name.lower() for name, _ in head.fields]
    for name in MANDATORY:
        if not head.get(name) and name != "content-length":
            yield Problem("field", f"no {name}")
    for name in sorted({name for name in names if names.count(name) > 1}):
        if (name.startswith("warc-") or name in ("content-length", "content-type")) and name not in REPEATABLE:
            yield Problem("field", f"{name} stands {names.count(name)} times")
    date = head.get("warc-date")
    if date and not _DATE.fullmatch(date.upper()):
        yield Problem("field", f"warc-date {date[:40]!r} is no UTC date")
    reason = head.get("warc-truncated")
    if reason and reason.lower() not in TRUNCATED_REASONS:
        yield Problem("truncated", f"{reason[:40]!r} is none of {' '.join(TRUNCATED_REASONS)}")
    if head.type in TYPES - {"warcinfo"} and not head.url and head.type != "metadata":
        yield Problem("field", "no warc-target-uri")
    if head.type == "revisit":
        yield from _of_revisit(head)


def _of_revisit(head: RecordHead) -> Iterator[Problem]:
    if not head.get("warc-profile"):
        yield Problem("field", "a revisit without warc-profile")
    missing = [name for name in ("warc-refers-to-target-uri", "warc-refers-to-date") if not head.get(name)]
    if missing:
        yield Problem("revisit_fields", f"no {' and no '.join(missing)}: replay finds the original only by these")


class BlockCheck:
    """Takes a record's block piece by piece, then judges the digests and the length of the HTTP body."""

    def __init__(self, head: RecordHead) -> None:
        self._head = head
        self._is_http = (head.is_http or head.type in _HTTP_TYPES) and head.version != ARC
        self._block = _Claim(head.get("warc-block-digest"))
        # A revisit's is of another body, that of a segment of the whole one.
        is_elsewhere = head.type == "revisit" or head.get("warc-segment-number")
        claimed = "" if is_elsewhere else head.get("warc-payload-digest")
        self._payload, self._framed = _Claim(claimed), _Claim(claimed)
        self._http_head: bytes | None = None if self._is_http else b""
        self._held = b""
        self._dechunker: Dechunker | None = None
        self._block_bytes = self._body_bytes = 0
        self._announced: int | None = None

    def feed(self, data: bytes) -> None:
        """Take the next piece of the block."""
        self._block.feed(data)
        self._block_bytes += len(data)
        if self._http_head is None:
            self._held += data
            found = _BLANK_LINE.search(self._held)
            if found is None and len(self._held) <= limits.HEADER_BYTES_MAX:
                return
            end = found.end() if found else 0
            self._begin_body(self._held[:end])
            data, self._held = self._held[end:], b""
        self._body_bytes += len(data)
        self._framed.feed(data)
        self._payload.feed(self._dechunker.feed(data) if self._dechunker else data)

    def _begin_body(self, http_head: bytes) -> None:
        self._http_head = http_head
        fields: dict[bytes, bytes] = {name.lower(): value for name, value in _FIELD.findall(http_head)}
        if b"chunked" in fields.get(b"transfer-encoding", b"").lower():
            self._dechunker = Dechunker()
        length = fields.get(b"content-length", b"").strip()
        if length.isdigit() and len(length) < 19 and b"transfer-encoding" not in fields:
            self._announced = int(length)

    def problems(self) -> Iterator[Problem]:
        """Judge, when all of the block has been fed."""
        if self._http_head is None:  # no blank line: all of it is header, or none of it
            is_http = self._held.startswith((b"HTTP/", b"GET ", b"POST ", b"HEAD "))
            self._begin_body(self._held)
            if not is_http:
                self._framed.feed(self._held)
                self._payload.feed(self._held)
        is_answer = self._is_http and self._head.type in ("response", "revisit") and self._block_bytes
        if is_answer and not (self._http_head or b"").startswith(b"HTTP/"):
            yield Problem("http", "no HTTP header in the block")
        if not self._block.holds:
            yield Problem("block_digest", self._block.contradiction())
        for claim in (self._block, self._payload):
            if claim.is_unknown:
                yield Problem("digest_form", f"{claim.text[:60]!r} is not checked")
        yield from self._of_payload()

    def _of_payload(self) -> Iterator[Problem]:
        head = self._head
        if not self._payload.holds:
            if self._dechunker and self._framed.holds:
                yield Problem("framing", "the payload digest includes the chunk framing")
            else:
                yield Problem("payload_digest", self._payload.contradiction())
        is_short = self._announced is not None and self._body_bytes < self._announced
        status = (self._http_head or b"").split(None, 2)[1:2]
        if is_short and head.type == "response" and not head.get("warc-truncated") and status not in ([b"304"], [b"204"]):
            yield Problem("short_body", f"{self._body_bytes} of {self._announced} bytes")


def same_digest(one: str, other: str) -> bool:
    """Compare two digest fields; some writers say sha-256 for sha256."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    name, _, value = text.partition(":")
    return f"{_ALGORITHMS.get(name.lower(), name)}:{value.rstrip('=')}"


class _Claim:
    """One digest field and the hash that proves or disproves it."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = _DIGEST.fullmatch(text)
        name = _ALGORITHMS.get(found[1].lower()) if found else None
        self.is_unknown = bool(text) and name is None
        self._value = found[2] if found else ""
        self._hash = hashlib.new(name, usedforsecurity=False) if name else None

    def feed(self, data: bytes) -> None:
        if self._hash is not None:
            self._hash.update(data)

    @property
    def holds(self) -> bool:
        """Tell whether nothing contradicts the claim."""
        return self._hash is None or _raw(self._value, self._hash.digest_size) == self._hash.digest()

    def contradiction(self) -> str:
        assert self._hash is not None
        raw = self._hash.digest()
        is_hex = len(self._value) == 2 * len(raw)
        true = raw.hex() if is_hex else base64.b32encode(raw).decode().rstrip("=")
        return f"says {self.text}, the bytes give {true}"


def _raw(value: str, size: int) -> bytes | None:
    """Read a digest in hexadecimal, Base32 or Base64."""
    try:
        if len(value) == 2 * size:
            return bytes.fromhex(value)
        text = value.rstrip("=")
        if len(text) == (size * 8 + 4) // 5:
            return base64.b32decode(text.upper() + "=" * (-len(text) % 8))
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if "-" in text or "_" in text else None)
    except (ValueError, binascii.Error):
        return None
