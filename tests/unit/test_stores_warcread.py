"""Reading back: fast, bounded, and damage is data."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.records import Locator
from crawltool.stores import warcfile, warcread
from crawltool.stores.warcread import Unreadable
from tests.archives import Archive, capture, files, found


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


def test_the_parts_of_an_answer_come_back_as_they_came(archive: Archive) -> None:
    head = b"HTTP/1.1 200 \r\nX-A: 1\r\nx-a: 2\r\nLink: </\xc3\xbc>;\r\n rel=next\r\nBad line\r\nX-L: \xfc\r\n\r\n"
    [stored] = archive.writer.store([capture("http://h.test/p", b"\r\n\r\nbody\r\n", head=head)])
    record = warcread.read(archive.directory, stored.warc)
    assert record.http_status == 200 and record.body == b"\r\n\r\nbody\r\n" and record.http_head == head
    assert record.http_headers == [
        ("X-A", "1"),
        ("x-a", "2"),
        ("Link", "</Ã¼>; rel=next"),  # one byte is not UTF-8: all is read as Latin-1
        ("Bad line", ""),
        ("X-L", "ü"),
    ]
    assert record.http_header("x-a") == "1" and record.http_header("none") is None
    assert record.url == "http://h.test/p" and record.type == "response" and not record.cut
    archive.close()


def test_a_header_with_bare_line_feeds_is_split_from_its_body(archive: Archive) -> None:
    head = b"HTTP/1.0 200 OK\nContent-Type: text/html\n\n"
    [stored] = archive.writer.store([capture("http://h.test/p", b"body", head=head)])
    record = warcread.read(archive.directory, stored.warc)
    assert record.http_headers == [("Content-Type", "text/html")] and record.body == b"body"
    archive.close()


@pytest.mark.parametrize("line", [b"http/1.1\t429\tBusy", b"HTTP/1.1  429", b"Http/1.1 429 x"])
def test_a_status_line_that_libcurl_takes_is_read_back(archive: Archive, line: bytes) -> None:
    [stored] = archive.writer.store([capture("http://h.test/p", b"x", head=line + b"\r\nX-A: 1\r\n\r\n", status=429)])
    assert warcread.read(archive.directory, stored.warc).http_status == 429
    archive.close()


def test_a_first_field_that_begins_with_a_blank_is_none_and_frames_nothing(archive: Archive) -> None:
    head, body = (
        b"HTTP/1.1 200 OK\r\n\tTransfer-Encoding: chunked\r\n Content-Length: 9\r\nX-A: 1\r\n\r\n",
        b"3\r\nabc\r\n0\r\n\r\n",
    )
    [stored] = archive.writer.store([capture("http://h.test/p", body, head=head)])
    record = warcread.read(archive.directory, stored.warc)
    assert record.body == body, "libcurl took it as it came, so the archive must give it so"
    assert record.http_headers == [("X-A", "1"), ("Content-Length", str(len(body)))]
    assert (
        b"\n\tX-Crawler-Transfer-Encoding: chunked" in record.http_head and b"\n X-Crawler-Content-Length: 9" in record.http_head
    )
    archive.close()


def test_reading_stops_at_its_limit_and_says_so(archive: Archive) -> None:
    [stored] = archive.writer.store([capture("http://h.test/p", b"x" * 1_000_000)])
    record = warcread.read(archive.directory, stored.warc, limit=10_000)
    assert record.cut and 9_000 < len(record.body) < 10_000
    assert not warcread.read(archive.directory, stored.warc).cut
    [item] = warcread.records(files(archive.directory)[0], stored.warc.offset, limit=10_000)
    assert item.length == stored.warc.length and item.record is not None and item.record.cut
    archive.close()


def test_a_whole_record_comes_unpacked_in_pieces(archive: Archive) -> None:
    [stored] = archive.writer.store([capture("http://h.test/p", b"x" * 3_000_000)])
    pieces = list(warcread.unpacked(archive.directory, stored.warc))
    assert max(map(len, pieces)) <= limits.MIB
    whole = b"".join(pieces)
    assert whole.startswith(b"WARC/1.1\r\n") and whole.endswith(b"x\r\n\r\n") and len(whole) > 3_000_000
    archive.close()


def test_a_file_is_found_under_both_of_its_names(archive: Archive) -> None:
    [stored] = archive.writer.store([capture("http://h.test/p", b"body")])
    assert warcread.read(archive.directory, stored.warc).body == b"body"
    archive.close()
    assert warcread.read(archive.directory, stored.warc).body == b"body"
    assert warcread.read(str(archive.directory) + "/.", stored.warc).body == b"body"


@pytest.mark.parametrize(
    "change",
    [
        {"file": "none.warc.gz"},
        {"file": "../digests.lmdb/data.mdb"},
        {"offset": 1},
        {"offset": -1},
        {"offset": 10**9},
        {"length": 0},
        {"length": 30},
        {"length": 10**12},
    ],
)
def test_a_locator_that_names_no_record_is_unreadable(archive: Archive, change: dict[str, object]) -> None:
    [stored] = archive.writer.store([capture("http://h.test/p", b"body")])
    facts: dict[str, object] = {"file": stored.warc.file, "offset": stored.warc.offset, "length": stored.warc.length}
    wrong = Locator(**(facts | change))  # type: ignore[arg-type]
    with pytest.raises(Unreadable):
        warcread.read(archive.directory, wrong)
    with pytest.raises(Unreadable):
        list(warcread.unpacked(archive.directory, wrong))
    archive.close()


@pytest.mark.parametrize(
    "record",
    [b"", b"hello", b"WARC/1.1\r\n", b"WARC/1.1\r\nContent-Length: x\r\n\r\n", b"WARC/1.1\r\n\r\n", b"HTTP/1.1 200\r\n\r\n"],
)
def test_a_member_that_is_no_record_is_damage(tmp_path: Path, record: bytes) -> None:
    member = warcfile.pack(record)
    (tmp_path / "a.warc.gz").write_bytes(member)
    [item] = found(tmp_path / "a.warc.gz")
    assert item.record is None and item.damage and item.length == len(member)
    with pytest.raises(Unreadable):
        warcread.read(tmp_path, Locator(file="a.warc.gz", offset=0, length=len(member)))


def test_damage_in_the_middle_is_reported_and_passed_over(archive: Archive) -> None:
    archive.writer.store([capture(f"http://h.test/{n}", os.urandom(3000)) for n in range(3)])
    archive.close()
    [path] = files(archive.directory)
    whole = found(path)
    data = bytearray(path.read_bytes())
    hurt = whole[4]
    data[hurt.offset + hurt.length // 2] ^= 0xFF
    path.write_bytes(data)
    now = found(path)
    good = [item.offset for item in now if item.record]
    assert good == [item.offset for item in whole if item.offset != hurt.offset]
    assert sum(item.length for item in now) == len(data), "every byte belongs to a record or to damage"


def test_a_torn_tail_is_reported(archive: Archive) -> None:
    archive.writer.store([capture("http://h.test/1", b"body")])
    archive.close()
    [path] = files(archive.directory)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:100])
    last = found(path)[-1]
    assert last.damage == "torn: the file ends inside a record" and last.length == 100


@given(st.binary(max_size=300))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_junk_never_raises_and_always_ends(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "junk.warc.gz"
    path.write_bytes(junk + warcfile.pack(b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n") + junk)
    items = found(path)
    assert sum(item.length for item in items) == path.stat().st_size


def test_no_more_than_a_few_files_stay_open(tmp_path: Path) -> None:
    member = warcfile.pack(b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(3 * limits.WARC_FILES_OPEN_MAX):
        (tmp_path / f"{n}.warc.gz").write_bytes(member)
        warcread.read(tmp_path, Locator(file=f"{n}.warc.gz", offset=0, length=len(member)))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + limits.WARC_FILES_OPEN_MAX


def test_records_of_others_are_read_by_locator_too(tmp_path: Path) -> None:
    http = b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    fields = (
        f"WARC-Type: response\nWARC-Target-URI: <http://h.test/>\nContent-Type: application/http\nContent-Length: {len(http)}"
    )
    plain = f"WARC/1.0\n{fields}\n\n".encode() + http + b"\n\n"
    arc = b"http://h.test/ 1.2.3.4 20140102030405 text/html %d\n" % len(http) + http + b"\n"
    dictionary = zstandard.ZstdCompressionDict(plain * 20)
    framed = zstandard.ZstdCompressor(dict_data=dictionary).compress(plain)
    content = dictionary.as_bytes()
    head = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
    (tmp_path / "a.warc").write_bytes(b"x" * 10 + plain)
    (tmp_path / "a.arc").write_bytes(arc)
    (tmp_path / "a.warc.zst").write_bytes(head + framed)
    places = [("a.warc", 10, len(plain)), ("a.arc", 0, len(arc)), ("a.warc.zst", len(head), len(framed))]
    for file, offset, length in places:
        locator = Locator(file=file, offset=offset, length=length)
        record = warcread.read(tmp_path, locator)
        assert (record.type, record.url, record.http_status, record.body) == ("response", "http://h.test/", 200, b"hello"), file
        assert b"".join(warcread.unpacked(tmp_path, locator)) == (arc if file == "a.arc" else plain)
        with pytest.raises(Unreadable):
            warcread.read(tmp_path, Locator(file=file, offset=offset + 1, length=length - 1))


def test_a_zstd_bomb_is_cut_at_the_limit(tmp_path: Path) -> None:
    bomb = zstandard.ZstdCompressor().compress(b"WARC/1.1\r\nContent-Length: 100000000\r\n\r\n" + b"\0" * 100_000_000)
    (tmp_path / "a.warc.zst").write_bytes(bomb)
    tracemalloc.start()
    record = warcread.read(tmp_path, Locator(file="a.warc.zst", offset=0, length=len(bomb)), limit=limits.MIB)
    assert record.cut and len(record.body) < limits.MIB and tracemalloc.get_traced_memory()[1] < 16 * limits.MIB
    tracemalloc.stop()


def test_a_zstd_file_is_walked_like_a_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.zst.open"
    frames = [
        zstandard.ZstdCompressor(write_checksum=True).compress(
            f"WARC/1.1\r\nWARC-Record-ID: <urn:uuid:{n}>\r\nContent-Length: 1000\r\n\r\n".encode()
            + os.urandom(1000)
            + b"\r\n\r\n"
        )
        for n in range(3)
    ]
    whole = b"".join(frames)
    for cut in range(0, len(frames[2]), 97):
        path.write_bytes(whole[: len(whole) - cut])
        items = found(path)
        assert sum(item.length for item in items) == path.stat().st_size, "every byte belongs to a record or to damage"
        assert [item.record is not None for item in items] == [True, True, not cut]
        assert [item.offset for item in warcread.records(path, len(frames[0]))] == [item.offset for item in items[1:]]
