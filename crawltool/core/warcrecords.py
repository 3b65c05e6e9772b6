"""Which bytes stand in an archive for a capture?

Builds WARC/1.1 records from facts: the header block of each record type, the digests over it, and the HTTP header as
it is stored. Follows ISO 28500:2017 (WARC 1.1). A body is stored with its content coding and without its transfer
coding, so every header that contradicts the stored body is masked: renamed to X-Crawler-..., never dropped. Record ids
and dates are arguments. Called by stores/warc.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
TRUNCATED_REASONS = ("length", "time", "disconnect", "unspecified")  # WARC 1.1 section 5.13
END = b"\r\n\r\n"  # after every block

# Ten bits at a time: base64.b32encode takes 5 µs, four of them in each capture.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TWO_LETTERS = [first + second for first in _LETTERS for second in _LETTERS]
# A line that begins with a blank is a field for some readers when it is the first (libcurl skips it there, and unfolds others).
_FRAMING = re.compile(rb"^([ \t]*)(transfer-encoding|content-length)([ \t]*:)[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_NOT_IN_URI = re.compile(r"[\x00-\x20<>\x7f]")
_NOT_IN_FIELD = re.compile(r"[\x00-\x1f\x7f]+")
_DIGEST = re.compile(r"[a-z0-9-]{2,20}:[A-Za-z0-9+/=_-]{16,140}")
_ID = re.compile(r"<?(urn:uuid:[0-9A-Fa-f-]{36})>?")


@dataclass(frozen=True, slots=True)
class Facts:
    """What all records of one capture share. `date` and ids are as date_of() and `urn:uuid:...` write them."""

    url: str
    date: str
    ip: str | None
    warcinfo_id: str


@dataclass(frozen=True, slots=True)
class Original:
    """The record that a revisit refers to; readers resolve it by URL and date, the id alone is not enough."""

    url: str
    date: str
    record_id: str | None


def date_of(epoch_s: float) -> str:
    """Write epoch seconds as WARC-Date: UTC, whole seconds (an index keeps no more)."""
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def digest(raw: bytes) -> str:
    """Write 20 bytes of SHA-1 as archives do: upper-case Base32, 32 characters without padding."""
    assert len(raw) == 20, len(raw)
    value = int.from_bytes(raw)
    return "sha1:" + "".join([_TWO_LETTERS[value >> shift & 1023] for shift in range(150, -1, -10)])


def raw_digest(text: str | None) -> bytes | None:
    """Read back what digest() wrote; None for anything else."""
    if not text or not text.startswith("sha1:") or len(text) != 37:
        return None
    try:
        return base64.b32decode(text[5:])
    except ValueError:
        return None


def hashes(http_head: bytes, body: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Give the SHA-1 of block and payload in one pass over the body.

    The block is what is stored, HTTP header included; the payload is the entity body without transfer coding and with
    content coding (WARC 1.1 section 6.3.2), so different chunking of one body gives one payload digest.
    """
    block, payload = hashlib.sha1(http_head, usedforsecurity=False), hashlib.sha1(usedforsecurity=False)
    for piece in body:
        block.update(piece)
        payload.update(piece)
    return block.digest(), payload.digest()


def http_head(received: bytes, status: int | None, body_bytes: int, truncated: bool) -> bytes:
    """Give the HTTP header block as it is stored in front of a body of body_bytes, with exactly one blank line.

    A Transfer-Encoding is masked, since the stored body has none, and so is a Content-Length that is not true; a true
    one is added then. Left alone: a 304, whose Content-Length speaks of another body, and the announced length of a
    truncated body, which tells how much is missing.
    """
    head = received.rstrip(b"\r\n") + END
    found: list[tuple[bytes, bytes, bytes, bytes]] = _FRAMING.findall(head)
    if not found or status == 304:
        return head
    coded = any(name.lower() == b"transfer-encoding" for _, name, _, _ in found)
    lengths = [value.strip() for _, name, _, value in found if name.lower() == b"content-length"]
    if not coded and (truncated or all(value == b"%d" % body_bytes for value in lengths)):
        return head
    return _FRAMING.sub(rb"\1X-Crawler-\2\3 \4", head)[:-2] + b"Content-Length: %d\r\n\r\n" % body_bytes


