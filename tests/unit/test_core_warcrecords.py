"""The bytes of WARC records, built from facts."""

from __future__ import annotations

import base64
import hashlib
import os

import pytest

from crawltool.core import warcrecords
from crawltool.core.warcrecords import Facts, Original

ID = "urn:uuid:00000000-0000-4000-8000-00000000000%d"
FACTS = Facts("http://h.test/p", "2026-11-30T12:00:00Z", "192.0.2.7", ID % 0)
ORIGINAL = Original("http://h.test/o", "2026-10-01T08:00:00Z", ID % 9)
HEAD = b"HTTP/1.1 200 OK\r\nServer: x\r\n%s\r\n\r\n"


def test_a_digest_is_base32_without_padding_and_reads_back() -> None:
    for _ in range(200):
        raw = os.urandom(20)
        text = warcrecords.digest(raw)
        assert text == "sha1:" + base64.b32encode(raw).decode()
        assert warcrecords.raw_digest(text) == raw


@pytest.mark.parametrize("text", [None, "", "sha1:", "sha1:" + "!" * 32, "sha1:" + "a" * 32, "sha256:" + "A" * 32, "md5:00"])
def test_what_is_no_sha1_digest_reads_as_none(text: str | None) -> None:
    assert warcrecords.raw_digest(text) is None


def test_a_date_has_whole_seconds_in_utc() -> None:
    assert warcrecords.date_of(1_700_000_000.999) == "2023-11-14T22:13:20Z"


def test_the_payload_digest_knows_nothing_of_the_header() -> None:
    body = b"hello"
    block, payload = warcrecords.hashes(b"HEAD\r\n\r\n", [b"he", b"", b"llo"])
    assert payload == hashlib.sha1(body).digest()
    assert block == hashlib.sha1(b"HEAD\r\n\r\n" + body).digest()
    assert warcrecords.digest(payload) == "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"  # cases.md WAR-01


@pytest.mark.parametrize(
    ("fields", "status", "size", "truncated", "stored"),
    [
        (b"Content-Length: 5", 200, 5, False, b"Content-Length: 5"),
        (b"Content-Type: text/html", 200, 5, False, b"Content-Type: text/html"),
        (b"Transfer-Encoding: chunked", 200, 5, False, b"X-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5"),
        (b"transfer-encoding :  chunked", 200, 0, False, b"X-Crawler-transfer-encoding : chunked\r\nContent-Length: 0"),
        (b"Content-Length: 9", 200, 5, False, b"X-Crawler-Content-Length: 9\r\nContent-Length: 5"),
        (b"Content-Length: 9", 200, 5, True, b"Content-Length: 9"),
        (b"Content-Length: 1234", 204, 0, False, b"X-Crawler-Content-Length: 1234\r\nContent-Length: 0"),
        (b"Content-Length: 1234", 304, 0, False, b"Content-Length: 1234"),
        (b"Content-Length: 5\r\nContent-Length: 5", 200, 5, False, b"Content-Length: 5\r\nContent-Length: 5"),
        (b"Content-Length: junk", 200, 5, False, b"X-Crawler-Content-Length: junk\r\nContent-Length: 5"),
        (
            b"Content-Length: 7\r\nTransfer-Encoding: chunked",
            200,
            7,
            True,
            b"X-Crawler-Content-Length: 7\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 7",
        ),
        (b"X-Content-Length: 9", 200, 5, False, b"X-Content-Length: 9"),
        (b"Content-Encoding: gzip", 200, 5, False, b"Content-Encoding: gzip"),
    ],
)
def test_headers_that_contradict_the_stored_body_are_masked(
    fields: bytes, status: int, size: int, truncated: bool, stored: bytes
) -> None:
    assert warcrecords.http_head(HEAD % fields, status, size, truncated) == HEAD % stored


