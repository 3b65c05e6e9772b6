"""The crawl database answers as sorted dicts do, whatever happens to its process: closed, killed, torn, its sieve lost."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from crawltool.core.frontier.rows import Save, Table
from crawltool.stores import crawldb, seen
from crawltool.stores.crawldb import CrawlDb
from crawltool.stores.seen import Seen
from tests.sim.store import DictStore


def key_of(n: int) -> bytes:
    """Give a key like that of a URL: the sieve takes its octets for random ones."""
    return hashlib.md5(b"%d" % n, usedforsecurity=False).digest()


KEYS = st.integers(0, 60).map(key_of)
TABLES = [Table.KNOWN, Table.QUEUE, Table.OUTBOX, Table.HOSTS]
ROWS = st.tuples(st.sampled_from(TABLES), KEYS, st.one_of(st.none(), st.binary(min_size=1, max_size=8)))
SAVES = st.lists(ROWS, max_size=12)
END = b"\xff" * 64


class SmallSeen(Seen):
    """A sieve whose layers fill and whose snapshots are due after a few keys."""

    @classmethod
    def load(cls, path: Path, **sizes: int) -> Seen:
        """Read it, with small sizes."""
        return Seen.load(path, **({"first_keys": 8, "growth": 2, "snapshot_keys": 5} | sizes))


class StoreMachine(RuleBasedStateMachine):
    """Commits, reads, restarts and crashes in any order, beside a dict that none of it touches."""

    @initialize()
    def begin(self) -> None:
        self.root = tempfile.TemporaryDirectory()
        self.lives = 0
        self.path = Path(self.root.name) / "0" / "frontier.db"
        self.path.parent.mkdir()
        self.db = CrawlDb(self.path)
        self.twin = DictStore()

    # --- writing ---

    @rule(save=SAVES)
    def commit(self, save: Save) -> None:
        self.db.commit(list(save))
        self.twin.commit(list(save))

    @rule(first=st.integers(0, 40), new=st.integers(1, 20))
    def learn_many(self, first: int, new: int) -> None:
        """New keys, so that layers fill and snapshots are due."""
        self.commit([(Table.KNOWN, key_of(n), b"q%d" % n) for n in range(first, first + new)])

    @rule(first=st.integers(0, 40), new=st.integers(0, 20))
    def keep_sieve(self, first: int, new: int) -> None:
        """What is learned while the snapshot is written is not in it."""
        self.db.keep_sieve()
        self.learn_many(first, new)
        self._join()
        self.db.keep_sieve()

    @rule(through=st.integers(0, 60))
    def forget_outbox(self, through: int) -> None:
        save: Save = [(Table.OUTBOX, n.to_bytes(8, "big"), b"%d" % n) for n in range(1, through + 1)]
        self.commit(save)
        self.db.forget_outbox(through // 2)
        bound = (through // 2 + 1).to_bytes(8, "big")
        self.twin.commit([(Table.OUTBOX, key, None) for key in list(self.twin.rows[Table.OUTBOX]) if key < bound])

    # --- what may happen to a process ---

    @rule()
    def reopen(self) -> None:
        self._join()
        self.db.close()
        self.db = CrawlDb(self.path)

    @rule()
    def kill(self) -> None:
        """What is on disk at this instant is all that the next process has."""
        self._live_on(lambda path: None)

    @rule(save=SAVES, cut=st.integers(1, 400))
    def kill_while_it_writes(self, save: Save, cut: int) -> None:
        """A batch whose end never reached the disk counts as not written, whole."""
        before = _journal_sizes(self.path)
        self.db.commit(list(save))
        after = _journal_sizes(self.path)
        [(name, size)] = [pair for pair in after.items() if pair[1] != before.get(pair[0], 0)] or [("", 0)]
        written = size - before.get(name, 0)
        if not written:
            self.twin.commit(list(save))
            return

        def tear(path: Path) -> None:
            with (path / name).open("r+b") as file:
                file.truncate(size - min(cut, written))

        self._live_on(tear)

    @rule(what=st.sampled_from(["all", "list", "layer", "torn layer"]))
    def lose_the_sieve(self, what: str) -> None:
        """A sieve that is gone or damaged costs a longer start, never a known URL."""
        self._join()
        self.db.close()
        folder = self.path.with_name("seen")
        files = sorted(folder.glob("*.bloom" if "layer" in what else "*")) if folder.exists() else []
        for file in files if what == "all" else [file for file in files if (file.suffix == ".bloom") is ("layer" in what)][:1]:
            if what == "torn layer":
                file.write_bytes(file.read_bytes()[:-1])
            else:
                file.unlink()
        self.db = CrawlDb(self.path)

    # --- reading ---

    @rule(keys=st.lists(KEYS, max_size=8, unique=True))
    def known(self, keys: list[bytes]) -> None:
        assert self.db.known(keys) == self.twin.known(keys)

    @rule(table=st.sampled_from(TABLES), keys=st.lists(KEYS, max_size=8, unique=True))
    def get(self, table: Table, keys: list[bytes]) -> None:
        assert [self.db.get(table, key) for key in keys] == self.twin.many(table, keys) == self.db.many(table, keys)

    @rule(table=st.sampled_from(TABLES), first=KEYS, last=KEYS, most=st.integers(1, 5))
    def scan(self, table: Table, first: bytes, last: bytes, most: int) -> None:
        first, last = min(first, last), max(first, last)
        assert self.db.scan(table, first, last, most) == self.twin.scan(table, first, last, most)

    @rule()
    def look(self) -> None:
        """Another process looks while this one has it open."""
        other = CrawlDb.look(self.path)
        try:
            self._compare(other)
        finally:
            other.close()

    @invariant()
    def nothing_known_is_called_new(self) -> None:
        if hasattr(self, "db"):
            keys = list(self.twin.rows[Table.KNOWN])
            assert self.db.known(keys) == self.twin.known(keys)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self._join()
            self._compare(self.db)
            self.db.close()
            self.root.cleanup()

    def _compare(self, db: CrawlDb) -> None:
        for table in TABLES:
            assert db.scan(table, b"", END, 1000) == self.twin.scan(table, b"", END, 1000), table

    def _live_on(self, harm: Callable[[Path], None]) -> None:
        """Go on with a copy of the files as they are while the database is open."""
        self._join()
        self.lives += 1
        folder = self.path.parent.parent / str(self.lives)
        _copy_of_one_instant(self.path.parent, folder)
        self.db.close()
        shutil.rmtree(self.path.parent)
        self.path = folder / "frontier.db"
        harm(self.path)
        self.db = CrawlDb(self.path)

    def _join(self) -> None:
        if self.db._writing is not None:
            self.db._writing.join()


def _copy_of_one_instant(folder: Path, to: Path) -> None:
    """Copy files while RocksDB's own threads may still tidy up: again until nothing changed meanwhile."""
    for _ in range(100):
        before = _sizes(folder)
        with contextlib.suppress(OSError):  # shutil.Error is one: a file went
            shutil.copytree(folder, to)
            if before == _sizes(folder) == _sizes(to):
                return
        shutil.rmtree(to, ignore_errors=True)
    raise AssertionError(f"{folder} never came to rest")


def _sizes(folder: Path) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def _journal_sizes(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in path.glob("*.log")}


def test_the_store_is_a_dict_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawldb, "Seen", SmallSeen)
    monkeypatch.setattr(seen, "_RATE", 1e-9)  # this machine puts rows without asking whether they are known, as no caller does
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        StoreMachine,
        settings=settings(max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]),
    )
