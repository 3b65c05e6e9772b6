"""Has this body been seen under another URL, and which page lies near this SimHash?

One LMDB environment (dedup.db/), written by one dedup process. It holds nothing that pages/ does not: it is the journal's
index, saved every few thousand rows together with the place in the journal it stands for. After a crash the journal's tail
is applied again; a damaged or outdated index is dropped and built anew. One write transaction stays open between saves, so
that a batch costs no fsync here; memory is flat: what lives in RAM is the pages touched since the last save.
Law 4: dedup publishes, then saves here. Called by stages/dedup.

  digests   BLAKE2b-128 of the payload digest -> row number
  rows      row number -> (url, of, distance)
  aliases   row number, BLAKE2b-128 of the URL -> nothing
  buckets   block key (core/pages/neardup) -> (row number, SimHash), sorted duplicates
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import lmdb
import msgspec

from crawltool import limits
from crawltool.core.pages import neardup
from crawltool.errors import DiskTrouble
from crawltool.stores import atomic
from crawltool.stores.pages import START, Place

_VERSION = 1
_STATE = b"state"


class Original(msgspec.Struct, frozen=True, array_like=True):
    """A page with a row of its own: its URL and, when it is a near duplicate, of which page and how far."""

    url: str
    of: str | None = None
    distance: int = 0


class Nearness(msgspec.Struct, frozen=True):
    """What lies near a SimHash: the nearest page of another URL; whether the very same SimHash is filed already."""

    of: str | None = None
    distance: int = 0
    is_filed: bool = False


class _State(msgspec.Struct, array_like=True):
    version: int = _VERSION
    rows: int = 0
    aliases: int = 0
    file: int = 0
    offset: int = 0


_encode = msgspec.msgpack.Encoder().encode
_DAMAGE = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.PageNotFoundError)
_decode_original = msgspec.msgpack.Decoder(Original).decode
_decode_state = msgspec.msgpack.Decoder(_State).decode


class Signatures:
    """The index. Adds are seen at once by later finds; they are durable after save()."""

    def __init__(self, path: Path, map_bytes: int = limits.SIGNATURES_MAP_BYTES) -> None:
        self._path, self._map_bytes = path, map_bytes
        try:
            self._open()
        except (*_DAMAGE, ValueError):
            for file in ("data.mdb", "lock.mdb"):  # an index only: pages/ has it all
                (path / file).unlink(missing_ok=True)
            self._open()

    @property
    def place(self) -> Place:
        """Tell up to where the journal was in here at the last save."""
        return Place(self._state.file, self._state.offset)

    @property
    def rows(self) -> int:
        """Tell how many pages there are."""
        return self._state.rows

    @property
    def aliases(self) -> int:
        """Tell how many aliases there are."""
        return self._state.aliases

    @property
    def is_due(self) -> bool:
        """Tell whether enough was added for a save to be worth its fsync."""
        return self._unsaved >= limits.SIGNATURES_UNSAVED_MAX

    def find(self, digest: str) -> tuple[int, Original] | None:
        """Give row number and page of a payload digest."""
        with _trouble(self._path):
            row = self._transaction.get(_key(digest), db=self._digests)
            return None if row is None else (int.from_bytes(row, "big"), self._original(row))

    def has_alias(self, row: int, url: str) -> bool:
        """Tell whether a URL is known to repeat a page."""
        with _trouble(self._path):
            return self._transaction.get(row.to_bytes(8, "big") + _key(url), db=self._aliases) is not None

    def near(self, simhash: int, url: str) -> Nearness:
        """Give the nearest page of another URL; earlier versions of the same URL do not count."""
        with _trouble(self._path), self._transaction.cursor(db=self._buckets) as cursor:
            filed = cursor.getmulti(neardup.keys(simhash), dupdata=True, dupfixed_bytes=neardup.ENTRY_BYTES, keyfixed=True)
        hits = neardup.near(simhash, filed)
        is_filed = bool(hits) and hits[0][0] == 0
        for distance, row in hits[: limits.SIGNATURES_HITS_MAX]:
            other = self._original(row.to_bytes(8, "big"))
            if other.url != url:
                return Nearness(other.url, distance, is_filed)
        return Nearness(is_filed=is_filed)

    def add_page(self, digest: str, original: Original, simhash: int | None) -> None:
        """Remember a new page; simhash is None when the page needs no filing (too few words, or that value is filed)."""
        number, transaction = self._state.rows, self._transaction
        row = number.to_bytes(8, "big")
        with _trouble(self._path):
            transaction.put(row, _encode(original), db=self._rows, append=True)
            transaction.put(_key(digest), row, db=self._digests)
            if simhash is not None:
                self._file(number, simhash)
        self._state.rows += 1
        self._unsaved += 1

    def add_alias(self, row: int, url: str) -> None:
        """Remember that a URL repeats a page."""
        with _trouble(self._path):
            self._transaction.put(row.to_bytes(8, "big") + _key(url), b"", db=self._aliases)
        self._state.aliases += 1
        self._unsaved += 1

    def save(self, place: Place) -> None:
        """Make all of it durable, as the index of the journal up to a place. Raises DiskTrouble."""
        self._state.file, self._state.offset = place
        with _trouble(self._path):
            self._transaction.put(_STATE, _encode(self._state), db=self._meta)
            self._transaction.commit()
            self._begin()

    def clear(self) -> None:
        """Forget everything: the journal is not the one this index was made from."""
        with _trouble(self._path):
            for database in (self._digests, self._rows, self._aliases, self._buckets, self._meta):
                self._transaction.drop(database, delete=False)
        self._state = _State()
        self.save(START)

    def close(self) -> None:
        """Let go; what was added since the last save is forgotten."""
        self._transaction.abort()
        self._environment.close()

    def _open(self) -> None:
        with atomic.disk(self._path), _trouble(self._path, opening=True):
            self._path.mkdir(exist_ok=True)  # LMDB would make it with the mode of the files: nobody but root could enter
            self._environment = lmdb.open(str(self._path), map_size=self._map_bytes, max_dbs=5, readahead=False, mode=0o644)
            open_db = self._environment.open_db
            names = (b"meta", b"digests", b"rows", b"aliases")
            self._meta, self._digests, self._rows, self._aliases = (open_db(name) for name in names)
            self._buckets = open_db(b"buckets", dupsort=True, dupfixed=True)
            self._begin()
            stored = self._transaction.get(_STATE, db=self._meta)
        self._state = _State() if stored is None else _decode_state(stored)
        if self._state.version != _VERSION:
            self.clear()

    def _begin(self) -> None:
        """Start the next transaction; the map is doubled before it is full, never in the middle."""
        info = self._environment.info()
        free = info["map_size"] - (info["last_pgno"] + 1) * self._environment.stat()["psize"]
        if free < limits.SIGNATURES_ROOM_BYTES:
            self._environment.set_mapsize(info["map_size"] * 2)
        self._transaction = self._environment.begin(write=True)
        self._unsaved = 0

    def _original(self, row: bytes) -> Original:
        value = self._transaction.get(row, db=self._rows)
        assert value is not None, row
        return _decode_original(value)

    def _file(self, number: int, simhash: int) -> None:
        entry = neardup.entry(number, simhash)
        with self._transaction.cursor(db=self._buckets) as cursor:
            for key in neardup.keys(simhash):
                # A full bucket keeps its oldest: comparing must stay cheap whatever template a host repeats.
                if not cursor.set_key(key) or cursor.count() < limits.SIGNATURES_BUCKET_MAX:
                    cursor.put(key, entry)


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


@contextmanager
def _trouble(path: Path, *, opening: bool = False) -> Iterator[None]:
    """Turn LMDB's errors into DiskTrouble; while opening, damage passes: there the index is built anew."""
    try:
        yield
    except _DAMAGE as error:
        if opening:
            raise
        raise DiskTrouble(f"{path} is damaged: {error}", remedy=f"remove {path}: it is built anew from pages/") from error
    except lmdb.Error as error:
        raise DiskTrouble(f"{path}: {error}") from error
