"""The frontier decides the same on the crawl database as on dicts: same reads, same targets, same rows, over crashes too."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core.frontier.rows import Save, Table
from crawltool.stores.crawldb import CrawlDb
from tests.sim.crawl import Plan, SimCrawl
from tests.sim.store import DictStore

OWN = {Table.META: {b"version", b"trimmed"}}  # rows that the database keeps for itself


class BothStores(DictStore):
    """Every read is asked of both."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.db = CrawlDb(path)

    def commit(self, save: Save) -> None:
        super().commit(save)
        self.db.commit(save)
        self.db.keep_sieve()

    def reopen(self) -> None:
        self.db.close()
        self.db = CrawlDb(self.path)

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        told = super().known(keys)
        assert self.db.known(keys) == told
        return told

    def get(self, table: Table, key: bytes) -> bytes | None:
        told = super().get(table, key)
        assert self.db.get(table, key) == told
        return told

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        told = super().scan(table, start, end, at_most)
        assert [row for row in self.db.scan(table, start, end, at_most) if row[0] not in OWN.get(table, set())] == told
        return told

    def check_rows(self) -> None:
        for table in Table:
            if table is not Table.SINCE:
                rows = self.db.scan(table, b"", b"\xff" * 64, 1 << 40)
                assert {key: row for key, row in rows if key not in OWN.get(table, set())} == self.rows[table], table


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1_000_000))
def test_the_database_and_dicts_give_the_same_crawl(seed: int) -> None:
    plan = Plan.of(seed)
    alone = SimCrawl(seed, plan).run()
    with tempfile.TemporaryDirectory() as folder:
        store = BothStores(Path(folder) / "frontier.db")
        both = SimCrawl(seed, plan, store).run()
        store.check_rows()
        store.db.close()
    assert both.digest.hexdigest() == alone.digest.hexdigest()
    assert both.fetchers.fetched == alone.fetchers.fetched