@pytest.mark.parametrize("end", [b"", b"\r\n", b"\r\n\r\n", b"\n\n", b"\r\n\r\n\r\n"])
def test_one_blank_line_stands_between_header_and_body(end: bytes) -> None:
    assert warcrecords.http_head(b"HTTP/1.1 200 OK\r\nA: b" + end, 200, 0, False) == b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"


def test_a_target_uri_fills_one_line_and_has_no_brackets() -> None:
    assert warcrecords.target_uri("http://h/a?b='|") == "http://h/a?b='|"
    assert warcrecords.target_uri("<http://h/a b\r\nX: y>") == "%3Chttp://h/a%20b%0D%0AX:%20y%3E"


def test_a_warcinfo_value_cannot_begin_a_header_line() -> None:
    record = warcrecords.warcinfo(ID % 1, "2026-11-30T12:00:00Z", "n.warc.gz", {"operator": "me\r\nx: y", "robots": ""})
    head, block = record.split(b"\r\n\r\n", 1)
    assert b"WARC-IP-Address" not in head and b"WARC-Filename: n.warc.gz" in head
    assert b"operator: me x: y\r\n" in block and b"robots" not in block
    assert b"format: WARC File Format 1.1\r\n" in block


def test_an_identical_payload_revisit_names_all_of_its_original() -> None:
    raw = hashlib.sha1(b"hello").digest()
    record = warcrecords.revisit_identical(FACTS, ID % 2, ORIGINAL, raw, HEAD % b"A: b").decode()
    for line in (
        "WARC-Type: revisit",
        f"WARC-Profile: {warcrecords.IDENTICAL_PAYLOAD}",
        f"WARC-Refers-To: <{ORIGINAL.record_id}>",
        "WARC-Refers-To-Target-URI: http://h.test/o",
        "WARC-Refers-To-Date: 2026-10-01T08:00:00Z",
        "WARC-Payload-Digest: sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N",
        "WARC-Truncated: length",
        "Content-Type: application/http;msgtype=response",
        f"Content-Length: {len(HEAD % b'A: b')}",
    ):
        assert f"{line}\r\n" in record
    assert record.endswith("A: b\r\n\r\n\r\n\r\n")


@pytest.mark.parametrize("payload", [None, "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", "nonsense\r\nX: y"])
def test_a_not_modified_revisit_never_has_the_digest_of_an_empty_body(payload: str | None) -> None:
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    record = warcrecords.revisit_not_modified(FACTS, ID % 2, ORIGINAL, payload, head).decode()
    assert f"WARC-Profile: {warcrecords.NOT_MODIFIED}\r\n" in record
    assert "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" not in record and "X: y" not in record
    assert ("WARC-Payload-Digest" in record) == (payload is not None and payload.startswith("sha1:"))


def test_an_original_without_a_usable_id_is_named_by_url_and_date() -> None:
    record = warcrecords.revisit_not_modified(FACTS, ID % 2, Original("http://h/", "2026-10-01T08:00:00Z", "evil>"), None, b"H")
    assert b"WARC-Refers-To:" not in record and b"WARC-Refers-To-Date: 2026-10-01T08:00:00Z\r\n" in record


def test_a_request_is_tied_to_its_answer() -> None:
    record = warcrecords.request(FACTS, ID % 3, ID % 4, b"GET /p HTTP/1.1\r\n\r\n").decode()
    assert f"WARC-Concurrent-To: <{ID % 4}>\r\n" in record and f"WARC-Warcinfo-ID: <{ID % 0}>\r\n" in record
    assert "WARC-IP-Address: 192.0.2.7\r\n" in record


def test_a_response_without_payload_has_no_payload_digest() -> None:
    block = hashlib.sha1(b"x").digest()
    assert b"WARC-Payload-Digest" not in warcrecords.response(FACTS, ID % 5, 1, block, None, None)
    assert b"WARC-Truncated: time\r\n" in warcrecords.response(FACTS, ID % 5, 1, block, block, "time")
    with pytest.raises(AssertionError):
        warcrecords.response(FACTS, ID % 5, 1, block, block, "lenght")
