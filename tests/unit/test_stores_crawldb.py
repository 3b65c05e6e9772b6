"""The crawl database after a crash: no known URL is called new, also one that the sieve took for known when it was new."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import rocksdict

from crawltool.core.frontier.rows import Table
from crawltool.errors import BadPolicy
from crawltool.stores import crawldb
from crawltool.stores.crawldb import CrawlDb
from crawltool.stores.seen import Seen


class SmallSeen(Seen):
    """A sieve whose layers fill after a few keys."""

    @classmethod
    def load(cls, path: Path, **sizes: int) -> Seen:
        """Read it, with small sizes."""
        return Seen.load(path, **({"first_keys": 64, "growth": 2, "snapshot_keys": 10_000} | sizes))


def test_keys_that_the_sieve_was_wrong_about_are_known_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawldb, "Seen", SmallSeen)
    (tmp_path / "a").mkdir()
    db = CrawlDb(tmp_path / "a" / "frontier.db")
    keys = [hashlib.md5(b"%d" % n, usedforsecurity=False).digest() for n in range(8000)]
    for at in range(0, len(keys), 20):
        part = keys[at : at + 20]
        assert db.known(part) == [None] * 20
        db.commit([(Table.KNOWN, key, b"q") for key in part])
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    db.close()
    again = CrawlDb(tmp_path / "b" / "frontier.db")
    unknown = [key for key in keys if again.known([key]) == [None]]
    again.close()
    assert not unknown, f"{len(unknown)} of {len(keys)} known keys are called new"


def test_tables_of_a_newer_version_are_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "frontier.db"
    CrawlDb(path).close()
    raw = rocksdict.Rdict(
        str(path), rocksdict.Options(raw_mode=True), {table.name.lower(): rocksdict.Options(raw_mode=True) for table in Table}
    )
    raw.create_column_family("of_tomorrow", rocksdict.Options(raw_mode=True))
    raw.close()
    with pytest.raises(BadPolicy, match="another version"):
        CrawlDb(path)
