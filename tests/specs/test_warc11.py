"""WARC 1.1, sentence by sentence, judged by other people's readers (and cases.md WAR-01 ...)."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import zlib
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawltool.records import Prior
from crawltool.stores import warcread
from crawltool.stores.warc import Capture
from tests.archives import EMPTY_DIGEST, Archive, Pieces, assert_clean, capture, content, fast_content, files

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n%s\r\n"
HELLO_DIGEST = "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"


def written(directory: Path, *groups: list[Capture]) -> Path:
    """Store groups one after another and give the finished file."""
    archive = Archive(directory)
    for group in groups:
        archive.writer.store(group)
    archive.close()
    [path] = files(directory)
    assert_clean(path)
    return path


def records(path: Path) -> list[tuple[str, dict[str, str], bytes]]:
    """Read all records with warcio: type, WARC headers in lower case, block."""
    with path.open("rb") as stream:
        iterator = ArchiveIterator(stream, no_record_parse=True)
        return [
            (item.rec_type, {name.lower(): value for name, value in item.rec_headers.headers}, item.raw_stream.read())
            for item in iterator
        ]


@pytest.fixture
def varied(tmp_path: Path) -> Path:
    """An archive with everything we write in it."""
    prior = Prior(digest=HELLO_DIGEST, warc_id="urn:uuid:0", warc_date="2026-10-01T08:00:00Z", warc_url="http://h.test/p")
    packed = gzip.compress(b"<p>hello</p>" * 500, mtime=0)
    return written(
        tmp_path,
        [
            capture("http://h.test/robots.txt", b"User-agent: *\n", kind="robots"),
            capture("http://h.test/p", b"hello"),
            capture("http://h.test/chunked", b"hello", head=CHUNKED % b""),
            capture("http://h.test/gzip", packed, head=CHUNKED % b"Content-Encoding: gzip\r\n"),
            capture("http://h.test/gone", b"not here", status=404, head=b"HTTP/1.1 404 Not Found\r\n\r\n"),
            capture("http://h.test/empty", b""),
            capture(
                "http://h.test/cut", b"x" * 4000, truncated="length", head=b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"
            ),
            capture("http://h.test/moved", b"", status=301, head=b"HTTP/1.1 301 x\r\nLocation: /p\r\n\r\n"),
            capture("http://h.test/no", b"", status=204, head=b"HTTP/1.1 204 No Content\r\nContent-Length: 1234\r\n\r\n"),
            capture("http://h.test/latin", b"x1", head=b"HTTP/1.1 200 OK\r\nX-Name: \xfcber\r\n\r\n"),
            capture("http://h.test/lf", b"x2", head=b"HTTP/1.1 200 OK\nA: b\n\n"),
            capture("http://h.test/q'|?a=[1]", b"x3"),
            capture("http://[2001:db8::1]/v6", b"x4", ip="2001:db8::1"),
            capture("http://h.test/big", Pieces(b"0123456789" * 100_000)),
        ],
        [
            capture("http://h.test/p2", b"hello"),
            capture("http://h.test/p", b"", head=b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n', status=304, prior=prior),
        ],
    )


def test_the_file_is_gzip_that_gunzip_accepts(varied: Path) -> None:
    assert subprocess.run(["gzip", "-t", str(varied)], check=False).returncode == 0


def test_each_record_is_one_member_without_extra_fields(varied: Path) -> None:
    data = varied.read_bytes()
    for item in warcread.records(varied):
        member = data[item.offset : item.offset + item.length]
        assert member[:4] == b"\x1f\x8b\x08\x00", "no FEXTRA, no name, no comment"
        inflater = zlib.decompressobj(31)
        text = inflater.decompress(member)
        assert inflater.eof and not inflater.unused_data
        head, _, rest = text.partition(b"\r\n\r\n")
        length = int(re.search(rb"Content-Length: (\d+)", head)[1])  # type: ignore[index]
        assert rest[length:] == b"\r\n\r\n"


def test_the_first_record_is_warcinfo_and_all_others_name_it(varied: Path) -> None:
    (kind, info, block), *others = records(varied)
    assert kind == "warcinfo" and info["warc-filename"] == varied.name and "warc-ip-address" not in info
    assert info["content-type"] == "application/warc-fields" and b"format: WARC File Format 1.1\r\n" in block
    assert {headers["warc-warcinfo-id"] for _, headers, _ in others} == {info["warc-record-id"]}
    assert all("warc-filename" not in headers for _, headers, _ in others)


def test_ids_are_unique_and_dates_and_addresses_well_formed(varied: Path) -> None:
    everything = records(varied)
    ids = [headers["warc-record-id"] for _, headers, _ in everything]
    assert len(set(ids)) == len(ids)
    for _, headers, _ in everything:
        assert re.fullmatch(
            r"<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>", headers["warc-record-id"]
        )
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", headers["warc-date"])
        assert not re.search(r"[<>\s]", headers.get("warc-target-uri", ""))


def test_request_and_answer_of_a_capture_share_url_date_and_address(varied: Path) -> None:
    answers = {headers["warc-record-id"]: headers for kind, headers, _ in records(varied) if kind in ("response", "revisit")}
    requests = [headers for kind, headers, _ in records(varied) if kind == "request"]
    assert len(requests) == len(answers)
    for headers in requests:
        answer = answers[headers["warc-concurrent-to"]]
        for name in ("warc-target-uri", "warc-date", "warc-ip-address"):
            assert headers[name] == answer[name]
        assert headers["content-type"] == "application/http;msgtype=request"
        assert answer["content-type"] == "application/http;msgtype=response"


def test_war_01_different_chunking_gives_one_payload_digest(tmp_path: Path) -> None:
    path = written(tmp_path, [capture("http://h.test/p", b"hello", head=CHUNKED % b"")], [capture("http://h.test/p", b"hello")])
    answers = [(kind, headers["warc-payload-digest"]) for kind, headers, _ in records(path) if kind in ("response", "revisit")]
    assert answers == [("response", HELLO_DIGEST), ("revisit", HELLO_DIGEST)]


def test_war_02_stored_headers_fit_the_stored_body(varied: Path) -> None:
    html = b"<p>hello</p>" * 500
    assert content(varied, "http://h.test/gzip") == html
    assert gzip.decompress(fast_content(varied, "http://h.test/gzip")) == html
    assert content(varied, "http://h.test/cut") == b"x" * 4000
    blocks = {headers["warc-target-uri"]: block for kind, headers, block in records(varied) if kind == "response"}
    assert b"\r\nX-Crawler-Transfer-Encoding: chunked\r\n" in blocks["http://h.test/gzip"]
    assert b"\r\nX-Crawler-Content-Length: 1234\r\nContent-Length: 0\r\n\r\n" in blocks["http://h.test/no"]
    for url, block in blocks.items():
        head, _, body = block.partition(b"\r\n\r\n")
        assert not re.search(rb"(?im)^transfer-encoding:", head), url
        lengths = re.findall(rb"(?im)^content-length: *(\d+)", head)
        assert url.endswith("/cut") or all(int(length) == len(body) for length in lengths), url


def test_war_05_a_304_refers_to_the_copy_that_it_confirms(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    [first] = archive.writer.store([capture("http://h.test/p", b"hello", fetched_at=1_796_040_000)])
    prior = Prior(
        digest=first.digest, warc_id=first.record_id, warc_date="2026-11-30T12:00:00Z", warc_url="http://h.test/p", etag='"v1"'
    )
    head = b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
    later = {"fetched_at": 1_796_050_000.0, "prior": prior}
    archive.writer.store([capture("http://h.test/p", b"", head=head, status=304, **later)])  # type: ignore[arg-type]
    archive.writer.store([capture("http://h.test/p", b"hello", **later)])  # type: ignore[arg-type]
    archive.close()
    [path] = files(tmp_path)
    assert_clean(path)
    confirmed, same = [(headers, block) for kind, headers, block in records(path) if kind == "revisit"]
    assert confirmed[0]["warc-profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert same[0]["warc-profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert confirmed[1] == head
    for headers, _ in (confirmed, same):
        assert headers["warc-refers-to"] == f"<{first.record_id}>"
        assert headers["warc-refers-to-target-uri"] == "http://h.test/p"
        assert headers["warc-refers-to-date"] == "2026-11-30T12:00:00Z"
        assert headers["warc-payload-digest"] == HELLO_DIGEST
    assert EMPTY_DIGEST not in str(confirmed)


@pytest.mark.parametrize("truncated", [None, "length", "time", "disconnect", "unspecified"])
def test_war_07_a_cut_body_is_marked_and_never_referred_to(tmp_path: Path, truncated: str | None) -> None:
    path = written(
        tmp_path,
        [capture("http://h.test/a", b"x" * 4000, truncated=truncated)],
        [capture("http://h.test/b", b"x" * 4000)],
    )
    (_, first, _), (second_type, _, _) = [item for item in records(path) if item[0] in ("response", "revisit")]
    assert first.get("warc-truncated") == truncated
    assert second_type == ("revisit" if truncated is None else "response")


def test_a_revisit_keeps_header_only_and_says_that_its_body_is_left_out(varied: Path) -> None:
    blocks = [
        (headers, block) for kind, headers, block in records(varied) if kind == "revisit" and "p2" in headers["warc-target-uri"]
    ]
    [(headers, block)] = blocks
    assert headers["warc-truncated"] == "length" and block.endswith(b"\r\n\r\n") and block.count(b"\r\n\r\n") == 1


def test_the_order_of_headers_is_the_servers_and_bytes_are_kept(varied: Path) -> None:
    blocks = {headers["warc-target-uri"]: block for kind, headers, block in records(varied) if kind == "response"}
    assert blocks["http://h.test/latin"] == b"HTTP/1.1 200 OK\r\nX-Name: \xfcber\r\n\r\nx1"
    assert "http://h.test/q'|?a=[1]" in blocks and "http://[2001:db8::1]/v6" in blocks


def test_a_file_that_is_being_written_can_be_read_by_others(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.writer.store([capture("http://h.test/p", b"hello")])
    [path] = files(tmp_path)
    assert path.suffix == ".open"
    assert [item.rec_type for item in ArchiveIterator(io.BytesIO(path.read_bytes()))] == ["warcinfo", "request", "response"]
    archive.close()
