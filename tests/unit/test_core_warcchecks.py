"""What a record says of itself is compared with what it is."""

from __future__ import annotations

import base64
import hashlib

import pytest

from crawltool.core import warcchecks
from crawltool.core.chunked import Dechunker, dechunk
from crawltool.core.warcchecks import BlockCheck
from crawltool.core.warcformat import RecordHead, arc_date, read_arc, read_warc

GOOD = {
    "WARC-Type": "response",
    "WARC-Record-ID": "<urn:uuid:1>",
    "WARC-Date": "2026-12-01T00:00:00Z",
    "WARC-Target-URI": "http://h.test/",
    "Content-Type": "application/http;msgtype=response",
    "Content-Length": "5",
}
BODY = b"hello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n"


def head(**changes: str | None) -> RecordHead:
    fields = GOOD | {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return read_warc("\r\n".join(["WARC/1.1", *lines, "", ""]).encode())


def of_header(**changes: str | None) -> set[str]:
    return {problem.code for problem in warcchecks.of_header(head(**changes))}


def of_block(block: bytes, piece: int = 7, **changes: str | None) -> set[str]:
    check = BlockCheck(head(**changes))
    for at in range(0, len(block), piece):
        check.feed(block[at : at + piece])
    return {problem.code for problem in check.problems()}


def sha1(data: bytes, form: str = "base32") -> str:
    raw = hashlib.sha1(data).digest()
    return "sha1:" + (raw.hex() if form == "hex" else base64.b32encode(raw).decode())


def test_a_good_header_has_no_problem() -> None:
    assert of_header() == set()
    assert of_header(WARC_Concurrent_To="<urn:uuid:2>", WARC_Truncated="length") == set()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"WARC_Record_ID": None}, "field"),
        ({"WARC_Date": None}, "field"),
        ({"WARC_Date": "yesterday"}, "field"),
        ({"WARC_Type": None}, "field"),
        ({"WARC_Target_URI": None}, "field"),
        ({"warc_date": "2026"}, "field"),  # a second one, in other letters
        ({"WARC_Truncated": "tired"}, "truncated"),
        ({"WARC_Type": "revisit"}, "field"),
        ({"WARC_Type": "revisit", "WARC_Profile": "x"}, "revisit_fields"),
    ],
)
def test_what_a_header_lacks_is_told(changes: dict[str, str | None], code: str) -> None:
    assert code in of_header(**changes)


@pytest.mark.parametrize("date", ["2014", "2014-01", "2014-02-10T00:00:01.000000002Z", "2014-02-10T00:00Z"])
def test_dates_of_every_precision_are_dates(date: str) -> None:
    assert of_header(WARC_Date=date) == set()


def test_headers_are_read_however_they_are_written() -> None:
    read = read_warc(
        b"warc/1.0\nwarc-type:RESPONSE\nWARC-Target-URI: <http://h.test/\xc3\xbc>\nX: a\n b\nno name\nContent-Length: 12 \n\n"
    )
    assert (read.version, read.type, read.url, read.get("x"), read.content_length) == (
        "WARC/1.0", "response", "http://h.test/ü", "a b", 12,
    )  # fmt: skip
    assert len(read.odd) == 2
    assert read_warc(b"WARC/1.1\r\nX: \xfc\r\nContent-Length: -1").fields[0] == ("X", "ü")
    assert read_warc(b"WARC/1.1\r\nContent-Length: -1").content_length is None
    assert read_warc(b"WARC/9.9\r\nA: b\r\n\r\n").odd


def test_arc_lines_are_read_and_others_are_not() -> None:
    found = read_arc(b"http://h.test/a b 1.2.3.4 20140102030405 text/html; x=y 17\nrest")
    assert found is not None
    read, end = found
    assert (read.url, read.content_length, read.get("warc-date"), end) == ("http://h.test/a b", 17, "2014-01-02T03:04:05Z", 59)
    assert read_arc(b"hello world this is text\n") is None and read_arc(b"http://h.test/ no end") is None
    assert arc_date("x") == "" and arc_date("201401020304") == "2014-01-02T03:04:00Z"


@pytest.mark.parametrize("form", ["base32", "hex"])
def test_digests_hold_in_either_form(form: str) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\n" + BODY
    claims = {"WARC_Block_Digest": sha1(block, form), "WARC_Payload_Digest": sha1(BODY, form)}
    assert of_block(block, **claims) == set()
    assert of_block(block + b"!", **claims) == {"block_digest", "payload_digest"}


def test_the_payload_is_the_entity_body_and_framing_is_noted() -> None:
    assert of_block(CHUNKED, WARC_Payload_Digest=sha1(BODY)) == set()
    framed = CHUNKED.partition(b"\r\n\r\n")[2]
    assert of_block(CHUNKED, WARC_Payload_Digest=sha1(framed)) == {"framing"}
    assert of_block(CHUNKED, WARC_Payload_Digest=sha1(b"other")) == {"payload_digest"}


def test_what_cannot_be_checked_is_noted_not_condemned() -> None:
    assert of_block(b"HTTP/1.1 200 OK\r\n\r\n", WARC_Payload_Digest="crc32:12345678") == {"digest_form"}
    assert of_block(b"HTTP/1.1 304 Not Modified\r\n\r\n", WARC_Type="revisit", WARC_Payload_Digest=sha1(b"elsewhere")) == set()
    assert of_block(b"no header at all", WARC_Payload_Digest=sha1(b"no header at all")) == {"http"}
    resource = {"WARC_Type": "resource", "Content_Type": "text/plain"}
    assert of_block(BODY, **resource, WARC_Payload_Digest=sha1(BODY), WARC_Block_Digest=sha1(BODY)) == set()


def test_a_short_body_is_noted_unless_it_says_so() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"
    assert of_block(block) == {"short_body"}
    assert of_block(block, WARC_Truncated="disconnect") == set()


def test_algorithms_have_several_names() -> None:
    assert warcchecks.same_digest("sha-256:ab", "sha256:ab") and not warcchecks.same_digest("sha1:ab", "sha256:ab")


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_chunks_are_joined_however_they_come(piece: int) -> None:
    framed = CHUNKED.partition(b"\r\n\r\n")[2]
    machine = Dechunker()
    assert b"".join(machine.feed(framed[at : at + piece]) for at in range(0, len(framed), piece)) == BODY
    assert machine.is_done and not machine.is_broken


@pytest.mark.parametrize("body", [b"<!doctype html>\r\n<p>", b"zz\r\n", b"\r\n", b"5" * 5000, b"3\r\nabcX\r\n", b"-1\r\n"])
def test_what_is_not_chunked_is_broken(body: bytes) -> None:
    machine = Dechunker()
    machine.feed(body)
    assert machine.is_broken


def test_a_body_that_is_not_chunked_is_left_to_the_caller() -> None:
    assert dechunk(b"<html>") is None and dechunk(b"3\r\nabc") == b"abc" and dechunk(b"0\r\n\r\n") == b""
