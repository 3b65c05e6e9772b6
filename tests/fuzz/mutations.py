"""Makes answers that no server should send: mutations of well-formed ones, the same for the same seed.

An Answer is what a connection gets: pieces of bytes, each sent by itself (TCP segments as far as the kernel keeps them),
and how the connection ends.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import zstandard

PIECES_MAX = 40
STATUSES = (200, 200, 200, 200, 201, 204, 206, 301, 302, 304, 307, 400, 402, 404, 408, 410, 421, 425, 429, 451, 500, 503)
ODD_STATUS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2", b"HTTP/3", b"HTTP/0.9", b"http/1.1", b"ICY", b"HTTP/1.1 ", b"")
ODD_CODE = (b"", b"0", b"20", b"2000", b"-200", b"099", b"100", b"101", b"103", b"199", b"600", b"999", b"20O", b"\xd9\xa2")
FIELDS = (
    b"Content-Type: text/html; charset=utf-8",
    b"Content-Type: image/png",
    b"Content-Type: text/html\r\nContent-Type: application/pdf",
    b"Location: /next",
    b"Connection: close",
    b"Set-Cookie: a=b; Domain=.test; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
    b"Retry-After: 99999999999999999999",
    b"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT",
    b'ETag: W/"\xe9"',
    b"Last-Modified: Thu, 99 Foo 2099 99:99:99 GMT",
    b"Cache-Control: max-age=-1, max-age=1e9",
    b"X-Long: " + b"x" * 9000,
    b"X-Folded: one\r\n two\r\n\tthree",
    b"No-Value:",
    b'Alt-Svc: h2=":443"; ma=3600',
    b"Strict-Transport-Security: max-age=31536000",
    b"WWW-Authenticate: Negotiate abc",
    b"Trailer: X-Trailer",
    b"Content-Encoding: gzip",
    b"Content-Encoding: br, zstd",
)
ODD_FIELDS = (
    b"Location: \xff\xfe//[::1",
    b"Connection: keep-alive, upgrade\r\nUpgrade: h2c",
    b": no name",
    b"no colon at all",
    b"Spaced : value",
    b"X-Nul: a\0b",
    b"X-Bare: a\rb",
    b"WARC/1.1\r\nWARC-Type: response",
    b"Transfer-Encoding: gzip, chunked",
    b"Location: http://[::1]:70000/\r\nLocation: /b",
)


class Answer(NamedTuple):
    """What one connection gets. `end`: close, reset, silent, or keep (the next request of the connection is answered)."""

    pieces: list[bytes]
    end: str

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def answer(chance: random.Random) -> Answer:
    """Make one answer."""
    data = _message(chance)
    for _ in range(chance.choice((0, 0, 0, 1, 1, 1, 2, 4))):
        data = chance.choice(MUTATIONS)(chance, data)
    end = chance.choices(("close", "reset", "keep", "silent"), (60, 15, 24, 1))[0]
    return Answer(_split(chance, data), end)


def _message(chance: random.Random) -> bytes:
    """Make a mostly well-formed answer, sometimes behind interim ones, sometimes followed by another."""
    body = _body(chance)
    status = chance.choice(STATUSES)
    fields = [chance.choice(FIELDS) for _ in range(chance.choice((0, 1, 2, 4, 9)))]
    if chance.random() < 0.15:
        fields.append(chance.choice(ODD_FIELDS))
    if chance.random() < 0.5:
        body, coding = _packed(chance, body)
        fields.append(b"Content-Encoding: " + coding)
    framing = chance.choice(("length", "length", "length", "chunked", "chunked", "close", "both", "wrong"))
    if framing in ("length", "both"):
        fields.append(b"Content-Length: %d" % len(body))
    elif framing == "wrong":
        fields.append(b"Content-Length: " + chance.choice((b"0", b"1", b"-1", b"99999999999999999999", b"1e3", b"5, 5", b"+7")))
    if framing in ("chunked", "both"):
        fields.append(b"Transfer-Encoding: chunked")
        body = _chunks(chance, body)
    chance.shuffle(fields)
    head = b"\r\n".join([b"HTTP/1.1 %d Some Reason" % status, *fields, b"", b""])
    before = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * chance.choice((0, 0, 0, 0, 1, 2, 300))
    return before + head + body


def _body(chance: random.Random) -> bytes:
    kind = chance.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return b"<title>x</title><a href=/y>y</a>" * chance.randrange(1, 60)
    if kind == 2:
        return chance.randbytes(chance.randrange(1, 4000))
    if kind == 3:
        return b"User-agent: *\nDisallow: /a\nCrawl-delay: 1e400\nAllow: /*$*\n" * chance.randrange(1, 30)
    if kind == 4:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc" * chance.randrange(1, 5)
    return b"0123456789abcdef" * chance.choice((1, 4096, 20_000))  # the last is more than a body may hold in memory


def _packed(chance: random.Random, body: bytes) -> tuple[bytes, bytes]:
    kind = chance.randrange(4)
    if kind == 0:
        return gzip.compress(body, 1, mtime=0), b"gzip"
    if kind == 1:
        return zlib.compress(body), b"deflate"
    if kind == 2:
        return zstandard.compress(body), b"zstd"
    return gzip.compress(gzip.compress(body, 1, mtime=0), 1, mtime=0), chance.choice((b"gzip, gzip", b"x-gzip", b"GZIP,br", b"?"))


def _chunks(chance: random.Random, body: bytes) -> bytes:
    made, place = [], 0
    while place < len(body):
        size = chance.choice((1, 7, 100, 4096, 65_536))
        piece = body[place : place + size]
        extension = chance.choice((b"", b"", b"", b";a=b", b";" + b"x" * 200, b" "))
        digits = chance.choice((b"%x", b"%X", b"000%x")) % len(piece)
        made.append(digits + extension + b"\r\n" + piece + b"\r\n")
        place += size
        if len(made) > 2000:
            break
    trailer = chance.choice((b"", b"", b"X-Trailer: 1\r\n", b"Content-Length: 3\r\n", b"X: " + b"y" * 70_000 + b"\r\n"))
    return b"".join(made) + b"0\r\n" + trailer + b"\r\n"


# --- mutations of the finished bytes ---


def _flip(chance: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    place = chance.randrange(min(len(data), 600))
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _drop(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(min(len(data), 600) + 1)
    return data[:place] + data[place + chance.choice((1, 2, 5, 40)) :]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(min(len(data), 600) + 1)
    piece = data[place : place + chance.choice((1, 4, 40, 400))]
    return data[:place] + piece * chance.choice((2, 3, 50)) + data[place:]


def _insert(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(min(len(data), 600) + 1)
    odd = chance.choice(
        (b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b"\xff", b"\xef\xbb\xbf", b"HTTP/1.1 200\r\n\r\n")
    )
    return data[:place] + odd + data[place:]


def _bare_lines(chance: random.Random, data: bytes) -> bytes:
    head, gap, body = data.partition(b"\r\n\r\n")
    return head.replace(b"\r\n", chance.choice((b"\n", b"\r", b"\n\r"))) + gap.replace(b"\r\n", b"\n") + body


def _status(chance: random.Random, data: bytes) -> bytes:
    line, gap, rest = data.partition(b"\r\n")
    words = line.split(b" ", 2)
    if chance.random() < 0.5:
        words[0] = chance.choice(ODD_STATUS)
    if len(words) > 1 and chance.random() < 0.7:
        words[1] = chance.choice(ODD_CODE)
    return chance.choice((b" ", b" ", b"  ", b"\t")).join(words) + gap + rest


def _many_fields(chance: random.Random, data: bytes) -> bytes:
    line, gap, rest = data.partition(b"\r\n")
    return line + gap + b"X-Many: value\r\n" * chance.choice((100, 5000, 30_000)) + rest


def _field(chance: random.Random, data: bytes) -> bytes:
    line, gap, rest = data.partition(b"\r\n")
    return line + gap + chance.choice(FIELDS + ODD_FIELDS) + b"\r\n" + rest


def _garbage_after(chance: random.Random, data: bytes) -> bytes:
    return data + chance.randbytes(chance.randrange(1, 300))


Mutation = Callable[[random.Random, bytes], bytes]
MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _flip,
    _cut,
    _cut,
    _drop,
    _repeat,
    _insert,
    _insert,
    _bare_lines,
    _status,
    _many_fields,
    _field,
    _garbage_after,
)


def _split(chance: random.Random, data: bytes) -> list[bytes]:
    """Cut the bytes where no server would: inside line ends, after each of the first bytes, anywhere."""
    kind = chance.randrange(5)
    if kind <= 1 or len(data) < 2:
        return [data]
    if kind == 2:
        first = min(len(data), chance.randrange(1, PIECES_MAX))
        return [data[place : place + 1] for place in range(first)] + [data[first:]]
    if kind == 3:
        end = data.find(b"\r\n\r\n")
        places = sorted({max(1, end + chance.randrange(-1, 5)), chance.randrange(1, len(data))})
    else:
        places = sorted(chance.randrange(1, len(data)) for _ in range(chance.randrange(1, PIECES_MAX)))
    edges = [0, *places, len(data)]
    return [data[start:stop] for start, stop in pairwise(edges) if stop > start]
