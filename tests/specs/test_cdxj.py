"""Our index is the one that cdxj-indexer writes, of our archives and of those of others."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import pytest
import surt as oracle

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.core import cdxj
from crawltool.core.surt import surt
from crawltool.records import Prior
from crawltool.stores.warcindex import Indexer
from tests.archives import Archive, capture, cdxj_of, files
from tests.paths import shared_data

# cdxj-indexer ends with an exception on a dozen damaged files, and on dates that are no dates. Of the rest these differ:
EXPLAINED = {
    "chatnoir-resiliparse/clipped.warc.gz": "a torn record has no line",
    "ipwb/redirect.warc": "a torn record has no line",
    "jwat/valid-warcfile-fields-metainfo.warc": "it takes a type in a folded header line for no type",
    "jwat/valid-warcfile-upper-lower-case.warc": "it does not know RESPONSE",
    "warcio/bad.arc": "records of ARC files without a length have no line",
    "warcio/example-space-in-url.arc": "a torn record has no line",
}
PIECES = ["a", "B", "/", "//", "..", ".", "%2e", "%25", "%41", "%", "?", "&", "=", "é", "%C3", "sid=" + "a" * 32, "+", "'", "|"]
PIECES += [
    "&jsessionid=" + "B" * 32 + "&x",
    "(S(" + "a" * 24 + "))/p.aspx",
    " ",
    "~",
    "[",
    "]",
    ":",
    "@",
    "#x",
    "WWW",
    "www2.",
    ";",
]
HOSTS = [
    "h.test",
    "www.h.test",
    "WWW12.h.test",
    "a.b.co.uk:8080",
    "h.test:80",
    "127.0.0.1:81",
    "xn--bcher-kva.test",
    "u:p@h.test",
]


@pytest.mark.parametrize(
    "url",
    [
        "dns:www.Archive.org",
        "urn:view:http://h.test/a",
        "metadata://gnu.org/software/wget/warc/MANIFEST.txt",
        "http://[::1]:8080/A",
        "http://bücher.test/",
        "https://h.test:443?",
        "http://h..test./",
        "file:///tmp/x",
        "ftp://h.test:21/A",
        "filedesc://A.arc",
        "http://h.test/?cfid=1&cftoken=2&Z",
        "http://h.test/?ASPSESSIONIDABCDEFGH=" + "A" * 24,
        "",
    ],
)
def test_keys_of_odd_urls_are_those_of_surt(url: str) -> None:
    assert surt(url) == oracle.surt(url)


def test_keys_of_random_urls_are_those_of_surt() -> None:
    chosen = random.Random(7)
    for _ in range(5000):
        scheme, host = chosen.choice(["http", "https"]), chosen.choice(HOSTS)
        url = f"{scheme}://{host}/" + "".join(chosen.choice(PIECES) for _ in range(chosen.randrange(9)))
        assert surt(url) == oracle.surt(url), url


def test_a_hostile_url_does_not_make_it_slow() -> None:
    assert len(surt("http://h.test/" + "%25" * 20_000 + "41?" + "sid=" * 10_000 + "&" * 10_000)) > 20_000


@pytest.mark.parametrize(
    ("date", "digits"),
    [
        ("2014-02-10T00:00:01Z", "20140210000001"),
        ("2014-02-10T00:00:01.000000002Z", "20140210000001"),
        ("2014-02-10T01:02Z", "20140210010200"),
        ("2014-02", "20140201000000"),
        ("2014", "20140101000000"),
        ("", "00000101000000"),
    ],
)
def test_dates_become_14_digits(date: str, digits: str) -> None:
    assert cdxj.timestamp(date) == digits


def test_every_line_of_foreign_archives_is_the_same(tmp_path: Path) -> None:
    warnings.simplefilter("ignore")
    same = 0
    for row in map(json.loads, shared_data("warc/index.jsonl").read_text().splitlines()):
        path = shared_data("warc/" + row["file"])
        if not row.get("warcio") or row["warcio"]["error"] or not path.name.endswith((".warc", ".warc.gz", ".arc", ".arc.gz")):
            continue
        mine = b"".join(Indexer().lines([path]))
        try:
            theirs = cdxj_of([path], tmp_path)
        except (ValueError, TypeError):  # of a date
            continue
        assert (mine == theirs) == (row["file"] not in EXPLAINED), row["file"]
        same += mine == theirs
    assert same > 95


def test_our_archives_have_the_same_lines_by_command(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    archive = Archive(tmp_path / "warc", rotate_bytes=2000)
    not_modified = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    for n, captures in enumerate(
        [
            [capture(f"https://www.h{n}.test/a b|c'd?z=1&A=2#x", b"body %d" % n) for n in range(5)],
            [capture("http://h0.test/same", b"body 0"), capture("http://h0.test/empty", b"")],
            [capture("http://h0.test/304", b"", head=not_modified, status=304, prior=Prior(warc_date="2020-01-01T00:00:00Z"))],
            [capture("http://h0.test/bare", b"", head=not_modified, status=304)],
            [
                capture(
                    "http://[::1]:81/",
                    b"cut",
                    truncated="length",
                    head=b"HTTP/1.1 404 \r\nContent-Type: a/b;c=d\r\n\r\n",
                    status=404,
                )
            ],
        ]
    ):
        archive.writer.store(captures)
        assert n < 9
    archive.close()
    paths = files(tmp_path / "warc")
    assert len(paths) > 1
    assert main(["warc", "index", "-C", str(tmp_path)], Voice()) == 0
    out = capsysbinary.readouterr().out
    assert out == cdxj_of(paths, tmp_path)
    assert out.splitlines() == sorted(out.splitlines()) and len(out.splitlines()) == 10


def test_records_without_an_offset_are_left_out_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_data("warc/gowarc/good.warc.gz.open")
    assert main(["warc", "index", str(path)], Voice()) == 0
    captured = capsys.readouterr()
    assert "50 records left out" in captured.err and not captured.out
