"""How does a user's, a seed's or a test's httpx client ask through our engine?

`httpx.AsyncClient(transport=CurlTransport(engine, resolver))`: the seam where another HTTP client plugs in. The body is
complete when the response is given. The one door of httpx. Failures become httpx's exceptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from crawltool import limits
from crawltool.net.body import Body
from crawltool.net.dns import Answer, NoName, Resolver
from crawltool.net.engine import Engine, Exchange, Request

ADDRESSES_TRIED = 4  # of one name; each may cost the whole connect timeout
_ERRORS: dict[str, type[httpx.TransportError]] = {
    "unreachable": httpx.ConnectError,
    "returned": httpx.ConnectError,
    "tls_error": httpx.ConnectError,
    "blocked_address": httpx.ConnectError,
    "malformed": httpx.RemoteProtocolError,
    "too_large": httpx.ReadError,
}
_TIMEOUTS: dict[str, type[httpx.TimeoutException]] = {"connect": httpx.ConnectTimeout}


class CurlTransport(httpx.AsyncBaseTransport):
    """An httpx transport over an Engine, for GET and HEAD.

    `typed` allows loopback. httpx's connect and read timeouts are kept as connect and first byte; `timeout_total_s` bounds
    the whole. The transport does not own the engine: closing the client leaves it open.
    """

    def __init__(
        self,
        engine: Engine,
        resolver: Resolver | None = None,
        *,
        typed: bool = False,
        timeout_total_s: float = 120.0,
        max_body_bytes: int = limits.DECODED_BYTES_MAX,
    ) -> None:
        self._engine = engine
        self._resolver = resolver or Resolver()
        self._typed = typed
        self._timeout_total_s = timeout_total_s
        self._max_body_bytes = max_body_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one exchange. Raises httpx.TransportError and its children only."""
        if request.method not in ("GET", "HEAD") or request.url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"{request.method} {request.url.scheme}: only GET and HEAD of http and https")
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            answer = await self._resolver.resolve(request.url.host, port)
        except NoName as error:
            raise httpx.ConnectError(str(error), request=request) from None
        exchange = await self._first_reachable(request, port, answer)
        if exchange.status is None or exchange.error is not None or exchange.truncated is not None:
            exchange.close()
            raise _error_of(exchange, request)
        assert exchange.body is not None
        return httpx.Response(
            exchange.status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in exchange.headers],
            stream=_BodyStream(exchange.body),
            extensions={"http_version": b"HTTP/1.1", "exchange": exchange},
        )

    async def _first_reachable(self, request: httpx.Request, port: int, answer: Answer) -> Exchange:
        """Ask the addresses in turn until one gives more than no connection."""
        assert answer.addresses
        for address in answer.addresses[:ADDRESSES_TRIED]:
            exchange = await self._engine.exchange(self._request(request, port, address, answer.port))
            if exchange.error != "unreachable" or exchange.peer_ip is not None:
                break
        return exchange

    def _request(self, request: httpx.Request, port: int, address: str, connect_port: int) -> Request:
        timeouts = request.extensions.get("timeout", {})
        return Request(
            request.url.scheme,
            request.url.raw_host.decode("ascii"),
            port,
            request.url.raw_path.decode("ascii"),
            address,
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw],
            method=request.method,
            connect_port=connect_port,
            typed=self._typed,
            keep=request.headers.get("connection", "").lower() != "close",
            timeout_connect_s=timeouts.get("connect") or self._timeout_total_s,
            timeout_first_byte_s=timeouts.get("read") or self._timeout_total_s,
            timeout_total_s=self._timeout_total_s,
            max_body_bytes=self._max_body_bytes,
        )


class _BodyStream(httpx.AsyncByteStream):
    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._body.chunks():
            yield chunk

    async def aclose(self) -> None:
        self._body.close()


def _error_of(exchange: Exchange, request: httpx.Request) -> httpx.TransportError:
    """Find httpx's class for what went wrong."""
    message = exchange.reason or exchange.truncated or "no answer"
    if exchange.error == "timeout":
        return _TIMEOUTS.get(message, httpx.ReadTimeout)(f"timeout: {message}", request=request)
    if exchange.error is None:
        return httpx.RemoteProtocolError(f"the body broke off: {message}", request=request)
    kind = _ERRORS[exchange.error]
    if exchange.error == "unreachable" and exchange.peer_ip is not None:
        kind = httpx.ReadError
    elif exchange.error == "malformed" and exchange.peer_ip is None:
        kind = httpx.LocalProtocolError  # the request itself cannot be sent
    return kind(f"{exchange.error}: {message}", request=request)
