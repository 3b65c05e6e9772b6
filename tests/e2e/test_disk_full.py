"""A full disk ends the crawl with 74, and what is on it is safe: with space again, the same command finishes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.crawls import FAST, Crawl, kill_group, pages_asked
from tests.e2e.reference import reach
from tests.e2e.test_whole_site import may
from tests.web import Web


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """Mount a small file system; skip where that is not allowed."""
    place.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a small file system needs root and the right to mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_stops_with_74_and_resumes(tmp_path: Path) -> None:
    # 120 pages of 250 KB: about 20 MB of archives and text, on a disk that has room for half of it.
    with Web(tmp_path, {"a": "plain pages=120 words=40000"}) as web, small_disk(tmp_path / "disk", "20m") as disk:
        expected = set(reach([web.url("a")], may))
        web.forget()
        crawl = Crawl(disk, web.url("a"), *FAST, "--min-free", "0", "--max-rest", "1s")
        said = crawl.run(code=74, timeout_s=60)
        assert "space" in said or "full" in said, said
        before = pages_asked(web.log())
        assert len(before) < len(expected), "the disk was not full in mid-crawl"
        subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
        crawl.run(timeout_s=60)
        asked = pages_asked(web.log())
        assert set(asked) == expected
        assert sum(asked.values()) - len(expected) <= 1000, "more than --room was asked for again"
        crawl.check_warcs()


def test_a_nearly_full_disk_pauses_the_crawl_and_freed_space_lets_it_go_on(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=40 words=4000"}) as web, small_disk(tmp_path / "disk", "300m") as disk:
        expected = set(reach([web.url("a")], may))
        web.forget()
        filler = disk / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 220 << 20)
        crawl = Crawl(disk, web.url("a"), *FAST, "--min-free", "100MiB", "--max-rest", "30s")
        process = crawl.start()
        try:
            while "paused" not in crawl.said():
                assert process.poll() is None, crawl.said()
                time.sleep(0.05)
            assert not pages_asked(web.log()), "asked while there was no room to store the answer"
            os.truncate(filler, 190 << 20)  # 110 MiB and less are free: more than --min-free, but not a fifth more
            time.sleep(1.5)
            assert not pages_asked(web.log())
            filler.unlink()
            assert process.wait(60) == 0, crawl.said()
        finally:
            kill_group(process)
        asked = pages_asked(web.log())
        assert set(asked) == expected and max(asked.values()) == 1
        assert crawl.said().count("paused") == 1 and "going on" in crawl.said()
        crawl.check_warcs()


def test_a_disk_that_stays_nearly_full_ends_with_74_after_max_rest(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=5"}) as web, small_disk(tmp_path / "disk", "100m") as disk:
        crawl = Crawl(disk, web.url("a"), *FAST, "--min-free", "200MiB", "--max-rest", "1s")
        said = crawl.run(code=74, timeout_s=30)
        assert "--min-free" in said and "paused" in said
        assert not pages_asked(web.log())
