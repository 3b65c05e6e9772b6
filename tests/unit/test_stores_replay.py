"""The index behind fetch --from-warc: the newest capture of a URL, with a body that is there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from crawltool import limits
from crawltool.records import Prior
from crawltool.stores import replay
from crawltool.stores.replay import ReplayIndex, linked
from tests.archives import Archive, capture, files

NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n"
DAY = 86_400.0


def archive(directory: Path) -> Path:
    made = Archive(directory)
    start = 1_796_040_000.0
    made.writer.store([capture("http://h.test/p", b"old", fetched_at=start)])
    made.writer.store([capture("http://h.test/p", b"new", fetched_at=start + DAY, ip="192.0.2.8")])
    made.writer.store([capture("http://h.test/copy", b"new", fetched_at=start + 2 * DAY)])
    prior = Prior(warc_url="http://h.test/p", warc_date="2026-12-01T12:00:00Z")
    made.writer.store(
        [
            capture("http://h.test/p", b"", head=NOT_MODIFIED, status=304, prior=prior, fetched_at=start + 3 * DAY),
            capture(
                "http://h.test/lost",
                b"",
                head=NOT_MODIFIED,
                status=304,
                prior=Prior(warc_url="http://h.test/lost", warc_date="2001-01-01T00:00:00Z"),
            ),
        ]
    )
    made.writer.store([capture("http://other.test:8080/robots.txt", b"Disallow:", kind="robots")])
    made.close()
    [path] = files(directory)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return archive(tmp_path / "old")


def bodies(index: ReplayIndex, warc: Path, url: str) -> tuple[int | None, bytes, bool] | None:
    found = index.find(url)
    if found is None:
        return None
    answer, holder = index.read(warc, found, limits.MIB)
    return answer.http_status, holder.body, found.body is found.row


def test_a_url_is_answered_by_its_newest_capture(path: Path, tmp_path: Path) -> None:
    warc = tmp_path / "new" / "warc"
    index = ReplayIndex([path], warc)
    # The newest is a 304, which confirms the second: that is the answer.
    assert bodies(index, warc, "http://h.test/p") == (200, b"new", True)
    assert bodies(index, warc, "http://h.test/copy") == (200, b"new", False)
    assert bodies(index, warc, "http://other.test:8080/robots.txt") == (200, b"Disallow:", True)
    assert index.find("http://h.test/lost") is None and index.find("http://h.test/") is None
    assert index.captures == 6 and not index.unusable
    index.close()


def test_a_host_has_the_address_it_had_last(path: Path, tmp_path: Path) -> None:
    index = ReplayIndex([path], tmp_path / "warc")
    assert index.address_of("other.test") == "192.0.2.7" and index.address_of("none.test") is None
    index.close()


def test_any_number_of_captures_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_BLOCK_BYTES", 1000)
    made = Archive(tmp_path / "old")
    made.writer.store([capture(f"http://h{n % 7}.test/{n}", b"%d" % n) for n in range(500)])
    made.close()
    index = ReplayIndex(files(tmp_path / "old"), tmp_path / "warc")
    for n in range(500):
        assert bodies(index, tmp_path / "warc", f"http://h{n % 7}.test/{n}") == (200, b"%d" % n, True)
    assert all(index.find(f"http://h0.test/x{n}") is None for n in range(100))
    assert all(index.address_of(f"h{n}.test") == "192.0.2.7" for n in range(7))
    index.close()


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(b"")
    index = ReplayIndex([tmp_path / "a.warc"], tmp_path / "warc")
    assert index.find("http://h.test/") is None and index.address_of("h.test") is None
    index.close()


def test_records_that_no_offset_leads_to_are_counted(path: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.warc.gz"
    one.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))
    index = ReplayIndex([one], tmp_path / "warc")
    assert index.unusable == {str(one): 6} and index.find("http://h.test/p") is None
    index.close()


def test_files_are_linked_once_and_names_do_not_clash(path: Path, tmp_path: Path) -> None:
    warc = tmp_path / "warc"
    other = tmp_path / "elsewhere" / path.name
    other.parent.mkdir()
    other.write_bytes(b"")
    assert linked(path, warc) == path.name == linked(path, warc)
    assert linked(other, warc) == f"2-{path.name}" == linked(other, warc)
    assert linked(path, path.parent) == path.name and not (path.parent / f"2-{path.name}").exists()
    torn = tmp_path / "b.warc.gz.open"
    torn.write_bytes(b"")
    assert linked(torn, warc) == "b.warc.gz", "a link that ends in .open would be taken for a file to be repaired"
    assert sorted(one.name for one in warc.iterdir()) == sorted([path.name, f"2-{path.name}", "b.warc.gz"])


def test_archives_of_every_kind_are_indexed(tmp_path: Path) -> None:
    http = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    page = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    head = "WARC/1.0\r\nWARC-Type: {}\r\nWARC-Target-URI: http://h.test/{}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n"
    response = (
        head.format("response", "zst") + f"Content-Type: application/http\r\nContent-Length: {len(http)}\r\n\r\n"
    ).encode()
    resource = (head.format("resource", "plain") + "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n").encode()
    (tmp_path / "a.warc.zst").write_bytes(zstandard.ZstdCompressor().compress(response + http + b"\r\n\r\n"))
    (tmp_path / "a.warc").write_bytes(resource)
    (tmp_path / "a.arc").write_bytes(b"http://h.test/arc 1.2.3.4 20200101000000 text/html %d\n" % len(page) + page + b"\n")
    warc = tmp_path / "warc"
    index = ReplayIndex([tmp_path / name for name in ("a.warc.zst", "a.warc", "a.arc")], warc)
    assert bodies(index, warc, "http://h.test/zst") == (200, b"hello", True)
    assert bodies(index, warc, "http://h.test/plain") == (None, b"hello", True)
    assert bodies(index, warc, "http://h.test/arc") == (200, b"hello", True)
    index.close()
