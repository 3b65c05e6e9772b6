"""In which encoding is this page written? BOM, then the header, then the page's own meta, then a look at the bytes.

The order is the browsers' (WHATWG HTML, section 13.2.3.2), and so is the meaning of labels (core/pages/charsetlabels). The
result is always text that can be written as UTF-8: what cannot be read becomes U+FFFD, lone surrogates do not exist. The
door of cchardet. Called by the readers of core/pages/content.
"""

from __future__ import annotations

import codecs
import re
from functools import cache

import cchardet

from crawltool import limits
from crawltool.core.pages.charsetlabels import MULTI_BYTE, NAMES, PATCHES, SINGLE_BYTE

_PRESCAN_BYTES = 1024
_PATTERN_BYTES = 4096  # enough to see the zero bytes of UTF-16 or the shifts of ISO-2022-JP
_BOMS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xfe\xff", "UTF-16BE"), (b"\xff\xfe", "UTF-16LE"))
_SPACE = b"\t\n\x0c\r "
_NEXT = re.compile(rb"<(?:(!--)|(meta)(?=[\t\n\x0c\r /])|(/?[a-z])|([!/?]))", re.I)
_NAME_END = re.compile(rb"[\t\n\x0c\r >]")
# An attribute as the prescan reads it: skip blanks and slashes, a name up to `=`, blank, `/` or `>`, perhaps a value.
_ATTRIBUTE = re.compile(
    rb"""[\t\n\x0c\r /]*+(?:(>)|(=?[^\t\n\x0c\r /=>]*+)[\t\n\x0c\r ]*+(?:
        =[\t\n\x0c\r ]*+(?:"([^"]*+)"|'([^']*+)'|(?=>)|([^\t\n\x0c\r\ >"'][^\t\n\x0c\r >]*+)(?=[\t\n\x0c\r\ >])|(.|\Z))
        |(?=.)|(\Z)))""",
    re.S | re.X,
)
_META_CHARSET = re.compile(
    r"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\x0c\r ;\"'][^\t\n\x0c\r ;]*))", re.I
)
_HEADER_CHARSET = re.compile(r";[\t\n\r ]*charset[\t ]*=[\t ]*(?:\"([^\"]*)\"?|'([^']*)'?|([^;\t\n\r ]+))", re.I)
_XML_ENCODING = re.compile(rb"<\?xml[^>]*?encoding[\x00-\x20]*=[\x00-\x20]*(?:\"([^\"<>]*)\"|'([^'<>]*)')")
_SHIFT = re.compile(rb"\x1b(?:\$[@B]|\(J)")
_SNIFFED = {"CP949": "EUC-KR", "UHC": "EUC-KR", "MACCYRILLIC": "x-mac-cyrillic", "MAC-CYRILLIC": "x-mac-cyrillic"}