def warcinfo(record_id: str, date: str, filename: str, fields: Mapping[str, str]) -> bytes:
    """Give the whole first record of a file. Fields are the crawl's: software, operator, robots ..."""
    about = {"software": "crawltool", "format": "WARC File Format 1.1", "conformsTo": CONFORMS_TO, **fields}
    block = "".join(f"{name}: {_field(value)}\r\n" for name, value in about.items() if value).encode()
    head = (
        f"WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {date}\r\n"
        f"WARC-Filename: {filename}\r\nWARC-Block-Digest: {_digest_of(block)}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + END


def request(facts: Facts, record_id: str, response_id: str, sent: bytes) -> bytes:
    """Give the whole request record of what went over the wire, tied to the answer's record."""
    head = _opening("request", facts, record_id) + (
        f"WARC-Concurrent-To: <{response_id}>\r\nWARC-Block-Digest: {_digest_of(sent)}\r\n"
        f"Content-Type: application/http;msgtype=request\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent + END


def response(facts: Facts, record_id: str, block_bytes: int, block: bytes, payload: bytes | None, truncated: str | None) -> bytes:
    """Give the header of a response record; HTTP header, body and END follow it.

    block and payload are what hashes() gave; payload is None where the answer has none (304).
    """
    assert truncated is None or truncated in TRUNCATED_REASONS, truncated
    head = _opening("response", facts, record_id) + f"WARC-Block-Digest: {digest(block)}\r\n"
    if payload is not None:
        head += f"WARC-Payload-Digest: {digest(payload)}\r\n"
    if truncated:
        head += f"WARC-Truncated: {truncated}\r\n"
    return (head + _ANSWER + f"Content-Length: {block_bytes}\r\n\r\n").encode()


def revisit_identical(facts: Facts, record_id: str, original: Original, payload: bytes, stored_head: bytes) -> bytes:
    """Give the whole revisit record of a body that is already stored (section 6.7.2); the body is left out, and said so."""
    extra = f"WARC-Payload-Digest: {digest(payload)}\r\nWARC-Truncated: length\r\n"
    return _revisit(facts, record_id, IDENTICAL_PAYLOAD, original, extra, stored_head)


def revisit_not_modified(facts: Facts, record_id: str, original: Original, payload: str | None, stored_head: bytes) -> bytes:
    """Give the whole revisit record of a 304 (section 6.7.3).

    payload is the digest of the original's body where it is known, never that of the empty body of the 304 itself.
    """
    extra = f"WARC-Payload-Digest: {payload}\r\n" if payload and _DIGEST.fullmatch(payload) else ""
    return _revisit(facts, record_id, NOT_MODIFIED, original, extra, stored_head)


def _revisit(facts: Facts, record_id: str, profile: str, original: Original, extra: str, stored_head: bytes) -> bytes:
    """Join what both profiles have; all three Refers-To fields, because replay needs URL and date."""
    refers = f"WARC-Profile: {profile}\r\n"
    identity = _ID.fullmatch(original.record_id or "")
    if identity:
        refers += f"WARC-Refers-To: <{identity[1]}>\r\n"
    refers += f"WARC-Refers-To-Target-URI: {target_uri(original.url)}\r\nWARC-Refers-To-Date: {_field(original.date)}\r\n"
    head = _opening("revisit", facts, record_id) + refers + f"WARC-Block-Digest: {_digest_of(stored_head)}\r\n" + extra
    return (head + _ANSWER + f"Content-Length: {len(stored_head)}\r\n\r\n").encode() + stored_head + END


_ANSWER = "Content-Type: application/http;msgtype=response\r\n"


def _opening(kind: str, facts: Facts, record_id: str) -> str:
    """Write the fields that every record of a capture has."""
    address = f"WARC-IP-Address: {facts.ip}\r\n" if facts.ip else ""
    return (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {target_uri(facts.url)}\r\nWARC-Date: {facts.date}\r\n"
        f"WARC-Record-ID: <{record_id}>\r\nWARC-Warcinfo-ID: <{facts.warcinfo_id}>\r\n{address}"
    )


def target_uri(url: str) -> str:
    """Write a URL so that it fills one header line: no angle brackets around it, no blanks in it."""
    if not _NOT_IN_URI.search(url):
        return url
    return _NOT_IN_URI.sub(lambda found: f"%{ord(found[0]):02X}", url)


def _field(value: str) -> str:
    """Keep a value on its line: values are never folded."""
    return _NOT_IN_FIELD.sub(" ", value).strip()


def _digest_of(block: bytes) -> str:
    """Write the SHA-1 of a block that is at hand."""
    return digest(hashlib.sha1(block, usedforsecurity=False).digest())
