"""The crawl database: what the frontier knows, kept in RocksDB so that it survives kill -9 at any byte.

One write batch per turn, synced before targets leave (law 1). It answers core/frontier/workbench.Port: reads see what was
committed; a sieve in front says which keys are certainly new (law 7). stages/frontier owns it; `CrawlDb.look` opens it for
questions only, also while a crawl runs. The door of rocksdict.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rocksdict

from crawltool.core.frontier.rows import Save, Table, each
from crawltool.errors import BadPolicy, CannotHold, DiskTrouble, NoInput
from crawltool.stores.seen import Seen, Snapshot

VERSION = b"3"  # of the rows; another one is not opened
# New rows go into a small table in memory, where the place of a random key is found in half the time of one of 32 MiB; four
# such tables are written as one file, so that compaction has no more to do.
MEMTABLE_BYTES = 8 * 1024 * 1024
MEMTABLES_MERGED = 4
WAL_BYTES = 128 * 1024 * 1024
LEVEL_BYTES = 256 * 1024 * 1024
CACHE_BYTES = 128 * 1024 * 1024
BLOCK_BYTES = 16 * 1024  # of tables that are read in runs of keys
BY_HASH = frozenset((Table.KNOWN, Table.IMPORTANCE))
BY_NAME = frozenset((Table.HOSTS, Table.ROBOTS, Table.BUDGETS))
TOLD_NEW_MAX = 1_000_000
# glibc's mallopt(3): a heap for each thread of RocksDB, none of which shrinks, costs more than waiting for one another.
HEAPS = {-8: 2, -3: 4 * 1024 * 1024, -1: 16 * 1024 * 1024}  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
PATIENCE = 5  # tries to open for looking while the owner changes files


def _options(cache: Any, table: Table | None) -> Any:
    """Give the options of one table; those that are asked for single random keys have a filter that saves most reads."""
    options = rocksdict.Options(raw_mode=True)
    options.set_write_buffer_size(MEMTABLE_BYTES)
    options.set_min_write_buffer_number_to_merge(MEMTABLES_MERGED)
    options.set_max_write_buffer_number(2 * MEMTABLES_MERGED)
    options.set_level_zero_file_num_compaction_trigger(8)
    options.set_level_zero_slowdown_writes_trigger(24)
    options.set_level_zero_stop_writes_trigger(40)
    options.set_max_bytes_for_level_base(LEVEL_BYTES)
    options.set_target_file_size_base(LEVEL_BYTES // 8)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_cache_index_and_filter_blocks(True)  # else their size grows with the crawl, outside the cache
    if table in BY_HASH:  # what is random does not get smaller, and unpacking it doubles the time of a read
        options.set_compression_type(rocksdict.DBCompressionType.none())
    else:
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
    if table in BY_HASH or table in BY_NAME:
        blocks.set_bloom_filter(10, False)
        # What is asked for is nearly always there: of the largest level, filters would only take the cache from the rows.
        options.set_optimize_filters_for_hits(table is Table.KNOWN)
    else:
        blocks.set_block_size(BLOCK_BYTES)
    options.set_block_based_table_factory(blocks)
    return options


class CrawlDb:
    """The tables of core/frontier/rows.Table in one RocksDB."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if read_only and not (path / "CURRENT").exists():
            raise NoInput(f"no crawl database at {path}")
        _share_heaps()
        cache = rocksdict.Cache(CACHE_BYTES)
        families = {table.name.lower(): _options(cache, table) for table in Table}
        options = _options(cache, None)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(4)
        options.set_max_total_wal_size(WAL_BYTES)
        access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
        self.path = path
        try:
            self._db = rocksdict.Rdict(str(path), options, families, access)
        except Exception as error:  # rocksdict raises plain Exception
            raise _named(error, path) from error
        self._tables = {table: self._db.get_column_family(table.name.lower()) for table in Table}
        self._handles = [self._db.get_column_family_handle(table.name.lower()) for table in Table]
        self._sync = rocksdict.WriteOptions()
        self._sync.sync = True
        self._writing: threading.Thread | None = None
        self._snapshot: Snapshot | None = None
        self._seen: Seen | None = None
        self._told_new: dict[bytes, bool] = {}  # keys that known() called new since the last commit; whether the sieve did
        self._check_version(read_only)
        if not read_only:
            self._seen = self._load_seen()

    @classmethod
    def look(cls, path: Path) -> CrawlDb:
        """Open for questions only, also while the frontier writes."""
        for _ in range(PATIENCE - 1):
            try:
                return cls(path, read_only=True)
            except DiskTrouble:  # a file vanished between listing and opening
                continue
        return cls(path, read_only=True)

    def _check_version(self, read_only: bool) -> None:
        version = self.get(Table.META, b"version")
        if version is None and not read_only:
            self.commit([(Table.META, b"version", VERSION)])
        elif version not in (None, VERSION):
            raise BadPolicy(
                f"{self.path} was written by another version of crawltool", remedy="use that version, or a new directory"
            )

    # --- core/frontier/workbench.Port ---

    def known(self, keys: list[bytes]) -> list[bytes | None]:
        """Give the KNOWN rows of many keys; those that the sieve calls new cost no read."""
        if self._seen is None:
            return self.many(Table.KNOWN, keys)
        maybe, told_new = self._seen.maybe, self._told_new
        if len(told_new) > TOLD_NEW_MAX:  # asked for and never saved: lines about URLs that are not ours
            told_new.clear()
        asked = []
        for key in keys:
            if maybe(key):
                asked.append(key)
            else:
                told_new[key] = True
        if not asked:
            return [None] * len(keys)
        found = dict(zip(asked, self.many(Table.KNOWN, asked), strict=True))
        told_new.update((key, False) for key, row in found.items() if row is None)
        return [found.get(key) for key in keys]

    def many(self, table: Table, keys: list[bytes]) -> list[bytes | None]:
        """Give many rows."""
        found: list[bytes | None] = self._tables[table].get(list[Any](keys)) or []
        return found

    def get(self, table: Table, key: bytes) -> bytes | None:
        """Give one row."""
        found: bytes | None = self._tables[table].get(key)
        return found

    def scan(self, table: Table, start: bytes, end: bytes, at_most: int) -> list[tuple[bytes, bytes]]:
        """Give rows with start <= key < end, in order."""
        bounds = rocksdict.ReadOptions()
        bounds.set_iterate_lower_bound(start)
        bounds.set_iterate_upper_bound(end)
        rows_read = self._tables[table].iter(bounds)
        rows_read.seek(start)
        found: list[tuple[bytes, bytes]] = []
        while len(found) < at_most and rows_read.valid():
            found.append((rows_read.key(), rows_read.value()))
            rows_read.next()
        return found

    # --- writing ---

    def commit(self, save: Save) -> None:
        """Write one batch and sync it. Raises DiskTrouble; then nothing of it counts."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        handles = self._handles
        put, seen, told_new, new = batch.put, self._seen, self._told_new, []
        for table, key, value in save:
            if value is None:
                batch.delete(key, handles[table])
                continue
            put(key, value, handles[table])
            if table is Table.KNOWN and seen is not None:
                certain = told_new.pop(key, None)
                if certain is None and not seen.maybe(key):
                    certain = True
                if certain:
                    seen.add_new(key)
                if certain is not None:  # also one that the sieve took for known: one that is built again may not
                    new.append(key)
        if new and seen is not None:
            put(since_key(seen.generation, new[0]), b"".join(new), handles[Table.SINCE])
        try:
            self._db.write(batch, self._sync)
        except Exception as error:  # rocksdict raises plain Exception
            raise _named(error, self.path) from error
        told_new.clear()

    # --- the sieve ---

    def _load_seen(self) -> Seen:
        """Load the sieve's last snapshot and add what came after it: a stale one alone would call known URLs new."""
        seen = Seen.load(self.path.with_name("seen"))
        trimmed = int(self.get(Table.META, b"trimmed") or b"-1")
        if trimmed >= seen.generation:  # the snapshot is lost
            seen.add(key for key, _ in each(self.scan, Table.KNOWN))
        for _, keys in each(self.scan, Table.SINCE):
            seen.replay([keys[at : at + 16] for at in range(0, len(keys), 16)])
        return seen

    def keep_sieve(self) -> None:
        """Write a snapshot of the sieve in a thread when one is due, and forget the rows that it makes needless.

        Called between turns.
        """
        if self._writing is not None and not self._writing.is_alive():
            assert self._snapshot is not None
            if self._snapshot.is_written:  # else the thread met a full disk: the rows stay
                self._trim(self._snapshot.generation)
            self._writing = self._snapshot = None
        if self._seen is not None and self._seen.is_due and self._writing is None:
            self._snapshot = self._seen.freeze()
            self._writing = threading.Thread(target=self._snapshot.write, daemon=True)
            self._writing.start()

    def _trim(self, generation: int) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        batch.delete_range(since_key(0, b""), since_key(generation + 1, b""), self._handles[Table.SINCE])
        batch.put(b"trimmed", b"%d" % generation, self._handles[Table.META])
        self._db.write(batch, self._sync)

    def forget_outbox(self, through: int) -> None:
        """Delete the crawl log lines up to a seq: they are on disk in outcomes/."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        batch.delete_range((0).to_bytes(8, "big"), (through + 1).to_bytes(8, "big"), self._handles[Table.OUTBOX])
        self._db.write(batch)

    def close(self) -> None:
        """Close the database."""
        self._tables.clear()
        self._handles.clear()
        self._db.close()

    # --- questions ---

    def outbox(self) -> Iterator[tuple[int, bytes]]:
        """Give the crawl log lines that may not be in outcomes/ yet, in order."""
        for key, value in self.scan(Table.OUTBOX, b"", b"\xff" * 9, 1 << 62):
            yield int.from_bytes(key, "big"), value


def since_key(generation: int, key: bytes) -> bytes:
    """Give the SINCE key of a batch by its first URL key."""
    return generation.to_bytes(4, "big") + key


def _share_heaps() -> None:
    """Let all threads of this process share two heaps; before the first of them starts. Another C library has its own way."""
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in HEAPS.items():
            mallopt(parameter, value)


def _named(error: Exception, path: Path) -> Exception:
    """Name what RocksDB says: held, no space, or damaged."""
    text = str(error)
    if "lock" in text.lower() and "IO error" in text:
        return CannotHold(f"{path} is open in another process")
    if "olumn famil" in text:  # one too many or too few
        return BadPolicy(f"{path} was written by another version of crawltool", remedy="use that version, or a new directory")
    return DiskTrouble(f"{path}: {text[:300]}")
