"""What is the body of a capture, as the server meant it, and what is missing of it?

Follows a revisit to the record that holds its body, undoes the content coding within its bounds, and says in sentences what
is not whole. Called by cli/warc and stores/warctree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crawltool import limits
from crawltool.core import decoding, urls, warcrecords
from crawltool.records import Locator
from crawltool.stores import warcpick, warcread
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warcpick import Picked
from crawltool.stores.warcread import StoredRecord, Unreadable


@dataclass(slots=True)
class Payload:
    """The bytes, and one sentence for each thing that is not as it should be."""

    data: bytes
    notes: list[str] = field(default_factory=list)


def payload(picked: Picked, raw: bool, files: Sequence[Path] = ()) -> Payload:
    """Read the body of a record; `raw` leaves its content coding. files: where else a revisit's body may lie.

    Raises Unreadable when there is no record, or its body is in none of these archives.
    """
    record = warcread.read(picked.directory, picked.locator)
    if record.type == "revisit":
        holder = picked.body or _referred(record, picked.directory, files)
        record = warcread.read(*holder) if isinstance(holder, tuple) else warcread.read(picked.directory, holder)
    made = Payload(record.body)
    if record.cut:
        made.notes.append(f"cut: only the first {len(record.body)} bytes")
    if "warc-truncated" in record.headers:
        made.notes.append(f"the capture is not whole ({record.headers['warc-truncated']})")
    coding = record.http_header("content-encoding") if record.type == "response" else None
    if raw or not coding:
        return made
    decoded = decoding.decode(record.body, coding, limits.DECODED_BYTES_MAX)
    if decoded.trouble:
        made.notes.append(f"content-encoding {coding}: {decoded.trouble}")
    made.data = decoded.data
    return made


def _referred(revisit: StoredRecord, directory: Path, files: Sequence[Path]) -> tuple[Path, Locator]:
    """Find the record that holds a revisit's body: by its digest, else by the URL and date it names. Raises Unreadable."""
    digest = warcrecords.raw_digest(revisit.headers.get("warc-payload-digest"))
    path = directory / "digests.lmdb"
    if digest is not None and path.is_dir():
        index = DigestIndex(path)
        entry = index.find(digest)
        index.close()
        if entry is not None:
            return directory, entry.locator
    uri, date = revisit.headers.get("warc-refers-to-target-uri", ""), revisit.headers.get("warc-refers-to-date")
    url = urls.parse(uri.strip("<>"))
    found = warcpick.last_in_files(url.href, files, date) if url is not None and date else None
    if found is None:
        raise Unreadable(f"a revisit: its body was stored from {uri} at {date}, in another archive")
    return found.directory, found.locator
