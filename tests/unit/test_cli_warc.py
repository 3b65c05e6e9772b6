"""crawltool warc cat prints the body that a locator or URL names."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.records import Outcome, encode
from crawltool.stores.crawllog import CrawlLog
from crawltool.stores.warc import Stored
from crawltool.stores.warctree import Tree
from tests.archives import Archive, capture, files
from tests.paths import shared_data

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


HOSTILE = [
    "http://h.test/a",
    "http://h.test/a/b",
    "http://h.test/A",
    "http://h.test/a/",
    "http://h.test/%2e%2e/%2e%2e/etc/passwd",
    "http://h.test/..%2f..%2fetc",
    "http://h.test/" + "x" * 300,
    "http://h.test/" + "y/" * 100,
    "http://h.test/q?a=1&b=/../..",
    "http://h.test/index.html",
    "http://h.test/",
    "https://h.test/",
    "http://h.test/%00",
    "http://h.test/a%7eb",
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    archive = Archive(tmp_path / "warc")
    archive.writer.store([capture(url, url.encode()) for url in HOSTILE])
    archive.writer.store([capture("http://h.test/gone", b"gone", head=b"HTTP/1.1 404 Not Found\r\n\r\n", status=404)])
    archive.close()
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_tree_holds_every_body_and_nothing_lies_outside_of_it(hostile: Path, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    out = tmp_path / "out"
    assert cat(hostile, "--tree", out, "*") == 0
    found = tree(out)
    assert sorted(found.values()) == sorted(url.encode() for url in HOSTILE)
    assert found["h.test/A"] == b"http://h.test/A" and not any(value == b"gone" for value in found.values())
    assert len({name.casefold() for name in found}) == len(found), "no two names are one where case does not count"
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(out)} == before
    assert cat(hostile, "--tree", out, "*") == 73, "a folder with something in it is left alone"
    assert cat(hostile, "--tree", tmp_path / "x", "--record", "*") == 64


def test_a_pattern_means_the_last_good_answer_of_each_url(
    hostile: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    archive = Archive(hostile / "warc")
    archive.writer.store([capture("http://h.test/a/b", b"newer")])
    archive.close()
    assert cat(hostile, "/a/*") == 0
    assert capsysbinary.readouterr().out == b"newer" + b"http://h.test/a/"
    assert cat(hostile, "re:/a/b$", *files(hostile / "warc")) == 0
    assert capsysbinary.readouterr().out == b"newer"
    assert cat(hostile, "/none/*") == 66


def test_outcomes_on_stdin_are_what_is_meant(
    crawl: Path, stored: list[Stored], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines = [
        encode(Outcome(url=f"http://h.test/{n}", lease="1-1", kind="page", verdict="ok", warc=one.warc, body_warc=one.body_warc))
        for n, one in enumerate(stored)
    ]
    given = tmp_path / "in.jsonl"
    given.write_bytes(b"".join([*lines, b"no json\n", b'{"type":"target","url":"http://h.test/"}\n']))

    def piped(*arguments: object) -> int:
        with given.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            descriptor = os.dup(0)
            os.dup2(stream.fileno(), 0)
            try:
                return cat(crawl, *arguments)
            finally:
                os.dup2(descriptor, 0)
                os.close(descriptor)

    assert piped("-") == 0
    assert capsysbinary.readouterr().out == b"<p>hello</p><p>hello</p>half"
    assert piped("--raw", "--tree", tmp_path / "out", "-") == 0
    assert tree(tmp_path / "out") == {"h.test/0": PACKED, "h.test/1": PACKED, "h.test/2": b"half"}


def test_archives_of_others_are_read_and_their_revisits_found(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = shared_data("warc/pywb/iana.warc.gz")
    assert cat(tmp_path, "http://www.iana.org/_css/2013.1/screen.css", path) == 0
    assert b"font-family" in capsysbinary.readouterr().out
    assert cat(tmp_path, "--tree", tmp_path / "out", "http://www.iana.org/*", path) == 0
    assert len(tree(tmp_path / "out")) > 20


def test_a_file_where_a_folder_is_needed_is_gone_around(tmp_path: Path) -> None:
    made = Tree(tmp_path / "out")
    made.add("http://h.test/a", b"file")
    made.add("http://h.test/a/b", b"below")
    (tmp_path / "out" / "h.test" / "link").symlink_to("/")
    path = made.add("http://h.test/link/etc/passwd", b"x")
    assert path is not None and path.resolve().is_relative_to(tmp_path / "out")
    path = made.add("http://h.test/link", b"x")
    assert path is not None and path.name != "link"
    assert made.add("ftp://h.test/", b"") is None
