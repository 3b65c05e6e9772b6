"""crawltool warc cat prints the body that a locator or URL names."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.records import Outcome, encode
from crawltool.stores.crawllog import CrawlLog
from crawltool.stores.warc import Stored
from tests.archives import Archive, capture, files

PACKED = gzip.compress(b"<p>hello</p>")
GZIP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def stored(crawl: Path) -> list[Stored]:
    archive = Archive(crawl / "warc")
    found = archive.writer.store(
        [
            capture("http://h.test/p", PACKED, head=GZIP_HEAD),
            capture("http://h.test/same", PACKED, head=GZIP_HEAD),
            capture("http://h.test/cut", b"half", truncated="disconnect"),
        ]
    )
    archive.close()
    return found


def cat(crawl: Path, *arguments: object) -> int:
    return main(["warc", "cat", "-C", str(crawl), *map(str, arguments)], Voice())


def locator(stored: Stored) -> str:
    return f"{stored.warc.file}:{stored.warc.offset}:{stored.warc.length}"


def test_a_locator_names_a_body(crawl: Path, stored: list[Stored], capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cat(crawl, locator(stored[0])) == 0
    assert capsysbinary.readouterr().out == b"<p>hello</p>"
    assert cat(crawl, "--raw", locator(stored[0])) == 0
    assert capsysbinary.readouterr().out == PACKED
    assert cat(crawl, "--record", locator(stored[0])) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n") and out.endswith(PACKED + b"\r\n\r\n")
    assert cat(Path("/tmp"), str(crawl / "warc") + "/" + locator(stored[0])) == 0


def test_a_revisit_shows_the_body_it_refers_to(
    crawl: Path, stored: list[Stored], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cat(crawl, locator(stored[1])) == 0
    assert capsysbinary.readouterr().out == b"<p>hello</p>"
    assert cat(crawl, "--record", locator(stored[1])) == 0
    assert b"WARC-Type: revisit" in capsysbinary.readouterr().out


def test_a_url_is_found_in_the_log_else_in_the_files(
    crawl: Path, stored: list[Stored], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cat(crawl, "http://H.test/same") == 0
    assert cat(crawl, "http://h.test/p", *files(crawl / "warc")) == 0
    assert capsysbinary.readouterr().out == b"<p>hello</p>" * 2
    writer = CrawlLog(crawl / "outcomes")
    # The log is asked first: this line names another record on purpose.
    writer.append(
        [(1, encode(Outcome(url="http://h.test/p", lease="1-1", kind="page", verdict="ok", warc=stored[2].warc, seq=1)))], now=0.0
    )
    writer.close()
    assert cat(crawl, "http://h.test/p") == 0
    captured = capsysbinary.readouterr()
    assert captured.out == b"half" and b"not whole (disconnect)" in captured.err


@pytest.mark.parametrize(
    ("what", "code"), [("http://h.test/none", 66), ("a.warc.gz:0:10", 66), ("nonsense", 64), ("ftp://h.test/", 64)]
)
def test_what_is_not_there_has_its_exit_code(crawl: Path, stored: list[Stored], what: str, code: int) -> None:
    assert cat(crawl, what) == code


def test_a_file_that_is_missing_is_no_input(crawl: Path, stored: list[Stored]) -> None:
    assert cat(crawl, "http://h.test/p", crawl / "none.warc.gz") == 66
