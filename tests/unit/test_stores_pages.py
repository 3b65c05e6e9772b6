"""The journal of pages is read on from any place, over all its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from crawltool.errors import DiskTrouble
from crawltool.stores import pages
from crawltool.stores.pages import START, PageRow, Pages, Place


def lines(number: int) -> list[bytes]:
    return [b'{"type":"page","url":"http://a.example/%d","digest":"sha1:%d"}\n' % (number, number)]


def fill(folder: Path, count: int) -> list[Place]:
    journal = Pages(folder, rotate_bytes=200)
    assert list(journal.catch_up(START)) == []
    places = [journal.append(lines(number)) for number in range(count)]
    journal.close()
    return places


def test_catching_up_from_any_place_gives_what_follows(tmp_path: Path) -> None:
    places = fill(tmp_path / "pages", 12)
    assert places[-1].file >= 3, "the test wants several files"
    for at, place in [(0, START), *enumerate(places, 1)]:
        journal = Pages(tmp_path / "pages")
        caught = list(journal.catch_up(place))
        assert [batch for batch, _ in caught] == [lines(number) for number in range(at, 12)]
        assert [after for _, after in caught] == places[at:]
        journal.close()
    assert list(pages.rows(tmp_path / "pages")) == [line for number in range(12) for line in lines(number)]


def test_a_torn_end_is_cut_and_counted(tmp_path: Path) -> None:
    places = fill(tmp_path, 4)
    path = tmp_path / pages.name(places[-1].file)
    path.write_bytes(path.read_bytes()[:-2])
    assert len(list(pages.rows(tmp_path))) == 3
    journal = Pages(tmp_path)
    assert len(list(journal.catch_up(START))) == 3
    assert journal.torn_bytes > 0
    journal.append(lines(9))
    assert list(pages.rows(tmp_path))[-1:] == lines(9)


def test_a_broken_or_missing_earlier_file_is_told(tmp_path: Path) -> None:
    fill(tmp_path, 12)
    first = tmp_path / pages.name(0)
    first.write_bytes(first.read_bytes()[:-2])
    with pytest.raises(DiskTrouble, match="damaged at byte"):
        list(Pages(tmp_path).catch_up(START))
    first.unlink()
    with pytest.raises(DiskTrouble, match="is missing"):
        list(Pages(tmp_path).catch_up(START))


def test_a_shorter_journal_is_noticed(tmp_path: Path) -> None:
    places = fill(tmp_path, 3)
    journal = Pages(tmp_path)
    assert journal.reaches(START) and journal.reaches(places[-1])
    assert not journal.reaches(places[-1]._replace(offset=places[-1].offset + 1))
    assert not journal.reaches(Place(99, 0))


def test_common_tools_read_it(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    try:
        shown = subprocess.run(["zstdcat", *sorted(tmp_path.glob("*.zst"))], capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("no zstdcat here")
    rows = [msgspec.json.decode(line, type=PageRow) for line in shown.stdout.splitlines()]
    assert [row.url for row in rows] == [f"http://a.example/{number}" for number in range(5)]
