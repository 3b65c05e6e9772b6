"""Is this body in the archive already, and where?

payload digest -> (URL, date, record id, locator) of the record that holds the body, in one LMDB environment under
warc/ that all fetch processes of a machine share. Law 2 (body before outcome): an entry is committed after the WARC
bytes it names are on disk, and one write transaction spans decision, append and fsync, so that each body is stored
once however many processes there are. The same transaction keeps how far each open WARC file is known to be whole.
Called by stores/warc; cli/warc reads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import msgspec

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.records import Locator
from crawltool.stores import atomic


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The record that holds a body."""

    url: str
    date: str
    record_id: str
    file: str
    offset: int
    length: int

    @property
    def locator(self) -> Locator:
        """Give the place of the record."""
        return Locator(file=self.file, offset=self.offset, length=self.length)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode
_DIGEST_BYTES = 20
_TAIL = b"tail/"  # shorter or longer than a digest together with any file name of ours


class Writing:
    """The index inside one write transaction."""

    def __init__(self, transaction: lmdb.Transaction) -> None:
        self._transaction = transaction

    def find(self, digest: bytes) -> Entry | None:
        """Give the record that holds the body, puts of this transaction included."""
        value = self._transaction.get(digest)
        return None if value is None else _decode(value)

    def put(self, digest: bytes, entry: Entry) -> None:
        """Remember the record of a body; the first one stays."""
        assert len(digest) == _DIGEST_BYTES, digest
        self._transaction.put(digest, _encode(entry), overwrite=False)

    def whole_to(self, file: str) -> int | None:
        """Tell up to which byte an open WARC file was durable when its writer last committed; None when unknown."""
        value = self._transaction.get(_TAIL + file.encode())
        return None if value is None else int(value)

    def set_whole_to(self, file: str, offset: int | None) -> None:
        """Keep that byte; None forgets it (the file is closed)."""
        key = _TAIL + file.encode()
        if offset is None:
            self._transaction.delete(key)
        else:
            self._transaction.put(key, b"%d" % offset)


class DigestIndex:
    """The shared index. One object per process and directory; threads may share it."""

    def __init__(self, path: Path | str, map_bytes: int = limits.DIGESTS_MAP_BYTES) -> None:
        self._path = Path(path)
        self._lock = threading.RLock()
        with atomic.disk(self._path), _trouble(self._path):
            self._path.mkdir(parents=True, exist_ok=True)
            # metasync off: a power cut may cost the last commit, never the index. What is lost is found again by
            # repair, or costs a body stored twice.
            self._env = lmdb.open(
                str(self._path), map_size=map_bytes, metasync=False, readahead=False, max_readers=512, mode=0o644
            )

    def find(self, digest: bytes) -> Entry | None:
        """Give the record that holds the body, as far as it is committed."""
        with self._lock, _trouble(self._path), self._reading() as transaction:
            value = transaction.get(digest)
            return None if value is None else _decode(value)

    def count(self) -> int:
        """Tell how many keys there are (bodies, and open files)."""
        with self._lock, _trouble(self._path), self._reading() as transaction:
            return int(transaction.stat()["entries"])

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Hold the machine's one write transaction; commits at the end, aborts on an exception.

        Waits for other processes. Raises DiskTrouble when the commit fails: then nothing was kept.
        """
        with self._lock:
            with _trouble(self._path):
                transaction = self._begin()
            try:
                with _trouble(self._path):
                    yield Writing(transaction)
                    transaction.commit()
            except BaseException:
                transaction.abort()
                raise

    def close(self) -> None:
        """Flush and let go."""
        with self._lock, _trouble(self._path):
            self._env.sync(True)
            self._env.close()

    def _begin(self) -> lmdb.Transaction:
        """Start to write with room for one group: the map is doubled before it is full, never in the middle."""
        while True:
            try:
                transaction = self._env.begin(write=True)
            except lmdb.MapResizedError:
                self._env.set_mapsize(0)  # another process doubled it
                continue
            info = self._env.info()
            if info["map_size"] - (info["last_pgno"] + 1) * self._env.stat()["psize"] > limits.DIGESTS_ROOM_BYTES:
                return transaction
            transaction.abort()
            self._env.set_mapsize(info["map_size"] * 2)

    @contextmanager
    def _reading(self) -> Iterator[lmdb.Transaction]:
        """Read in a snapshot of its own; adopts the map size of another process."""
        try:
            transaction = self._env.begin()
        except lmdb.MapResizedError:
            self._env.set_mapsize(0)
            transaction = self._env.begin()
        with transaction:
            yield transaction


@contextmanager
def _trouble(path: Path) -> Iterator[None]:
    """Turn LMDB's errors into ours."""
    try:
        yield
    except (lmdb.CorruptedError, lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.PageNotFoundError) as error:
        remedy = f"remove {path}: bodies stored so far may then be stored once more, nothing else is lost"
        raise DiskTrouble(f"{path} is damaged: {error}", remedy=remedy) from error
    except lmdb.Error as error:
        raise DiskTrouble(f"{path}: {error}") from error
