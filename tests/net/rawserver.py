"""A loopback server whose every byte a test decides; it runs in the test's own trio loop."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

import trio

from crawltool.net.engine import EngineSettings, Exchange, Request


class Connection:
    """One accepted connection: its number, and how to read a request head and send bytes."""

    def __init__(self, stream: trio.abc.Stream, number: int, heads: list[bytes]) -> None:
        self.stream, self.number, self.heads = stream, number, heads
        self._held = b""

    async def head(self) -> bytes:
        """Give the next request head, b"" when the client is gone."""
        while b"\r\n\r\n" not in self._held:
            more = await self.stream.receive_some(65536)
            if not more:
                return b""
            self._held += more
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        self.heads.append(head + b"\r\n\r\n")
        return self.heads[-1]

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            await self.stream.send_all(part)


Handler = Callable[[Connection], Awaitable[None]]


class Server:
    """What the tests ask afterwards: the port, the request heads and the number of connections."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None) -> None:
        self.handler, self.tls = handler, tls
        self.heads: list[bytes] = []
        self.connections = 0
        self.ended = 0  # connections that the server has closed
        self.port = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        chosen: trio.abc.Stream = stream if self.tls is None else trio.SSLStream(stream, self.tls, server_side=True)
        gone = suppress(trio.BrokenResourceError, trio.ClosedResourceError)  # the client left: these tests do it all the time
        async with chosen:
            with gone:
                await self.handler(Connection(chosen, self.connections, self.heads))
        self.ended += 1

    def request(self, target: str = "/", **fields: object) -> Request:
        """Make a request to this server, typed, so that loopback is allowed."""
        words: dict[str, object] = {"typed": True, "timeout_total_s": 5.0, **fields}
        scheme = "http" if self.tls is None else "https"
        return Request(scheme, str(words.pop("host", "site.test")), self.port, target, "127.0.0.1", **words)  # type: ignore[arg-type]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve on a free loopback port until the block ends."""
    server = Server(handler, tls)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


def always(*parts: bytes, then_close: bool = True) -> Handler:
    """Answer every request with the same bytes; close after the first unless told otherwise."""

    async def handler(connection: Connection) -> None:
        while await connection.head():
            await connection.send(*parts)
            if then_close:
                return

    return handler


def page(body: bytes = b"ok", fields: bytes = b"") -> bytes:
    """A 200 answer with its length."""
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)


@contextmanager
def deaf_port() -> Iterator[int]:
    """A loopback port whose queue is full: the kernel drops every further SYN, connecting takes for ever."""
    fillers = []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        try:
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                fillers.append(filler)
            yield listener.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


def read(exchange: Exchange) -> bytes:
    """Give the body and let go of it."""
    assert exchange.body is not None
    data = exchange.body.read()
    exchange.close()
    return data


MODES = [EngineSettings(), EngineSettings(use_epoll=False)]
MODE_NAMES = ["epoll", "task_per_socket"]
