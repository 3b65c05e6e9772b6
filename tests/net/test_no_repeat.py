"""The engine sends no request twice, whatever the server does to a kept connection or answers: told by the server's log."""

from __future__ import annotations

import socket
import struct
from collections import Counter

import pytest
import trio

from crawltool.net.engine import Engine, EngineSettings
from tests.net.rawserver import Connection, Handler, page, serving

NUMBER = 12
RESET = struct.pack("ii", 1, 0)


def number_of(head: bytes) -> int:
    return int(head.split(b" ")[1].rpartition(b"/")[2])


def way(name: str) -> Handler:
    """Every third request of the server's life meets the trouble, on a connection that served others; the rest are answered."""

    async def handler(connection: Connection) -> None:
        while head := await connection.head():
            if number_of(head) % 3 != 2 or name == "idle 408":
                await connection.send(page())
                if name == "idle 408" and number_of(head) % 3 == 1:
                    await connection.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    return
            elif name.isdigit():
                await connection.send(b"HTTP/1.1 %s Odd\r\nContent-Length: 0\r\n\r\n" % name.encode())
            elif name == "answer and reset":
                await connection.send(b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nab")
                reset(connection)
                return
            elif name == "reset":
                reset(connection)
                return
            elif name == "half a header":
                await connection.send(b"HTTP/1.1 503 No\r\nRetry-Aft")
                return
            elif name == "close":
                return

    return handler


def reset(connection: Connection) -> None:
    assert isinstance(connection.stream, trio.SocketStream)
    connection.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


WAYS = ["close", "reset", "answer and reset", "half a header", "idle 408", "408", "421", "425", "429", "500", "502", "503", "504"]


@pytest.mark.parametrize("through", ["direct", "proxy"])
def test_each_request_reaches_the_server_at_most_once(through: str) -> None:
    async def ask(name: str) -> None:
        async with serving(way(name)) as server:
            proxy = f"http://127.0.0.1:{server.port}" if through == "proxy" else ""
            async with Engine(EngineSettings(proxy=proxy)) as engine:
                for number in range(NUMBER):
                    exchange = await engine.exchange(server.request(f"/{number}", keep=True))
                    exchange.close()
                    assert exchange.status is not None or exchange.error in ("unreachable", "returned", "malformed"), exchange
                    if name == "idle 408":
                        await trio.sleep(0.01)  # until the unasked answer has come
            asked = Counter(map(number_of, server.heads))
            assert max(asked.values()) == 1, (name, asked)
            # Nothing is lost either: a connection seen closed is replaced before the request goes out.
            assert set(asked) == set(range(NUMBER)), (name, asked)
            assert server.connections < NUMBER, f"{name}: no connection was kept: this proves nothing"

    async def main() -> None:
        with trio.fail_after(20):
            for name in WAYS:
                await ask(name)

    trio.run(main)
