"""Which records does a capture become, and when are they safe?

The writer of the archive. Law 2, body before outcome: store() returns after one fsync for the whole group, and what it
returns may be named by outcomes. A complete, non-empty 200 page body that is already stored becomes a revisit; the
decision, the bytes and the index entry are one step for all fetch processes of the machine. Called by stages/fetch, in
a thread.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawltool import limits
from crawltool.core import warcrecords
from crawltool.core.warcrecords import Facts, Original
from crawltool.records import Kind, Locator, Prior
from crawltool.stores import atomic
from crawltool.stores.digests import DigestIndex, Entry, Writing
from crawltool.stores.warcfile import Repaired, WarcFile, pack, repair

_GROUP_BODY_BYTES = 64 * limits.MIB
_GROUP_CAPTURES = 1000


class Body(Protocol):
    """A body that may lie in a file: read piece by piece, twice, and never closed here. net/body's Body is one."""

    size: int

    def chunks(self) -> Iterator[bytes]:
        """Give the bytes from the start."""
        ...


@dataclass(frozen=True, slots=True)
class Capture:
    """One exchange to be archived. It has an answer: the header block is never empty.

    fetched_at: start of the exchange, epoch seconds. body: the entity body without transfer coding. truncated: length,
    time, disconnect or unspecified when it is not whole. prior: for a 304, the copy that it confirms.
    """

    url: str
    fetched_at: float
    ip: str | None
    request_bytes: bytes
    response_header_bytes: bytes
    body: bytes | Body
    status: int
    kind: Kind = "page"
    truncated: str | None = None
    prior: Prior | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a capture lies. digest is that of the body (of the prior one for a 304), None when there is none."""

    warc: Locator
    body_warc: Locator | None
    digest: str | None
    record_id: str
    revisit: bool


@dataclass(slots=True)
class _Draft:
    """A capture on its way: hashed and, where that needs no lock, already packed."""

    capture: Capture
    facts: Facts
    record_id: str
    head: bytes  # HTTP header as stored
    body: bytes | Body
    body_bytes: int
    block: bytes
    payload: bytes
    member: bytes | None = None  # None: to be packed while it is written
    original: Entry | None = None  # what `member` refers to

    @property
    def may_repeat(self) -> bool:
        """Tell whether the body counts for deduplication: a complete, non-empty 200 page."""
        capture = self.capture
        return capture.kind == "page" and capture.status == 200 and capture.truncated is None and self.body_bytes > 0


class WarcWriter:
    """Appends captures to files under a directory. One per process; threads take turns."""

    def __init__(
        self, directory: Path | str, digests: DigestIndex, info: Mapping[str, str], rotate_bytes: int = limits.WARC_FILE_BYTES
    ) -> None:
        """Repair what dead writers left; `repaired` tells what. info becomes the warcinfo record. Raises DiskTrouble."""
        self._directory = Path(directory)
        with atomic.disk(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
        self._digests, self._info, self._rotate_bytes = digests, dict(info), rotate_bytes
        self._lock = threading.Lock()
        self._file: WarcFile | None = None
        self._warcinfo_id = ""
        self._serial = 0
        self.repaired: list[Repaired] = repair(self._directory, digests)

    def store(self, captures: Sequence[Capture]) -> list[Stored]:
        """Archive captures; durable on return, in the order given. Blocks.

        Raises DiskTrouble: the file is cut back to the end of a whole record, nothing that may be named is lost, and
        the same captures may be given again later.
        """
        with self._lock:
            return [stored for group in _groups(captures) for stored in self._store_group(group)]

    def close(self) -> None:
        """Give the current file its final name. The next store() would begin a new one. Raises DiskTrouble."""
        with self._lock:
            self._finish()

    def _store_group(self, captures: Sequence[Capture]) -> list[Stored]:
        """Write one group: pack without the lock, then decide, append, fsync and remember under it."""
        file = self._file_with_room()
        drafts = [self._draft(capture) for capture in captures]
        start = file.size
        try:
            with atomic.disk(self._directory / file.name), self._digests.writing() as index:
                if not file.size:
                    file.add(pack(warcrecords.warcinfo(self._warcinfo_id, _now(), file.name, self._info)))
                stored = [self._append(file, draft, index) for draft in drafts]
                file.sync()
                index.set_whole_to(file.name, file.size)
        except BaseException:
            self._cut_back(file, start)
            raise
        return stored

    def _draft(self, capture: Capture) -> _Draft:
        """Hash a capture and pack what the index as it stands now asks for."""
        assert capture.response_header_bytes, capture.url
        facts = Facts(capture.url, warcrecords.date_of(capture.fetched_at), capture.ip, self._warcinfo_id)
        body, size = capture.body, _size(capture.body)
        if not isinstance(body, bytes) and size <= limits.BODY_IN_MEMORY_BYTES:
            body = b"".join(body.chunks())
        head = warcrecords.http_head(capture.response_header_bytes, capture.status, size, capture.truncated is not None)
        block, payload = warcrecords.hashes(head, _pieces(body))
        draft = _Draft(capture, facts, _new_id(), head, body, size, block, payload)
        draft.original = self._digests.find(payload) if draft.may_repeat else None
        if draft.original is not None:
            draft.member = _identical(draft, draft.original)
        elif isinstance(body, bytes):
            draft.member = pack(b"".join(_record(draft)))
        return draft

    def _append(self, file: WarcFile, draft: _Draft, index: Writing) -> Stored:
        """Append request and answer of one capture, deciding by the index under its lock."""
        capture = draft.capture
        if capture.request_bytes:
            file.add(pack(warcrecords.request(draft.facts, _new_id(), draft.record_id, capture.request_bytes)))
        if capture.status == 304 and capture.prior is not None and capture.prior.warc_date:
            return _append_not_modified(file, draft, capture.prior, index)
        original = index.find(draft.payload) if draft.may_repeat else None
        if original is not None:
            # Drafted as a response, but the body came meanwhile: from another process, or earlier in this group.
            place = file.add(draft.member if draft.original and draft.member else _identical(draft, original))
            return Stored(place, original.locator, warcrecords.digest(draft.payload), draft.record_id, True)
        place = file.add(draft.member) if draft.member is not None else file.add_pieces(_record(draft))
        if draft.may_repeat:
            facts = draft.facts
            index.put(draft.payload, Entry(facts.url, facts.date, draft.record_id, place.file, place.offset, place.length))
        digest = warcrecords.digest(draft.payload) if draft.body_bytes else None
        return Stored(place, None, digest, draft.record_id, False)

    def _file_with_room(self) -> WarcFile:
        """Give the open file, a new one when it has reached its size."""
        if self._file is not None and self._file.size >= self._rotate_bytes:
            self._finish()
        if self._file is None:
            self._serial += 1
            self._warcinfo_id = _new_id()
            self._file = WarcFile(self._directory, self._serial)
        return self._file

    def _finish(self) -> None:
        """Rename the open file and forget how far it is whole: that only matters to repair."""
        file, self._file = self._file, None
        if file is None:
            return
        with atomic.disk(self._directory / file.name):
            file.finish()
            with self._digests.writing() as index:
                index.set_whole_to(file.name, None)

    def _cut_back(self, file: WarcFile, size: int) -> None:
        """Take back a group that failed; a file that even refuses this is left to the next start's repair."""
        try:
            file.cut_back(size)
        except OSError:
            self._file = None
            file.abandon()


