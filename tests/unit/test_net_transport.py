"""Claims about net/transport.py: an httpx client over our engine."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from crawltool.net.dns import Resolver, read_pin
from crawltool.net.engine import Engine
from crawltool.net.transport import CurlTransport
from tests.net.rawserver import Connection, Handler, always, page, serving


@asynccontextmanager
async def client_for(handler: Handler, **timeouts: float) -> AsyncIterator[httpx.AsyncClient]:
    """A client for which every http host is the test's server."""
    with trio.fail_after(5):
        async with serving(handler) as server, Engine() as engine:
            resolver = Resolver(pins=[read_pin(f"*:80:127.0.0.1:{server.port}"), read_pin("*:81:127.0.0.1:1")])
            transport = CurlTransport(engine, resolver, typed=True, timeout_total_s=2.0, max_body_bytes=10_000)
            async with httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(2.0, **timeouts)) as client:
                yield client


def test_httpx_reads_our_answers() -> None:
    async def main() -> None:
        packed = gzip.compress(b"hello" * 100)
        async with client_for(always(page(packed, b"Content-Encoding: gzip\r\nX-A: 1\r\nX-A: 2\r\n"))) as client:
            answer = await client.get("http://site.test/x?y=1", headers={"X-B": "c"})
            assert (answer.status_code, answer.content) == (200, b"hello" * 100)
            assert answer.headers.get_list("x-a") == ["1", "2"]
            assert b"GET /x?y=1 HTTP/1.1\r\nHost: site.test\r\n" in answer.extensions["exchange"].request_bytes

    trio.run(main)


def test_httpx_follows_redirects_itself() -> None:
    async def handler(connection: Connection) -> None:
        while head := await connection.head():
            there = (
                page(b"there") if b" /there" in head else b"HTTP/1.1 301 Moved\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
            )
            await connection.send(there)

    async def main() -> None:
        async with client_for(handler) as client:
            assert (await client.get("http://site.test/", follow_redirects=True)).content == b"there"
            assert (await client.head("http://site.test/there")).status_code == 200

    trio.run(main)


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", httpx.ReadError),
        (b"not http\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", httpx.RemoteProtocolError),
        (page(b"x" * 10_001), httpx.ReadError),
    ],
)
def test_broken_answers_are_httpx_errors(sent: bytes, kind: type[Exception]) -> None:
    async def main() -> None:
        async with client_for(always(sent)) as client:
            try:
                await client.get("http://site.test/")
            except httpx.HTTPError as error:
                assert type(error) is kind
            else:
                raise AssertionError("an answer?")

    trio.run(main)


def test_what_was_not_asked_is_an_httpx_error() -> None:
    async def silent(connection: Connection) -> None:
        await connection.head()
        await connection.head()

    cases: list[tuple[str, str, type[Exception]]] = [
        ("GET", "http://site.test:81/", httpx.ConnectError),
        ("GET", "http://10.0.0.1:82/", httpx.ConnectError),
        ("POST", "http://site.test/", httpx.UnsupportedProtocol),
        ("GET", "ftp://site.test/", httpx.UnsupportedProtocol),
        ("GET", "http://site.test/", httpx.ReadTimeout),
        ("GET", "http://bad name/", httpx.LocalProtocolError),
    ]

    async def main() -> None:
        async with client_for(silent, read=0.05) as client:
            for method, url, kind in cases:
                try:
                    await client.request(method, url)
                except httpx.HTTPError as error:
                    assert type(error) is kind, (url, error)
                else:
                    raise AssertionError(url)

    trio.run(main)
