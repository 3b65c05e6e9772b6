"""What would the network have answered? The fetch stage on an archive instead of the web.

The same stage (stages/fetch) with three parts exchanged: Replay answers for the engine, ReplayNames for the resolver, and
Kept for the writer, because what was fetched once lies in its archive already: outcomes name the original records. No
socket is opened. Run by cli/fetch for --from-warc.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from zlib import crc32

import trio

from crawltool import limits
from crawltool.core.warcparts import StoredRecord
from crawltool.core.warcrecords import TRUNCATED_REASONS
from crawltool.net.asking import parse_headers
from crawltool.net.body import Body, BodyMemory
from crawltool.net.dns import Answer, NoName, Resolver
from crawltool.net.engine import Exchange, Request
from crawltool.stages.drain import TrioDrain
from crawltool.stages.fetch import FetchStage
from crawltool.stages.fetchsettings import Settings
from crawltool.stages.outlets import parse_routes
from crawltool.stages.sinks import open_async_sink
from crawltool.stages.sources import open_async_source
from crawltool.stages.where import Trouble
from crawltool.stores import replay, warcread
from crawltool.stores.replay import ReplayIndex
from crawltool.stores.warc import Capture, Stored

NOT_THERE = "not in the archive"
ROBOTS = "/robots.txt"
_NO_RULES = b"HTTP/1.1 404 Not Found\r\nX-Crawler-Replay: not in the archive\r\n\r\n"
_UNKNOWN_ADDRESS = "192.0.2.%d"  # documentation addresses, RFC 5737: nothing is sent there
_TTL_S = limits.ADDRESS_TTL_S_MAX
_TROUBLE = {"length": ("too_large", "cut when it was archived"), "time": ("timeout", "total")}


class _KeptBody(Body):
    """A body that knows where it lies in the archive."""

    __slots__ = ("capture",)

    def __init__(self, memory: BodyMemory, capture: replay.Capture) -> None:
        super().__init__(memory)
        self.capture = capture


class Replay:
    """Stands for net/engine.Engine."""

    def __init__(self, index: ReplayIndex, warc: Path, body_memory_bytes: int) -> None:
        self.memory = BodyMemory(body_memory_bytes)
        self.in_flight = 0
        self._index, self._warc = index, warc

    async def __aenter__(self) -> Replay:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._index.close()

    async def exchange(self, request: Request) -> Exchange:
        """Answer a request from the archive. Raises nothing of its own: what is not there is data."""
        await trio.lowlevel.checkpoint()
        started = time.monotonic()
        made = self._answer(request, started)
        made.elapsed_s = time.monotonic() - started
        return made

    def _answer(self, request: Request, started: float) -> Exchange:
        capture = self._index.find(url_of(request))
        if capture is None:
            if request.target == ROBOTS:
                return Exchange(started, status=404, headers=parse_headers(_NO_RULES.splitlines(keepends=True)[1:]))
            return Exchange(started, error="client_error", reason=NOT_THERE)
        try:
            limit = min(request.max_body_bytes + limits.WARC_HEAD_BYTES_MAX, limits.WARC_RECORD_BYTES_MAX)
            answer, holder = self._index.read(self._warc, capture, limit)
        except warcread.Unreadable as error:
            return Exchange(started, error="client_error", reason=f"{NOT_THERE}: {error}")
        return self._exchange(request, started, capture, answer, holder)

    def _exchange(
        self, request: Request, started: float, capture: replay.Capture, answer: StoredRecord, holder: StoredRecord
    ) -> Exchange:
        head, status = answer.http_head, answer.http_status
        if answer.type == "resource" or not head:
            head, status = _made_head(answer), 200
        made = Exchange(started, status=status, header_bytes=head)
        if status is None:
            made.error, made.reason = "malformed", "no HTTP header in the record"
            return made
        made.headers = parse_headers(head.splitlines(keepends=True)[1:])
        made.peer_ip = capture.row.ip or None
        made.wanted = request.want is None or request.want(status, made.headers)
        most = request.max_body_bytes if made.wanted else limits.SNIFF_BYTES
        body = _KeptBody(self.memory, capture)
        if holder.body:
            body.add(holder.body[:most])
        made.body, made.body_bytes, made.wire_bytes = body, body.size, len(head) + body.size
        _explain(made, holder, is_cut=holder.cut or len(holder.body) > most)
        return made


def _explain(made: Exchange, holder: StoredRecord, is_cut: bool) -> None:
    """Say how a body is not whole, in the engine's words."""
    reason = holder.headers.get("warc-truncated", "").lower()
    made.truncated = "length" if is_cut else reason if reason in TRUNCATED_REASONS else None
    if made.wanted and made.truncated in _TROUBLE:
        made.error, made.reason = _TROUBLE[made.truncated]


