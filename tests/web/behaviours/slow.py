"""Hosts that take their time: slow, silent, dripping, endless."""

from __future__ import annotations

from collections.abc import Iterator

from tests.web.answers import Answer, End, Handler, Request, Script, Site, behaviour
from tests.web.prose import html

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def but_robots(steps: list[bytes | float | End] | Iterator[bytes | float | End], request: Request) -> Script | None:
    """Play the script for everything but robots.txt, which does not exist."""
    return None if request.path == "/robots.txt" else Script(steps)


@behaviour
def slow(site: Site, wait_s: float = 1.0, pages: int = 20) -> Handler:
    """The first byte of every page comes after wait_s."""

    def answer(request: Request) -> Answer | None:
        n = 0 if request.path == "/" else int(request.path[2:]) if request.path[2:].isdigit() else -1
        if not 0 <= n < pages:
            return None
        return Answer(html(f"Slow page {n}", [f"/p{(2 * n + 1) % pages}", f"/p{(2 * n + 2) % pages}"]), wait_s=wait_s)

    return answer


@behaviour
def silent(site: Site, robots: str = "silent") -> Handler:
    """Accepts, reads, says nothing; with robots=404 only pages are silent."""
    return lambda request: None if robots == "404" and request.path == "/robots.txt" else Script([End.SILENCE])


@behaviour
def drip_body(site: Site, every_s: float = 1.0) -> Handler:
    """Content-Length 100000, one byte each second."""

    def drops() -> Iterator[bytes | float | End]:
        yield HEAD + b"Content-Length: 100000\r\n\r\n"
        for _ in range(100_000):
            yield b"x"
            yield every_s

    return lambda request: but_robots(drops(), request)


@behaviour
def drip_headers(site: Site, every_s: float = 1.0) -> Handler:
    """One byte of the header each second."""

    def drops() -> Iterator[bytes | float | End]:
        for byte in HEAD + b"X-Long: " + b"y" * 100_000:
            yield bytes([byte])
            yield every_s

    return lambda request: but_robots(drops(), request)


@behaviour
def endless_headers(site: Site) -> Handler:
    """Header lines for ever."""

    def lines() -> Iterator[bytes | float | End]:
        yield HEAD
        while True:  # endless on purpose: the client must cap it
            yield b"X-More: and more\r\n" * 50

    return lambda request: but_robots(lines(), request)


@behaviour
def endless_body(site: Site) -> Handler:
    """No Content-Length, bytes for ever."""

    def pieces() -> Iterator[bytes | float | End]:
        yield HEAD + b"\r\n<p>"
        while True:  # endless on purpose: the client must cap it
            yield b"more words " * 1000

    return lambda request: but_robots(pieces(), request)


@behaviour
def endless_chunks(site: Site) -> Handler:
    """Chunks for ever, also where robots.txt should be."""

    def pieces() -> Iterator[bytes | float | End]:
        yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        while True:  # endless on purpose: the client must cap it
            yield b"1000\r\n" + b"#" * 0x1000 + b"\r\n"

    return lambda request: Script(pieces())


@behaviour
def endless_1xx(site: Site) -> Handler:
    """103 Early Hints for ever."""

    def hints() -> Iterator[bytes | float | End]:
        while True:  # endless on purpose: the client must cap it
            yield b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 10

    return lambda request: but_robots(hints(), request)
