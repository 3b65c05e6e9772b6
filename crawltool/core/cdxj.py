"""Which line has a record in an index of archives?

CDXJ, as cdxj-indexer writes it and pywb reads it: `SURT TIMESTAMP {json}`, all values strings, the digest with its algorithm,
offset and length those of the packed record. Lines are sorted by their bytes. Indexed are response, revisit, resource, and
metadata that is not application/warc-fields. Called by stores/warcindex, and by whoever writes an index along the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from crawltool.core.surt import surt

INDEXED = frozenset({"response", "revisit", "resource", "metadata"})
REVISIT_TYPE = "warc/revisit"
_TYPE_END = re.compile(r"[;\s]")
_DIGITS = re.compile(r"[0-9]+")
_DATE_PARTS = (4, 2, 2, 2, 2, 2)


def is_indexed(record_type: str, content_type: str) -> bool:
    """Tell whether a record has a line; content_type is that of the record, not of an HTTP message in it."""
    return record_type in INDEXED and not (record_type in ("resource", "metadata") and content_type == "application/warc-fields")


def line(
    *,
    url: str,
    date: str,
    record_type: str,
    content_type: str | None,
    status: int | None,
    digest: str | None,
    length: int,
    offset: int,
    file: str,
) -> bytes:
    """Give the line of a record, with its newline.

    date: WARC-Date. content_type: that of the answer, for records without one that of the record; its parameters are left
    out. digest: WARC-Payload-Digest as it stands. file: the name of the file, without folders.
    """
    url = url.replace(" ", "%20")
    mime = REVISIT_TYPE if record_type == "revisit" else _essence(content_type)
    values = {
        "url": url,
        "mime": mime,
        "status": "" if status is None else str(status),
        "digest": digest or "",
        "length": str(length),
        "offset": str(offset),
        "filename": file,
    }
    told = json.dumps({name: value for name, value in values.items() if value})
    return f"{surt(url)} {timestamp(date)} {told}\n".encode("utf-8", "replace")


def timestamp(date: str) -> str:
    """Give the 14 digits of a WARC-Date of any precision; what it leaves out is the first there is."""
    numbers = _DIGITS.findall(date)[:6]
    parts = [number[:width].rjust(width, "0") for number, width in zip(numbers, _DATE_PARTS, strict=False)]
    return ("".join(parts) + "00000101000000"[len("".join(parts)) :])[:14]


def http_facts(head: bytes) -> tuple[int | None, str | None]:
    """Give status and Content-Type of the header of an HTTP answer."""
    lines = head.decode("utf-8", "replace").splitlines()
    words = lines[0].split(None, 2) if lines else []
    status = int(words[1]) if len(words) > 1 and words[0].startswith("HTTP") and words[1].isdecimal() else None
    return status, _first(lines[1:], "content-type")


def _first(lines: Sequence[str], name: str) -> str | None:
    for text in lines:
        key, colon, value = text.partition(":")
        if colon and key.strip().lower() == name:
            return value.strip()
    return None


def _essence(content_type: str | None) -> str:
    return _TYPE_END.split(content_type, maxsplit=1)[0] if content_type else ""
