"""Is an archive whole, and is what its records say true?

Reads files from the first byte to the last (stores/warcwalk), judges each record (core/warcchecks), and looks across files:
no two records have one id, and revisits refer to what is there. Findings come as they are made; memory is bounded, because
what must be compared across records is sorted on disk. Called by cli/warcverify.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from crawltool.core import warcchecks
from crawltool.core.warcchecks import BlockCheck, Problem
from crawltool.stores.sorting import Sorter
from crawltool.stores.warcwalk import Piece, walk

_KEY_CHARS = 24  # of a hash: 96 bits, no two of a billion records meet by chance
_ID, _HAVE, _WANT = b"i", b"h", b"w"


class Finding(msgspec.Struct, tag="finding", frozen=True, omit_defaults=True, kw_only=True):
    """One thing that is not right: where, how grave, what."""

    file: str
    offset: int
    length: int  # stored bytes of the record or the damage; 0 where no offset leads to it
    severity: warcchecks.Severity
    code: str
    message: str
    record: str = ""  # WARC-Type
    record_id: str = ""
    url: str = ""


class FileReport(msgspec.Struct, tag="file", kw_only=True):
    """What one file holds."""

    file: str
    file_bytes: int
    records: dict[str, int]  # by type, those that are whole
    torn: int = 0  # records of which a part can be read
    damaged_bytes: int = 0  # of the file as it is stored


@dataclass
class Verifier:
    """One run over any number of files. findings() first, then what is only known at the end: across()."""

    counts: Counter[str] = field(default_factory=Counter)  # findings by severity
    codes: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)  # by type
    torn: int = 0
    damaged_bytes: int = 0
    files: int = 0
    sorter: Sorter = field(default_factory=Sorter)

    def file(self, path: Path) -> Iterator[Finding | FileReport]:
        """Check one file: its findings, then its report. Raises OSError."""
        self.files += 1
        report = FileReport(file=str(path), file_bytes=path.stat().st_size, records={})
        for piece in walk(path):
            for problem in self._piece(piece, report):
                yield self._finding(report.file, piece, problem)
        self.records.update(report.records)
        self.torn += report.torn
        self.damaged_bytes += report.damaged_bytes
        yield report

    def across(self) -> Iterator[Finding]:
        """Check what concerns two records: ids and revisits."""
        for finding in _compared(self.sorter.lines()):
            self._count(finding)
            yield finding

    def _piece(self, piece: Piece, report: FileReport) -> Iterator[Problem]:
        head = piece.head
        if head is None:
            piece.close()
            report.damaged_bytes += piece.length
            yield from (Problem(*trouble) for trouble in piece.troubles)
            return
        check = BlockCheck(head)
        for data in piece.chunks():
            check.feed(data)
        piece.close()
        yield from warcchecks.of_header(head)
        yield from (Problem(*trouble) for trouble in piece.troubles)
        name = head.type or "unknown"
        if not piece.is_whole:
            report.torn += 1
            return
        report.records[name] = report.records.get(name, 0) + 1
        yield from check.problems()
        for line in _rows(report.file, piece):
            self.sorter.add(line)

    def _finding(self, file: str, piece: Piece, problem: Problem) -> Finding:
        head = piece.head
        made = Finding(
            file=file,
            offset=piece.offset,
            length=piece.length,
            severity=problem.severity,
            code=problem.code,
            message=problem.text,
            record=head.type if head else "",
            record_id=head.record_id if head else "",
            url=head.url if head else "",
        )
        self._count(made)
        return made

    def _count(self, finding: Finding) -> None:
        self.counts[finding.severity] += 1
        self.codes[finding.code] += 1


def _rows(file: str, piece: Piece) -> Iterator[bytes]:
    """Give the lines by which a record is compared with others: key, kind, digest, then what a finding needs."""
    head = piece.head
    assert head is not None
    told = [piece.offset, piece.length, head.type, head.record_id, head.url, file]
    if head.record_id:
        yield _row(_key(head.record_id), _ID, "", told)
    digest = head.get("warc-payload-digest")
    if head.type in ("response", "resource"):
        yield _row(_key(head.url, head.get("warc-date")), _HAVE, digest, told)
    elif head.type == "revisit" and head.get("warc-refers-to-target-uri"):
        key = _key(head.get("warc-refers-to-target-uri").strip("<>"), head.get("warc-refers-to-date"))
        yield _row(key, _WANT, digest, told)


def _row(key: bytes, kind: bytes, digest: str, told: list[object]) -> bytes:
    return b"%s %s %s\n" % (key, kind, msgspec.json.encode([digest, *told]))


def _key(*parts: str) -> bytes:
    return (
        hashlib.sha1("\n".join(parts).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:_KEY_CHARS].encode()
    )


def _compared(lines: Iterable[bytes]) -> Iterator[Finding]:
    """Compare neighbours of one key; `have` sorts before `want`."""
    key = have = b""
    digest: str | None = None
    for line in lines:
        now, kind, rest = line.split(b" ", 2)
        if now != key:
            key, have, digest = now, b"", None
        if kind == _ID and have == _ID:
            yield _told(rest, "record_id", "another record has this id")
        elif kind == _HAVE:
            digest = msgspec.json.decode(rest)[0]
        elif kind == _WANT and have == b"":
            yield _told(rest, "revisit_target", "the record it refers to is not in these files")
        elif kind == _WANT and digest and (said := msgspec.json.decode(rest)[0]) and not warcchecks.same_digest(said, digest):
            yield _told(rest, "revisit_digest", f"says {said}, the record it refers to {digest}")
        if kind != _WANT:
            have = kind


def _told(rest: bytes, code: str, message: str) -> Finding:
    _, offset, length, kind, record_id, url, file = msgspec.json.decode(rest)
    severity = warcchecks.CODES[code][0]
    return Finding(
        file=file,
        offset=offset,
        length=length,
        severity=severity,
        code=code,
        message=message,
        record=kind,
        record_id=record_id,
        url=url,
    )
