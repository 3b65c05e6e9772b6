"""Repair writes what can be read into a file that everybody reads, and says what it left out."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from fastwarc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.errors import CannotHold
from crawltool.stores.warcrepair import Mended, Repair
from crawltool.stores.warcverify import Verifier
from crawltool.stores.warcwalk import walk
from tests.archives import Archive, assert_clean, capture, files, warcio_problems
from tests.paths import shared_data


def repaired(source: Path, target: Path) -> tuple[Repair, list[Mended]]:
    repair = Repair(source, target)
    return repair, list(repair.run())


def blocks(path: Path) -> list[bytes]:
    return [b"".join(piece.chunks()) for piece in walk(path) if piece.head is not None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    archive = Archive(tmp_path / "warc")
    archive.writer.store([capture(f"http://h.test/{n}", b"hello %d" % n * 5000) for n in range(4)])
    archive.close()
    [found] = files(tmp_path / "warc")
    return found


def test_a_whole_file_comes_out_as_it_was(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.warc"
    repair, changes = repaired(path, target)
    assert changes == [] and repair.records == 9
    assert target.read_bytes() == gzip.decompress(path.read_bytes())


def test_damage_costs_what_is_damaged_and_no_more(path: Path, tmp_path: Path) -> None:
    whole = [(piece.offset, piece.length) for piece in walk(path)]
    before = blocks(path)
    data = bytearray(path.read_bytes())
    offset, length = whole[4]
    data[offset + length // 2] ^= 0xFF
    path.write_bytes(bytes(data[: whole[6][0]]) + b"junk" + bytes(data[whole[6][0] : -40]))
    target = tmp_path / "out.warc.gz"
    repair, changes = repaired(path, target)
    assert all(piece.head is not None and not piece.troubles for piece in walk(target))
    with target.open("rb") as stream:
        assert sum(1 for _ in ArchiveIterator(stream)) == repair.records
    after = blocks(target)
    assert all(block in after for n, block in enumerate(before) if n not in (4, 8))
    assert {change.did for change in changes} == {"left_out", "cut"} and repair.left_out_bytes > 4
    last = [piece.head for piece in walk(target)][-1]
    assert last is not None and last.get("warc-truncated") == "unspecified" and before[8].startswith(after[-1])
    assert last.get("x-crawler-warc-block-digest") and not last.get("warc-block-digest")


def test_records_in_one_member_get_one_each(path: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.warc.gz"
    one.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))
    target = tmp_path / "out.warc.gz"
    repaired(one, target)
    assert_clean(target)
    assert blocks(target) == blocks(path)


def test_what_is_written_otherwise_is_written_as_the_standard_has_it(tmp_path: Path) -> None:
    source, target = tmp_path / "a.warc", tmp_path / "b.warc.gz"
    source.write_bytes(
        b"warc/1.0\nWARC-Type: response\nWARC-Target-URI:\n http://h.test/\nWARC-Date: 2020-01-01T00:00:00Z\n"
        b"WARC-Record-ID: <urn:uuid:1>\nContent-Type: text/plain\nContent-Length: 500\n\nhello\n\nWARC/1.0\r\n"
        b"WARC-Type: metadata\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:2>\r\nContent-Length: 2\r\n"
        b"\r\nhi\r\n\r\n"
    )
    _, [change] = repaired(source, target)
    assert change.did == "mended" and "Content-Length was '500', is 5" in change.message
    assert blocks(target) == [b"hello", b"hi"]
    verifier = Verifier()
    with verifier.sorter:
        list(verifier.file(target))
    assert not verifier.counts["damage"] and not verifier.counts["wrong"], verifier.codes


@pytest.mark.parametrize("name", ["jwat/IAH-20080430204825-00000-blackbook.arc.gz", "jwat/small_BNF.arc", "warcio/example.arc"])
def test_an_arc_file_becomes_a_warc_file(tmp_path: Path, name: str) -> None:
    source, target = shared_data("warc/" + name), tmp_path / "a.warc.gz"
    repair, _ = repaired(source, target)
    assert blocks(target) == blocks(source)
    assert warcio_problems(target) == []
    with target.open("rb") as stream:
        assert sum(1 for _ in ArchiveIterator(stream)) == repair.records
    assert sum(1 for _ in FastIterator(io.BytesIO(target.read_bytes()), parse_http=False)) == repair.records


def test_no_file_is_replaced_and_none_is_left_behind(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.warc.gz"
    target.write_bytes(b"mine")
    with pytest.raises(CannotHold):
        list(Repair(path, target).run())
    assert target.read_bytes() == b"mine"
    target.unlink()
    run = Repair(path.with_name("none"), target).run()
    with pytest.raises(OSError):
        list(run)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["warc"]


def test_the_command_says_what_it_did(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.warc.gz"
    path.write_bytes(path.read_bytes()[:-5] + b"\x1b[31m")
    assert main(["warc", "repair", str(path), "-o", str(target)], Voice()) == 0
    captured = capsys.readouterr()
    assert "left_out" in captured.out and "\x1b" not in captured.out and "9 records written" in captured.err
    assert main(["warc", "repair", str(path), "-o", str(target)], Voice()) == 73
    assert main(["warc", "repair", str(path)], Voice()) == 64
    assert main(["warc", "repair", str(path), "-o", "x.zip"], Voice()) == 64
    assert main(["warc", "repair", "none", "-o", str(tmp_path / "x.warc")], Voice()) == 66
    assert main(["warc", "repair", "-C", str(tmp_path)], Voice()) == 0
    assert main(["warc", "repair", "-C", str(path.parent)], Voice()) == 66
