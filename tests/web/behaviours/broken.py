"""Connections that end badly: resets, cut bodies, keep-alive that is not kept, requests that are read and dropped."""

from __future__ import annotations

import time
from email.utils import formatdate

from tests.web.answers import Answer, End, Handler, Request, Script, Site, behaviour, text
from tests.web.prose import html


def ring(site: Site, request: Request, pages: int) -> Answer | None:
    """Answer with a page of a ring of N pages; each links to two others."""
    n = 0 if request.path == "/" else int(request.path[2:]) if request.path[2:].isdigit() else -1
    if not 0 <= n < pages:
        return None
    return Answer(html(f"Page {n} of {site.name}", [f"/p{(n * 2 + 1) % pages}", f"/p{(n * 2 + 2) % pages}"]))


@behaviour
def reset(site: Site) -> Handler:
    """Accepts, reads the request, resets."""
    return lambda request: Script([End.RESET])


@behaviour
def cut(site: Site) -> Handler:
    """A home page, and pages whose body ends before Content-Length: by FIN (/fin), RST (/rst), in a chunk (/chunk)."""
    long = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n" + b"<p>cut</p>" * 30
    chunk = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n<p>cut</p>"
    ways: dict[str, list[bytes | float | End]] = {
        "/fin": [long, End.CLOSE],
        "/rst": [long, 0.05, End.RESET],
        "/chunk": [chunk, End.CLOSE],
        "/head": [b"HTTP/1.1 200 OK\r\nContent-Ty", End.CLOSE],
        "/nothing": [End.CLOSE],
    }

    def answer(request: Request) -> Answer | Script | None:
        if request.path in ways:
            return Script(ways[request.path])
        return Answer(html("Cut", list(ways))) if request.path == "/" else None

    return answer


@behaviour
def hang_up(site: Site, pages: int = 40) -> Handler:
    """Keep-alive as it seems, but the connection is closed after each answer without saying so."""

    def answer(request: Request) -> Answer | None:
        page = ring(site, request, pages)
        if page is not None:
            page.hang_up = True
        return page

    return answer


@behaviour
def idle_close(site: Site, idle_s: float = 0.0, pages: int = 40) -> Handler:
    """Closes a kept-alive connection after idle_s without a request (0: as soon as it can)."""

    def answer(request: Request) -> Answer | None:
        page = ring(site, request, pages)
        if page is not None:
            page.idle_close_s = idle_s
        return page

    return answer


@behaviour
def drop(site: Site, every: int = 3, pages: int = 40) -> Handler:
    """Reads every third request of a connection and closes without an answer: a client that repeats it by itself is seen."""

    def answer(request: Request) -> Answer | Script | None:
        return Script([End.CLOSE]) if request.number % every == 0 else ring(site, request, pages)

    return answer


@behaviour
def flaky(site: Site, pages: int = 10, fails: int = 1, status: int = 500) -> Handler:
    """Each page fails first and works the next time."""

    def answer(request: Request) -> Answer | None:
        if request.path == "/robots.txt":
            return None
        if request.nth <= fails:
            return text("try again\n", status=status)
        return ring(site, request, pages)

    return answer


@behaviour
def busy(
    site: Site, status: int = 429, retry: str = "", retry_s: int = 1, for_n: int = 1_000_000_000, pages: int = 10
) -> Handler:
    """Too many requests: to the first for_n page requests (default: all); retry=seconds|date adds Retry-After."""
    asked = 0

    def answer(request: Request) -> Answer | None:
        nonlocal asked
        if request.path == "/robots.txt":
            return None
        asked += 1
        if asked > for_n:
            return ring(site, request, pages)
        when = {"seconds": str(retry_s), "date": formatdate(time.time() + retry_s, usegmt=True)}.get(retry)
        return Answer(b"slow down\n", status, [("Retry-After", when)] if when else [], "text/plain")

    return answer
