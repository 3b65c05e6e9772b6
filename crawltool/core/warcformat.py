"""What does the header block of an archived record say, whoever wrote it?

Reads the headers of WARC 0.17 to 1.1 and of ARC 1 and 2 as they are found: bare line feeds, folded values, names in any
case, values that are missing. What is not as the standard has it is noted in `odd`, never raised: the record may be good
all the same. Sources: ISO 28500:2017 sections 4 and 5; the Internet Archive's ARC file format. Called by stores/warcwalk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

VERSIONS = frozenset({"WARC/0.17", "WARC/0.18", "WARC/1.0", "WARC/1.1"})
ARC = "ARC/1"  # what `version` says of a record of an ARC file
TYPES = frozenset({"warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"})
MANDATORY = ("warc-record-id", "content-length", "warc-date", "warc-type")  # section 5.1
REPEATABLE = frozenset({"warc-concurrent-to", "warc-protocol", "warc-cipher-suite"})  # of the fields that are named
_LINE_END = re.compile(rb"\r{0,2}\n")
_BARE = re.compile(rb"(?<!\r)\n")
_NUMBER = re.compile(r"[0-9]{1,18}")
_ARC_LINE = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]{0,30}:[^\r\n]*?) (\S+) ([0-9]{12,20}|-) ([^\r\n]+?) (\S+)[ \t]*\r?\n")
_ARC_ABOUT = re.compile(rb"(filedesc:[^\r\n]*)\r?\n")
_ARC_TYPE_CHARS = 200


@dataclass(slots=True)
class RecordHead:
    """The header of one record. Names of `fields` are as written, values without the blanks around them."""

    version: str
    fields: list[tuple[str, str]]
    odd: list[str] = field(default_factory=list)  # one sentence each: not as the standard writes it
    content_length: int | None = None

    def get(self, name: str) -> str:
        """Give the first value of a field (its name in lower case), '' when it is not there."""
        return next((value for key, value in self.fields if key.lower() == name), "")

    @property
    def type(self) -> str:
        """Give WARC-Type in lower case."""
        return self.get("warc-type").lower()

    @property
    def url(self) -> str:
        """Give WARC-Target-URI without the angle brackets that some writers put around it."""
        value = self.get("warc-target-uri")
        return value[1:-1] if value.startswith("<") and value.endswith(">") else value

    @property
    def record_id(self) -> str:
        """Give the record's id without its angle brackets."""
        return self.get("warc-record-id").removeprefix("<").removesuffix(">")

    @property
    def is_http(self) -> bool:
        """Tell whether the block is said to be an HTTP message."""
        return self.get("content-type").lower().replace(" ", "").startswith("application/http")


def is_warc(data: bytes) -> bool:
    """Tell whether bytes begin as a WARC record does; some write `warc/1.0`."""
    return data[:5].upper() == b"WARC/"


def read_warc(block: bytes) -> RecordHead:
    """Read the header block of a WARC record, the blank line behind it left out or not."""
    lines = [_text(line) for line in _LINE_END.split(block.rstrip(b"\r\n"))]
    head = RecordHead(lines[0].strip().upper(), [])
    if head.version not in VERSIONS:
        head.odd.append(f"version {head.version[:40]!r} is not known")
    if _BARE.search(block.rstrip(b"\r\n")):
        head.odd.append("lines end in LF alone")
    if b"\r\r\n" in block:
        head.odd.append("lines end in CR CR LF")
    for line in lines[1:]:
        if line[:1] in (" ", "\t") and head.fields:
            name, value = head.fields[-1]
            head.fields[-1] = (name, f"{value} {line.strip()}".strip())
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            head.odd.append(f"a header line without a name: {line[:60]!r}")
            continue
        head.fields.append((name.strip(), value.strip()))
    length = head.get("content-length")
    head.content_length = int(length) if _NUMBER.fullmatch(length) else None
    return head


def read_arc(data: bytes) -> tuple[RecordHead, int] | None:
    """Read the header line of an ARC record; gives its length too, None when the bytes are no such line.

    The fields get the names that WARC has for them, so that readers need not tell the two apart. A URL may hold blanks.
    """
    found = _ARC_LINE.match(data) or _ARC_ABOUT.match(data)
    if found is None:
        return None
    url, address, date, rest, length = (_text(part) for part in (*found.groups(), b"", b"", b"", b"")[:5])
    head = RecordHead(ARC, [])
    is_about = url.startswith("filedesc:")
    head.fields = [
        ("WARC-Type", "warcinfo" if is_about else "response"),
        ("WARC-Target-URI", url),
        ("WARC-Date", arc_date(date)),
        ("WARC-IP-Address", address),
        ("ARC-Content-Type", rest.split(" ", 1)[0][:_ARC_TYPE_CHARS]),
    ]
    if not is_about and url.startswith(("http:", "https:")):
        head.fields.append(("Content-Type", "application/http;msgtype=response"))
    head.content_length = int(length) if _NUMBER.fullmatch(length) else None
    return head, found.end()


def arc_date(digits: str) -> str:
    """Write the 14 digits of an ARC date as WARC-Date; '' when they are none."""
    if len(digits) < 12 or not digits.isdecimal():
        return ""
    full = digits[:14].ljust(14, "0")
    return f"{full[:4]}-{full[4:6]}-{full[6:8]}T{full[8:10]}:{full[10:12]}:{full[12:14]}Z"


def _text(line: bytes) -> str:
    """Read UTF-8 where it is that, else Latin-1, which takes every byte."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
