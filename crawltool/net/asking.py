"""What is asked and what came of it: the plain records that the engine takes and gives.

No socket and no libcurl here. `Request` and `Exchange` are re-exported by net/engine.py, the room's import surface.
The words in Exchange.error are verdicts of records.VERDICTS; core/verdicts judges them together with the status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from crawltool import limits
from crawltool.net.body import Body

HeaderList = list[tuple[str, str]]
Want = Callable[[int, HeaderList], bool]


@dataclass(slots=True)
class Request:
    """One question to one address.

    scheme, host and port name the server (host as in the URL, IPv6 without brackets); `target` goes on the wire byte
    for byte. `address` is where to connect, `connect_port` the port there when a pin moves it. The limits are seconds
    and bytes. `want(status, headers)` is called once, when the headers are complete: False keeps limits.SNIFF_BYTES of
    the body. It runs inside a callback: it must be quick and must not touch the engine. What it raises, exchange() raises.
    """

    scheme: str
    host: str
    port: int
    target: str
    address: str
    headers: Sequence[tuple[str, str]] = ()
    method: str = "GET"  # or HEAD
    connect_port: int | None = None
    typed: bool = False  # the operator typed this host: loopback is allowed
    keep: bool = False  # False: a fresh connection, closed afterwards (a host that rests is not kept waiting)
    timeout_connect_s: float = 10.0
    timeout_first_byte_s: float = 20.0
    timeout_total_s: float = 120.0
    max_body_bytes: int = 10 * limits.MIB
    want: Want | None = None


@dataclass(slots=True)
class Exchange:
    """What came of a Request.

    `error` is None or a verdict word: unreachable tls_error timeout malformed too_large blocked_address, or returned
    (this machine ran out of descriptors or ports: nothing was asked). `reason` is one line: connect, first_byte or total
    for a timeout; the guard's word for blocked_address. An answer that broke off has status, headers, what came of the
    body, and `truncated`: length | time | disconnect | unspecified.
    """

    started: float  # time.monotonic() seconds
    elapsed_s: float = 0.0
    status: int | None = None  # None: no complete final header block came
    header_bytes: bytes = b""  # the final header block as received, with its empty line; 1xx blocks are dropped
    headers: HeaderList = field(default_factory=list)  # decoded as latin-1, names as sent, folded lines unfolded
    request_bytes: bytes = b""  # as sent
    body: Body | None = None  # transfer coding removed, content coding kept; the holder closes it
    body_bytes: int = 0
    wire_bytes: int = 0  # header bytes (1xx and trailers included) and body bytes received
    truncated: str | None = None
    wanted: bool = True  # what `want` said
    peer_ip: str | None = None  # None: no connection was made
    reused: bool = False  # the connection had served an earlier exchange
    timings: dict[str, float] = field(default_factory=dict)  # connect tls first_byte, seconds from the start
    error: str | None = None
    reason: str | None = None

    def close(self) -> None:
        """Let go of the body's memory or file."""
        if self.body is not None:
            self.body.close()


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What holds for every exchange of an engine. Byte counts are bytes."""

    allow_nets: tuple[IPv4Network | IPv6Network, ...] = ()  # --allow-net
    body_memory_bytes: int = limits.BODY_MEMORY_BYTES  # --body-memory: bodies in memory, all together
    body_dir: str | None = None  # where larger bodies get their unlinked file; None: the system's place
    proxy: str = ""  # --proxy URL; through it the proxy resolves, and rebinding is its matter
    ca_file: str | None = None  # None: the system's bundle, else certifi's
    connections_kept: int = 1000  # idle connections kept for reuse
    use_epoll: bool = True  # False (or no epoll on this system): one waiting task per socket


def parse_headers(block: Sequence[bytes]) -> HeaderList:
    """Read header lines (without the status line) into pairs; a line without a colon is left out.

    A folded line (obs-fold, RFC 9112 section 5.2) continues the one before with a blank.
    """
    pairs: HeaderList = []
    for line in b"".join(block).decode("latin-1").split("\n"):
        if line[:1] in (" ", "\t"):
            if pairs and line.strip():
                pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon:
            pairs.append((name.rstrip(" \t"), value.strip(" \t\r")))
    return pairs


def request_lines(request: Request, proxied: bool) -> tuple[bytes, str, list[str]] | str:
    """Give the request's bytes as libcurl will send them, its request target and libcurl's header list.

    A string instead says why it cannot be sent: the target or a header would break the line. An absolute target goes
    to an http proxy (RFC 9112 section 3.2.2). libcurl writes Host first, Connection last and the other fields as given.
    """
    authority = _authority(request)
    target = f"http://{authority}{request.target}" if proxied and request.scheme == "http" else request.target
    host, connection = authority, "" if request.keep else "close"  # RFC 9112 section 9.6: say so when it is not kept
    fields, names = [], set()
    for name, value in request.headers:
        low = name.lower()
        names.add(low)
        if low == "host":
            host = value
        elif low == "connection":
            connection = value
        else:
            fields.append((name, value))
    if connection:
        fields.append(("Connection", connection))
    lines = [f"{name}: {value}" if value else f"{name}:" for name, value in fields]
    text = "\r\n".join([f"{request.method} {target} HTTP/1.1", f"Host: {host}", *lines, "", ""])
    if text.count("\n") != len(lines) + 3 or text.count("\r") != len(lines) + 3 or "\0" in text:
        return "a line break in the request"
    if not text.isascii() or " " in target:
        return "a character in the request that HTTP does not allow"
    listed = [f"{name}: {value}" if value else f"{name};" for name, value in fields]  # "Name:" would mean: do not send it
    if host != authority:
        listed.append(f"Host: {host}")
    listed += [f"{name}:" for name in ("Accept", "User-Agent", "Proxy-Connection") if name.lower() not in names]
    return text.encode(), target, listed


def _authority(request: Request) -> str:
    """Give host and port as libcurl writes them in Host: the port only where it is not the scheme's own."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    return host if request.port == (443 if request.scheme == "https" else 80) else f"{host}:{request.port}"