def _append_not_modified(file: WarcFile, draft: _Draft, prior: Prior, index: Writing) -> Stored:
    """Append the revisit of a 304; the digest of the confirmed body is carried forward."""
    original = Original(prior.warc_url or draft.facts.url, prior.warc_date or "", prior.warc_id)
    place = file.add(pack(warcrecords.revisit_not_modified(draft.facts, draft.record_id, original, prior.digest, draft.head)))
    raw = warcrecords.raw_digest(prior.digest)
    entry = index.find(raw) if raw else None
    return Stored(place, entry.locator if entry else None, prior.digest, draft.record_id, True)


def _identical(draft: _Draft, entry: Entry) -> bytes:
    """Pack the revisit of a body that `entry` holds."""
    original = Original(entry.url, entry.date, entry.record_id)
    return pack(warcrecords.revisit_identical(draft.facts, draft.record_id, original, draft.payload, draft.head))


def _record(draft: _Draft) -> Iterator[bytes]:
    """Give the whole response record piece by piece."""
    capture, head = draft.capture, draft.head
    payload = None if capture.status == 304 else draft.payload
    block_bytes = len(head) + draft.body_bytes
    yield warcrecords.response(draft.facts, draft.record_id, block_bytes, draft.block, payload, capture.truncated)
    yield head
    yield from _pieces(draft.body)
    yield warcrecords.END


def _groups(captures: Sequence[Capture]) -> Iterator[list[Capture]]:
    """Divide what came together so that packed members and one transaction stay small."""
    group: list[Capture] = []
    size = 0
    for capture in captures:
        group.append(capture)
        size += _size(capture.body)
        if size >= _GROUP_BODY_BYTES or len(group) >= _GROUP_CAPTURES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _size(body: bytes | Body) -> int:
    """Tell a body's length in bytes."""
    return len(body) if isinstance(body, bytes) else body.size


def _pieces(body: bytes | Body) -> Iterable[bytes]:
    """Give a body piece by piece."""
    return (body,) if isinstance(body, bytes) else body.chunks()


def _new_id() -> str:
    """Make a record id; uuid4 draws from the system's generator."""
    return f"urn:uuid:{uuid.uuid4()}"


def _now() -> str:
    """Date a warcinfo record."""
    return warcrecords.date_of(time.time())
