"""What must be written in a record's header so that the record is valid again, and nothing of it is lost?

A header is written anew only where it must be: line ends, folded values, a length that is not true, a block that is not all
there. Fields that are no longer true are masked (X-Crawler-...), never dropped. Records of ARC files get the header of WARC.
Called by stores/warcrepair.
"""

from __future__ import annotations

import re

from crawltool.core.warcformat import ARC, RecordHead

_DIGESTS = ("warc-block-digest", "warc-payload-digest")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_FOLDED = re.compile(rb"\n[ \t]")
MASK = "X-Crawler-"


def header(head: RecordHead, raw: bytes, block_bytes: int, is_cut: bool, new_id: str) -> tuple[bytes, list[str]]:
    """Give the header block of a record whose block has block_bytes, and what was changed.

    raw is the header block as found; it stays, byte for byte, where nothing has to be changed. is_cut: the record claimed
    more bytes than can be read. new_id (urn:uuid:...) is used where the record has none.
    """
    changes = _changes(head, raw, block_bytes, is_cut)
    if not changes:
        return raw, []
    fields = list(head.fields)
    if is_cut:
        fields = [(MASK + name if name.lower() in _DIGESTS else name, value) for name, value in fields]
        if not head.get("warc-truncated"):
            fields.append(("WARC-Truncated", "unspecified"))
    if not head.record_id:
        fields.append(("WARC-Record-ID", f"<{new_id}>"))
    if head.version == ARC and not head.get("content-type"):
        fields.append(("Content-Type", head.get("arc-content-type") or "application/octet-stream"))
    fields = [(name, value) for name, value in fields if name.lower() != "content-length" and value]
    version = head.version if head.version.startswith("WARC/1.") else "WARC/1.0"
    lines = [
        version,
        *(f"{name}: {_CONTROL.sub(' ', value)}" for name, value in fields),
        f"Content-Length: {block_bytes}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape"), changes


def _changes(head: RecordHead, raw: bytes, block_bytes: int, is_cut: bool) -> list[str]:
    changes = [text for text in head.odd if not text.startswith("version")]
    if _FOLDED.search(raw):
        changes.append("folded values")
    if raw[:5] == b"warc/":
        changes.append("the version in small letters")
    if head.version == ARC:
        changes.append("made a WARC record of an ARC record")
    if is_cut:
        changes.append(f"cut: {block_bytes} of {head.content_length} bytes are there; marked as truncated")
    elif head.content_length != block_bytes:
        changes.append(f"Content-Length was {head.get('content-length')[:40]!r}, is {block_bytes}")
    if not head.record_id and changes:
        changes.append("a new WARC-Record-ID")
    return changes
