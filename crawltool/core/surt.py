"""Under which key is a URL sorted in an index of archives?

SURT, as the Internet Archive's tools write it and pywb, cdxj-indexer and OutbackCDX look it up: the host reversed, scheme,
`www.` and default port left out, letters small, escapes undone and made again once, parameters in order, session ids gone.
Many URLs share one key on purpose. It is no name for our own bookkeeping: that is core/urls.key. Called by core/cdxj.
"""

from __future__ import annotations

import re

_HEX = {f"{byte:02x}": byte for byte in range(256)}
_ESCAPE_BYTES = 3
_PERCENT = ord("%")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~!\"$&'()*+,/:;<=>?@[\\]^`{|}")
_ODD = re.compile(rb"[^A-Za-z0-9_.~!\"$&'()*+,/:;<=>?@\[\\\]^`{|}-]")
_WWW = re.compile(rb"www[0-9]*\.")
_PORTS = {b"http": b"80", b"https": b"443"}
_BLANKS = re.compile(r"[\n\r\t]")
_AUTHORITY_END = re.compile(r"[/?]")
_PATH_SESSION = re.compile(rb"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)/(?=[^?]+\.aspx)")
_QUERY_SESSIONS = tuple(
    re.compile(pattern + rb"(?:&|$)", re.IGNORECASE)
    for pattern in (
        rb"jsessionid=[0-9a-z]{32}",
        rb"phpsessid=[0-9a-z]{32}",
        rb"sid=[0-9a-z]{32}",
        rb"aspsessionid[a-z]{8}=[a-z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """Give the sort key of a URL; what has no host keeps its form. Never raises."""
    url = _BLANKS.sub("", url.strip())
    scheme, colon, rest = url.partition(":")
    if not url or not colon or url.startswith("filedesc"):
        return url or "-"
    if not rest.startswith("//"):
        return _escaped(_unescaped(url.encode("utf-8", "surrogateescape"))).lower().decode()
    rest = rest[2:].partition("#")[0]
    cut = _AUTHORITY_END.search(rest)
    authority, target = (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, "")
    path, _, query = target.encode("utf-8", "surrogateescape").partition(b"?")
    if not authority:
        return f"{scheme.lower()}:{_path(path).decode()}"
    key = _host(scheme.lower().encode("utf-8", "surrogateescape"), authority) + b")" + _path(path)
    asked = _query(query)
    return (key + (b"?" + asked if asked else b"")).decode("utf-8", "replace")


def _host(scheme: bytes, authority: str) -> bytes:
    """Reverse the labels of a host; the port stays where it is not the scheme's own."""
    name, colon, port = authority.rpartition("@")[2].encode("utf-8", "surrogateescape").rpartition(b":")
    if not colon or b"]" in port:
        name, port = name + colon + port, b""
    host: bytes = _unescaped(name)
    if not host.isascii():
        try:
            host = host.decode("utf-8", "ignore").encode("idna")
        except UnicodeError:
            host = _escaped(host)
    host = _escaped(host.replace(b"..", b".").strip(b".").lower()).strip(b"[]")
    host = _WWW.sub(b"", host, count=1) if _WWW.match(host) else host
    reversed_host = b",".join(reversed(host.split(b".")))
    return reversed_host + (b":" + port if port and port != _PORTS.get(scheme) else b"")


def _path(path: bytes) -> bytes:
    kept: list[bytes] = []
    parts = _unescaped(path).split(b"/")[1:]
    for part in parts:
        if part == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(part)
        elif part != b".":
            kept.append(part)
    inner = [part for part in kept[:-1] if part] + kept[-1:]
    normal = _escaped(b"/" + b"/".join(inner)).lower()
    session = list(_PATH_SESSION.finditer(normal))
    if session:
        normal = normal[: session[-1].start()] + normal[session[-1].end() - 1 :]
    return normal[:-1] if normal.endswith(b"/") and len(normal) > 1 else normal


def _query(query: bytes) -> bytes:
    text = _escaped(_unescaped(query))
    for pattern in _QUERY_SESSIONS:
        found = list(pattern.finditer(text))
        if found:
            text = text[: found[-1].start()] + text[found[-1].end() :]
    pairs: list[bytes] = sorted(text.lower().split(b"&"), key=_name_and_value)
    return b"&".join(pairs) if len(text) > 1 else text.lower()


def _name_and_value(pair: bytes) -> tuple[bytes, ...]:
    return tuple(pair.split(b"=", 1))


def _unescaped(text: bytes) -> bytes:
    """Undo escapes until none is left, in one pass: what an escape gives may complete another before it."""
    if _PERCENT not in text:
        return text
    out = bytearray()
    for byte in text:
        out.append(byte)
        while len(out) >= _ESCAPE_BYTES and out[-_ESCAPE_BYTES] == _PERCENT:
            value = _HEX.get(out[-2:].decode("latin-1").lower())
            if value is None:
                break
            out[-_ESCAPE_BYTES:] = bytes((value,))
    return bytes(out)


def _escaped(text: bytes) -> bytes:
    if not _ODD.search(text):
        return text
    return b"".join(bytes((byte,)) if byte in _PLAIN else b"%%%02X" % byte for byte in text)
