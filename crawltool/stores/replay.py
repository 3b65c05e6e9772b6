"""What did an archive record of a URL, and where does it lie?

The index behind `fetch --from-warc`: every capture of the files, by URL, by payload digest and by host, sorted into one unlinked
file of which only every few kilobytes' first key is kept in memory. Locators name files inside the crawl's own warc/, so each
file is linked there. Revisits are resolved here: a body that lies in no file is no capture. Called by stages/fetchreplay.
"""

from __future__ import annotations

import hashlib
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawltool import limits
from crawltool.core import urls
from crawltool.core.warcformat import RecordHead
from crawltool.records import Locator
from crawltool.stores import atomic, warcread
from crawltool.stores.sorting import Sorter
from crawltool.stores.warcread import StoredRecord
from crawltool.stores.warcwalk import Piece, walk

_BLOCK_BYTES = 16 * limits.KIB  # of the sorted file between two keys that are kept
_KEY_CHARS = 24
_URL, _DIGEST, _HOST = b"u", b"d", b"h"
_NAMES_MAX = 1000


class Row(msgspec.Struct, array_like=True):
    """One capture. date: WARC-Date."""

    file: str
    offset: int
    length: int
    type: str
    url: str
    date: str
    ip: str = ""
    digest: str = ""
    refers_url: str = ""
    refers_date: str = ""
    confirms: bool = False  # a 304: what it refers to is the answer

    @property
    def locator(self) -> Locator:
        """Give the place of the record."""
        return Locator(file=self.file, offset=self.offset, length=self.length)


class Capture(NamedTuple):
    """What a URL is answered with: the record that has the header, and the one that has the body."""

    row: Row
    body: Row


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Row).decode


class ReplayIndex:
    """Built once from the files; then found by halving. `unusable` counts records that no offset leads to, by file."""

    def __init__(self, files: Sequence[Path], warc: Path) -> None:
        """Read the files and link them into warc. Raises OSError, DiskTrouble, CannotHold."""
        self.captures = 0
        self.unusable: Counter[str] = Counter()
        self._firsts: list[bytes] = []
        self._offsets: list[int] = []
        self._file = tempfile.TemporaryFile(prefix="crawltool-")  # noqa: SIM115 -- close() closes it
        with Sorter() as sorter:
            for path in files:
                for row in self._rows(path, linked(path, warc)):
                    for line in _lines(row):
                        sorter.add(line)
            self._write(_last_of_hosts(sorter.lines()))

    def find(self, url: str) -> Capture | None:
        """Give the newest capture of a URL (as urls.Url.href has it) whose body is there."""
        for row in reversed(list(self._under(_URL, url))):
            if row.url != url:
                continue
            body = self._body_of(row)
            if body is not None:
                return Capture(body if row.confirms else row, body)
        return None

    def address_of(self, host: str) -> str | None:
        """Give the address that a host had last; '' when it is not known, None when there is no capture of the host."""
        rows = list(self._under(_HOST, host))
        return rows[-1].ip if rows else None

    def read(self, warc: Path, capture: Capture, limit: int) -> tuple[StoredRecord, StoredRecord]:
        """Read the record with the header and the one with the body, at most `limit` bytes of each. Raises Unreadable."""
        answer = warcread.read(warc, capture.row.locator, limit)
        return answer, answer if capture.body is capture.row else warcread.read(warc, capture.body.locator, limit)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _rows(self, path: Path, name: str) -> Iterator[Row]:
        for piece in walk(path):
            head = piece.head
            if head is None or head.type not in ("response", "revisit", "resource"):
                continue
            url = urls.parse(head.url)
            if url is None:
                continue
            piece.close()
            if not piece.is_whole:
                continue
            if piece.inner or not 0 < piece.length <= limits.WARC_RECORD_BYTES_MAX:
                self.unusable[str(path)] += 1
                continue
            self.captures += 1
            yield _row(piece, head, url.href, name)

    def _body_of(self, row: Row) -> Row | None:
        """Give the record that holds the body: by the URL and date that a revisit names, else by its digest."""
        if row.type != "revisit":
            return row
        named = urls.parse(row.refers_url) if row.refers_url else None
        if named is not None:
            for other in self._under(_URL, named.href):
                if other.url == named.href and other.date == row.refers_date and other.type != "revisit":
                    return other
        same = self._under(_DIGEST, row.digest) if row.digest else ()
        return next((other for other in same if other.digest == row.digest), None)

    def _write(self, lines: Iterator[bytes]) -> None:
        """Write the sorted lines and keep the first of each block."""
        size, block_at = 0, -_BLOCK_BYTES
        with atomic.disk(tempfile.gettempdir()):
            for line in lines:
                if size - block_at >= _BLOCK_BYTES:
                    self._firsts.append(line[: _KEY_CHARS + 2])
                    self._offsets.append(size)
                    block_at = size
                self._file.write(line)
                size += len(line)
            self._file.flush()

    def _under(self, kind: bytes, text: str) -> Iterator[Row]:
        """Give the rows of a key, oldest first."""
        prefix = kind + b" " + _key(text)
        at = max(0, bisect_left(self._firsts, prefix) - 1)
        if not self._offsets:
            return
        self._file.seek(self._offsets[at])
        for line in self._file:
            if line.startswith(prefix):
                yield _decode(line.split(b" ", 3)[3])
            elif line[: len(prefix)] > prefix:
                return


