"""The crawl log keeps every line once, whatever happens at its end."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.stores import crawllog, frames
from crawltool.stores.crawllog import CrawlLog, LogReader


def lines(first: int, last: int, size: int = 0) -> list[tuple[int, bytes]]:
    return [(n, b'{"type":"outcome","x":"%s","seq":%d}\n' % (b"x" * size, n)) for n in range(first, last + 1)]


def texts(first: int, last: int, size: int = 0) -> list[bytes]:
    return [line.rstrip(b"\n") for _, line in lines(first, last, size)]


def test_lines_are_durable_when_their_frame_is_old_enough(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path / "outcomes")
    assert log.append(lines(1, 3), now=100.0) == 0
    assert log.wakeup() == 100.0 + limits.LOG_FRAME_AGE_S
    assert log.tick(104.9) == 0 and list(crawllog.read(tmp_path / "outcomes")) == []
    assert log.tick(105.0) == 3 and log.wakeup() is None
    assert list(crawllog.read(tmp_path / "outcomes")) == texts(1, 3)
    assert log.append(lines(4, 4), now=200.0) == 3
    log.close()
    assert list(crawllog.read(tmp_path / "outcomes")) == texts(1, 4)


def test_a_frame_closes_when_it_is_large(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    assert 1000 < log.append(lines(1, 1100, size=1000), now=0.0) < 1050  # 1 MiB of lines a little over 1 KiB
    log.close()


def test_lines_that_are_here_already_are_skipped(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    log.append(lines(1, 5), now=0.0)
    log.append(lines(3, 6), now=0.0)
    log.close()
    again = CrawlLog(tmp_path)
    assert again.durable == 6
    again.append(lines(1, 8), now=0.0)
    again.close()
    assert list(crawllog.read(tmp_path)) == texts(1, 8)


def test_files_rotate_and_sort(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path, file_bytes=100)
    for n in range(1, 13):
        log.append(lines(n, n), now=0.0)
        log.flush()
    log.close()
    assert len(crawllog.files(tmp_path)) > 2
    assert list(crawllog.read(tmp_path)) == texts(1, 12)
    assert CrawlLog(tmp_path).durable == 12


def test_a_torn_frame_is_cut_at_every_byte(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    log.append(lines(1, 3), now=0.0)
    log.flush()
    log.append(lines(4, 5), now=0.0)
    log.close()
    [path] = crawllog.files(tmp_path)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        log = CrawlLog(tmp_path)
        assert log.durable in (0, 3), size
        log.append(lines(1, 5), now=0.0)
        log.close()
        assert list(crawllog.read(tmp_path)) == texts(1, 5), size
        assert crawllog.files(tmp_path) == [path]


def test_a_reader_goes_on_where_it_was(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path, file_bytes=200)
    reader = LogReader(tmp_path)
    assert list(reader.lines()) == []
    seen = []
    for n in range(1, 20):
        log.append(lines(n, n), now=0.0)
        log.flush()
        seen += reader.lines()
        assert seen == texts(1, n)
    assert list(reader.lines()) == [] and reader.damaged_bytes == 0
    log.close()


def test_a_frame_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    log.append(lines(1, 2), now=0.0)
    log.flush()
    log.append(lines(3, 3), now=0.0)
    log.close()
    [path] = crawllog.files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    reader = LogReader(tmp_path)
    assert list(reader.lines()) == texts(1, 2)
    path.write_bytes(whole)
    assert list(reader.lines()) == texts(3, 3)


def test_a_full_disk_keeps_the_lines_for_the_next_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CrawlLog(tmp_path)
    log.append(lines(1, 2), now=0.0)
    log.flush()
    log.append(lines(3, 4), now=0.0)
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        real(descriptor, bytes(data[:9]))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(DiskTrouble):
            log.flush()
    assert log.durable == 2 and list(crawllog.read(tmp_path)) == texts(1, 2)
    assert log.flush() == 4
    log.close()
    assert list(crawllog.read(tmp_path)) == texts(1, 4)


def test_any_line_is_found_by_its_number(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path, file_bytes=300)
    for first in range(1, 60, 3):
        log.append(lines(first, first + 2, size=first % 7 * 100), now=0.0)
        log.flush()
    log.close()
    assert len(crawllog.files(tmp_path)) > 2
    found = [crawllog.line_of(tmp_path, n) for n in range(1, 61)]
    assert found == [text for first in range(1, 60, 3) for text in texts(first, first + 2, size=first % 7 * 100)]
    assert [crawllog.line_of(tmp_path, n) for n in (-1, 0, 61, 1 << 60)] == [None] * 4
    assert crawllog.line_of(tmp_path / "none", 1) is None


def test_a_torn_last_frame_is_no_frame_to_search_in(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    for first in (1, 4):
        log.append(lines(first, first + 2, size=200_000), now=0.0)
        log.flush()
    log.close()
    [path] = crawllog.files(tmp_path)
    whole = path.read_bytes()
    second = frames.starts(path)[1]
    for size in (second + 1, second + 5, second + 20, (second + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert frames.starts(path) == [0], size
        assert crawllog.line_of(tmp_path, 2) == texts(2, 2, size=200_000)[0] and crawllog.line_of(tmp_path, 5) is None