def decode(body: bytes, header_charset: str | None) -> tuple[str, str]:
    """Read a body as text; gives the text and the name (WHATWG) of the encoding it was read in."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return _read(body[len(mark) :], name), name
    name = _name(header_charset) or prescan(body) or sniff(body)
    return _read(body, name), name


def of_content_type(content_type: str | None) -> str | None:
    """Give the charset parameter of a Content-Type, quotes and all variants undone; None when there is none."""
    if not content_type or "charset" not in content_type.lower():
        return None
    match = _HEADER_CHARSET.search(content_type)
    return next(filter(None, match.groups()), None) if match else None


def prescan(body: bytes) -> str | None:
    """Find the encoding that a page's own meta (or XML declaration) names; None when it names none.

    Source: WHATWG HTML, "prescan a byte stream". The first 1024 bytes decide; a later meta is still heard, as browsers
    change a tentative encoding when they come to it.
    """
    if body.startswith((b"\x3c\x00\x3f\x00\x78\x00", b"\x00\x3c\x00\x3f\x00\x78")):
        return "UTF-16LE" if body[0] else "UTF-16BE"
    for size in (_PRESCAN_BYTES, limits.CHARSET_SEARCH_BYTES):
        head = body[:size]
        found = _scan(head) if b"charset" in head.lower() else None
        found = found or _xml_declaration(body)
        if found:
            return found
    return None


def sniff(body: bytes) -> str:
    """Guess the encoding of bytes that nobody labelled; windows-1252 when nothing speaks for another."""
    by_pattern = _by_pattern(body[:_PATTERN_BYTES])
    if by_pattern or body.isascii():
        return by_pattern or "windows-1252"
    try:
        body.decode("utf-8")
        return "UTF-8"
    except UnicodeDecodeError as error:
        if error.end >= len(body) and error.reason == "unexpected end of data":
            return "UTF-8"  # cut by a limit inside a sign
    guess = cchardet.detect(body[: limits.CHARSET_SEARCH_BYTES])["encoding"]
    if not guess:
        return "windows-1252"
    return _SNIFFED.get(guess.upper()) or NAMES.get(guess.lower()) or "windows-1252"


def _by_pattern(head: bytes) -> str | None:
    """Recognise UTF-16 without a mark by its zero bytes, and ISO-2022-JP by its shifts: both look like ASCII else."""
    zeros = head.count(0)
    if zeros > len(head) // 4 and len(head) > 8:
        even = head[::2].count(0)
        if even * 20 < zeros:
            return "UTF-16LE"
        if even * 20 > zeros * 19:
            return "UTF-16BE"
    return "ISO-2022-JP" if b"\x1b" in head and head.isascii() and _SHIFT.search(head) else None


def _name(label: str | None) -> str | None:
    return NAMES.get(label.strip("\t\n\x0c\r ").lower()) if label else None


def _declared(label: str) -> str | None:
    """Give the encoding a meta names; it was readable as ASCII, so it cannot be UTF-16."""
    name = _name(label)
    if name in ("UTF-16BE", "UTF-16LE"):
        return "UTF-8"
    return "windows-1252" if name == "x-user-defined" else name


def _xml_declaration(body: bytes) -> str | None:
    if not body.startswith(b"<?xml"):
        return None
    match = _XML_ENCODING.match(body[:_PRESCAN_BYTES])
    return _declared((match[1] or match[2] or b"").decode("latin-1")) if match else None


def _scan(head: bytes) -> str | None:
    at = 0
    while (match := _NEXT.search(head, at)) is not None:
        at = match.end()
        if match[1]:
            end = head.find(b"-->", match.start() + 2)
            if end < 0:
                return None
            at = end + 3
        elif match[2]:
            found, at = _meta(head, at)
            if found:
                return found
        elif match[3]:
            name_end = _NAME_END.search(head, at)
            if name_end is None:
                return None
            at = _skip_attributes(head, name_end.start())
        else:
            at = head.find(b">", at) + 1
            if not at:
                return None
    return None


def _attribute(head: bytes, at: int) -> tuple[bytes | None, bytes, int]:
    """Read one attribute: name (None at the end of the tag), value, and where it ends (-1: the bytes ran out)."""
    match = _ATTRIBUTE.match(head, at)
    if match is None or match[6] is not None or match[7] is not None:
        return None, b"", -1
    if match[1]:
        return None, b"", match.end()
    value = match[3] or match[4] or match[5] or b""
    return match[2].lower(), value, match.end()


def _skip_attributes(head: bytes, at: int) -> int:
    while True:
        name, _, end = _attribute(head, at)
        if end < 0:
            return len(head)
        if name is None:
            return end
        at = end


def _meta(head: bytes, at: int) -> tuple[str | None, int]:
    """Read a meta element's attributes; gives the encoding it declares, and where it ends."""
    seen: set[bytes] = set()
    pragma, needs_pragma, charset = False, False, None
    while True:
        name, value, end = _attribute(head, at)
        if end < 0:
            return None, len(head)
        if name is None:
            break
        at = end
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            pragma = value.lower() == b"content-type"
        elif name == b"content" and charset is None:
            match = _META_CHARSET.search(value.decode("latin-1"))
            if match:
                charset, needs_pragma = match[1] or match[2] or match[3] or "", True
        elif name == b"charset":
            charset, needs_pragma = value.decode("latin-1"), False
    if charset is None or (needs_pragma and not pragma):
        return None, end
    return _declared(charset), end


def _read(body: bytes, name: str) -> str:
    codec = MULTI_BYTE.get(name)
    if codec is not None:
        return body.decode(codec, "replace")
    if name == "replacement":
        return "\ufffd" if body else ""
    return codecs.charmap_decode(body, "replace", _table(name))[0]


@cache
def _table(name: str) -> str:
    """Make the 256 signs of a one-byte encoding; holes among 80 to 9F are C1 controls, other holes unreadable."""
    signs = []
    for byte in range(256):
        try:
            sign = bytes([byte]).decode(SINGLE_BYTE[name])
        except UnicodeDecodeError:
            sign = chr(byte) if 0x80 <= byte <= 0x9F else "\ufffd"
        signs.append(PATCHES.get(name, {}).get(byte, sign))
    return "".join(signs)
