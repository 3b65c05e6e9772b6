"""The crawl database answers as sorted dicts do, also after it was closed and opened again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from crawltool.core.rows import Table
from crawltool.stores.crawldb import CrawlDb
from tests.sim.store import DictStore

KEYS = st.integers(0, 30).map(lambda n: n.to_bytes(16, "big"))
ROWS = st.tuples(st.sampled_from([Table.KNOWN, Table.QUEUE]), KEYS, st.one_of(st.none(), st.binary(min_size=1, max_size=8)))


class StoreMachine(RuleBasedStateMachine):
    """Commits, reads and restarts in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "frontier.db"
        self.db = CrawlDb(self.path)
        self.twin = DictStore()

    @rule(save=st.lists(ROWS, max_size=12))
    def commit(self, save: list[tuple[Table, bytes, bytes | None]]) -> None:
        self.db.commit(list(save))
        self.twin.commit(list(save))

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.db = CrawlDb(self.path)

    @rule(keys=st.lists(KEYS, max_size=8, unique=True))
    def known(self, keys: list[bytes]) -> None:
        assert self.db.known(keys) == self.twin.known(keys)

    @rule(first=KEYS, last=KEYS, most=st.integers(1, 5))
    def scan(self, first: bytes, last: bytes, most: int) -> None:
        first, last = min(first, last), max(first, last)
        assert self.db.scan(Table.QUEUE, first, last, most) == self.twin.scan(Table.QUEUE, first, last, most)

    @invariant()
    def nothing_known_is_called_new(self) -> None:
        keys = list(self.twin.rows[Table.KNOWN])
        assert self.db.known(keys) == self.twin.known(keys)

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