def _made_head(record: StoredRecord) -> bytes:
    """Make the header of an answer that was stored without one (WARC-Type resource)."""
    kind = record.headers.get("content-type", "").encode("latin-1", "replace").translate(None, b"\r\n")
    return b"HTTP/1.1 200 OK\r\n" + (b"Content-Type: %s\r\n" % kind if kind else b"") + b"\r\n"


def url_of(request: Request) -> str:
    """Give the URL that a request is for, as it stands in a target."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    port = "" if request.port == (443 if request.scheme == "https" else 80) else f":{request.port}"
    return f"{request.scheme}://{host}{port}{request.target}"


class ReplayNames(Resolver):
    """Stands for the resolver: a host has the address it had when it was archived."""

    def __init__(self, index: ReplayIndex) -> None:
        super().__init__()
        self._index = index

    async def resolve(self, host: str, port: int) -> Answer:
        """Give a host's address. Raises NoName when the archive has nothing of it."""
        await trio.lowlevel.checkpoint()
        address = self._index.address_of(host)
        if address is None:
            raise NoName("no_such_name", NOT_THERE)
        return Answer([_usable(address, host)], _TTL_S, port)


def _usable(address: str, host: str) -> str:
    """Give an address as one, or one that stands for the host where the archive names none."""
    try:
        return str(ip_address(address))
    except ValueError:
        return _UNKNOWN_ADDRESS % (1 + crc32(host.encode()) % 254)


class Kept:
    """Stands for the writer: everything lies in the archive already."""

    def store(self, captures: Sequence[Capture]) -> list[Stored]:
        """Tell where captures lie."""
        return [_kept(capture) for capture in captures]


def _kept(capture: Capture) -> Stored:
    assert isinstance(capture.body, _KeptBody), capture.url
    row, body = capture.body.capture
    elsewhere = None if body is row else body.locator
    return Stored(row.locator, elsewhere, (body.digest or None) if capture.body.size else None, "", elsewhere is not None)


async def run(settings: Settings, say: Callable[[str], object]) -> FetchStage:
    """Index the archives, replay to the end of input. Raises what FetchStage.run raises, and what the drain concludes."""
    with TrioDrain(settings.grace_s) as drain:
        source = open_async_source(settings.input, Trouble(say), at_most_once=True)
        sink = open_async_sink(settings.output, parse_routes(settings.routes))
        warc = settings.dir / "warc"
        index = await trio.to_thread.run_sync(ReplayIndex, settings.from_warc, warc)
        for name, count in index.unusable.items():
            say(f"{name}: {count} records that no offset leads to: crawltool warc repair {name} -o OUT makes them usable")
        network = Replay(index, warc, settings.body_memory_bytes)
        stage = FetchStage(settings, source, sink, Kept(), drain, resolver=ReplayNames(index), network=network, say=say)
        try:
            await stage.run()
        finally:
            source.close()
            with trio.CancelScope(shield=True):
                await sink.aclose(end=not drain.stopping.is_set())
        source.trouble.check(settings.strict)
    return stage
