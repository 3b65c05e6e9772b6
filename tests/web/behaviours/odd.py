"""Answers that are legal and odd, or plainly wrong: bombs, big and deep pages, codings, headers."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator

from tests.web.answers import Answer, End, Handler, Request, Script, Site, behaviour
from tests.web.prose import html

OK = b"HTTP/1.1 200 OK\r\n"


@behaviour
def bombs(site: Site, mib: int = 256) -> Handler:
    """Small bodies that grow: gzip of N MiB, gzip in gzip, a bomb where robots.txt should be (cut by its limit)."""
    block = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(block.compress(b" " * (1 << 20)) for _ in range(mib)) + block.flush()
    gz = [("Content-Encoding", "gzip")]
    pages = {
        "/gzip": Answer(bomb, headers=gz),
        "/twice": Answer(gzip.compress(bomb, mtime=0), headers=[("Content-Encoding", "gzip, gzip")]),
    }
    pages |= {"/": Answer(html("Bombs", ["/gzip", "/twice", "/after"])), "/after": Answer(html("After the bombs"))}
    return lambda request: pages.get(request.path)


@behaviour
def big(site: Site, mb: int = 50) -> Handler:
    """A page of 50 MB in one line, with a link at its beginning and one at its end."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/":
            return Answer(html("Big", ["/big"]))
        if request.path == "/big":
            return Answer(
                b'<html><a href="/first">1</a>' + b"<p>many words</p>" * (mb * 1_000_000 // 17) + b'<a href="/last">2</a>'
            )
        return Answer(html(f"Page {request.path}")) if request.path in ("/first", "/last") else None

    return answer


@behaviour
def deep(site: Site, levels: int = 100_000) -> Handler:
    """A page of 100,000 nested elements, and one of 300,000 siblings."""
    pages = {
        "/": Answer(html("Deep", ["/deep", "/wide"])),
        "/deep": Answer(b'<a href="/first">1</a>' + b"<div>" * levels + b'<a href="/inside">2</a>'),
        "/wide": Answer(b'<a href="/first">1</a>' + b"<b>x</b>" * (3 * levels)),
        "/first": Answer(html("First")),
        "/inside": Answer(html("Inside")),
    }
    return lambda request: pages.get(request.path)


@behaviour
def chunked(site: Site, pages: int = 10) -> Handler:
    """Chunked answers with blanks, extensions and trailers, several on one connection."""

    def answer(request: Request) -> Script | None:
        n = 0 if request.path == "/" else int(request.path[2:]) if request.path[2:].isdigit() else -1
        if not 0 <= n < pages:
            return None
        body = html(f"Chunked page {n}", [f"/p{(n + 1) % pages}"])
        size = 7 + 13 * n
        chunks = b"".join(
            b'%x  ;x="a;b"\r\n%s\r\n' % (len(part), part) for part in (body[i : i + size] for i in range(0, len(body), size))
        )
        return Script(
            [
                OK
                + b"Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
                + chunks
                + b"0\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\n"
            ]
        )

    return answer


@behaviour
def encodings(site: Site) -> Handler:
    """Content-Encoding: right, odd and wrong; each page links to /after/NAME."""
    squeeze: dict[str, Callable[[bytes], bytes]] = {
        "plain": lambda b: b,
        "gzip": lambda b: gzip.compress(b, mtime=0),
        "deflate": lambda b: zlib.compress(b),
        "raw": lambda b: zlib.compress(b)[2:-4],
    }
    rows = {
        "gzip": ("gzip", "gzip"), "x-gzip": ("x-gzip", "gzip"), "upper": ("GZIP", "gzip"), "identity": ("gzip, identity", "gzip"),
        "deflate": ("deflate", "deflate"), "raw-deflate": ("deflate", "raw"), "lie": ("gzip", "plain"),
        "charset": ("utf-8", "plain"), "unsaid": ("", "gzip"), "junk": ("gzip", "gzip"),
    }  # fmt: skip

    def answer(request: Request) -> Answer | None:
        name = request.path[1:]
        if not name:
            return Answer(html("Encodings", [f"/{row}" for row in rows]))
        if name.startswith("after/") and name[6:] in rows:
            return Answer(html(f"After {name[6:]}"))
        if name not in rows:
            return None
        said, real = rows[name]
        body = squeeze[real](html(f"Encoded as {name}", [f"/after/{name}"])) + (b"trailing junk" if name == "junk" else b"")
        return Answer(body, headers=[("Content-Encoding", said)] if said else [])

    return answer


@behaviour
def odd_headers(site: Site) -> Handler:
    """Header lines that are none, twice, folded, without CR, in Latin-1; HTTP/1.0; no status text; a page after all of it."""
    body = html("Odd headers")
    length = b"Content-Type: text/html\r\nContent-Length: %d\r\n" % len(body)
    heads = {
        "/name": OK + length + b'weird-name/x.php: note\r\n"X-Q: 0"\r\n\r\n',
        "/twice": OK + length + length + b"\r\n",
        "/two-lengths": OK + length + b"Content-Length: 3\r\n\r\n",
        "/folded": OK + b"X-Folded: one\r\n two\r\n" + length + b"\r\n",
        "/bare-lf": (OK + length + b"\r\n").replace(b"\r\n", b"\n"),
        "/latin": OK + "X-Name: é\r\n".encode("latin-1") + length + b"\r\n",
        "/no-text": b"HTTP/1.1 200\r\n" + length + b"\r\n",
        "/many": OK + b"".join(b"Set-Cookie: c%d=1; Path=/\r\n" % n for n in range(300)) + length + b"\r\n",
        "/none": OK + b"\r\n",
        "/http-1.0": b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n",
        "/http-0.9": b"",
        "/not-http": b"SSH-2.0-OpenSSH_9.2\r\n",
        "/status-999": b"HTTP/1.1 999 Odd\r\n" + length + b"\r\n",
        "/status-1000": b"HTTP/1.1 1000 Odd\r\n" + length + b"\r\n",
        "/hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK + length + b"\r\n",
    }
    closes = {"/none", "/http-1.0", "/http-0.9", "/not-http", "/two-lengths", "/status-1000"}

    def steps(path: str) -> Iterator[bytes | float | End]:
        yield heads[path] + body
        if path in closes:
            yield End.CLOSE

    def answer(request: Request) -> Answer | Script | None:
        if request.path in heads:
            return Script(steps(request.path))
        if request.path == "/":
            return Answer(html("Headers", [*heads, "/after"]))
        return Answer(html("After all headers")) if request.path == "/after" else None

    return answer
