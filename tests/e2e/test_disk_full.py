"""A full disk ends the crawl with 74, and what is on it is safe: with space again, the same command finishes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.crawls import FAST, Crawl, pages_asked
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