def _last_of_hosts(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Leave one line for each host, the newest: a host may have millions of captures."""
    held = b""
    for line in lines:
        if held and line[: _KEY_CHARS + 2] != held[: _KEY_CHARS + 2]:
            yield held
        held = line if line.startswith(_HOST) else b""
        if not held:
            yield line
    if held:
        yield held


def _row(piece: Piece, head: RecordHead, href: str, name: str) -> Row:
    profile = head.get("warc-profile")
    return Row(
        file=name,
        offset=piece.offset,
        length=piece.length,
        type=head.type,
        url=href,
        date=head.get("warc-date"),
        ip=head.get("warc-ip-address"),
        digest=head.get("warc-payload-digest"),
        refers_url=head.get("warc-refers-to-target-uri").strip("<>"),
        refers_date=head.get("warc-refers-to-date"),
        confirms="server-not-modified" in profile,
    )


def _lines(row: Row) -> Iterator[bytes]:
    """Give the lines under which a capture is found."""
    packed = _encode(row)
    host = urls.split(row.url)
    yield _line(_URL, row.url, row.date, packed)
    if row.digest and row.type != "revisit":
        yield _line(_DIGEST, row.digest, row.date, packed)
    if host is not None:
        yield _line(_HOST, host.host.strip("[]"), row.date, packed)


def _line(kind: bytes, text: str, date: str, packed: bytes) -> bytes:
    return b"%s %s %s %s\n" % (kind, _key(text), date.encode().replace(b" ", b"") or b"0", packed)


def _key(text: str) -> bytes:
    raw = hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return raw[:_KEY_CHARS].encode()


def linked(path: Path, warc: Path) -> str:
    """Make a file reachable inside warc/ and give its name there; a link that is there already is used again.

    A symbolic link: archives are large, and may lie on another file system. Raises DiskTrouble, CannotHold.
    """
    target = path.resolve()
    with atomic.disk(warc):
        warc.mkdir(parents=True, exist_ok=True)
        plain = target.name.removesuffix(warcread.OPEN)  # which locators leave out, and a later repair would act on
        if target.parent == warc.resolve():
            return plain
        for number in range(1, _NAMES_MAX):
            name = plain if number == 1 else f"{number}-{plain}"
            link = warc / name
            with suppress(FileExistsError):
                link.symlink_to(target)
                return name
            with suppress(OSError):
                if link.samefile(target):
                    return name
    raise FileExistsError(f"{warc}: no free name for {path}")
