"""The server of the test web: one listening socket per host, HTTP by hand so that it can be done wrongly.

Every request is one JSON line in the log, written before it is answered, with the server's monotonic and wall clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import time
from collections import Counter

from tests.web.answers import Answer, End, Handler, Request, Script, Site, text

HEADER_BYTES_MAX = 256 * 1024
NOT_FOUND = text("there is no such page\n", status=404)
BAD_REQUEST = Answer(b"bad request\n", 400, content_type="text/plain", hang_up=True)


def wants_close(head: bytes) -> bool:
    """Tell whether the client asked that the connection ends after the answer."""
    return b"\r\nconnection: close" in head.lower() or b" HTTP/1.0" in head.partition(b"\r\n")[0]


class Log:
    """Appends one line per request to a file that others may read at any moment."""

    def __init__(self, path: str | None) -> None:
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **fields: object) -> None:
        """Write one line. One write call: a reader never sees half of two lines mixed."""
        if self._file is not None:
            os.write(self._file, json.dumps(fields).encode() + b"\n")


class Host:
    """One listening socket: its site, its handler, and how often each target was asked for."""

    def __init__(self, site: Site, handler: Handler, log: Log, connections: Counter[str]) -> None:
        self.site, self.handler, self.log, self.connections = site, handler, log, connections
        self.targets: Counter[str] = Counter()

    def answer(self, connection: Connection, head: bytes) -> Answer | Script:
        """Log a request and decide what to do with it."""
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target = rest.rpartition(" ")[0]
        fields = (line.partition(":") for line in lines[1:])
        headers = {name.lower(): value.strip() for name, _, value in fields}
        self.site.asked += 1
        self.targets[target] += 1
        connection.number += 1
        request = Request(method, target, headers, connection.serial, connection.number, self.targets[target])
        self.log.write(
            at=time.time(), t=time.monotonic(), peer=connection.peer, server=self.site.address, site=self.site.name,
            host=headers.get("host", ""), method=method, target=target, connection=connection.serial, number=connection.number,
            opened=connection.opened, agent=headers.get("user-agent", ""), sender=headers.get("from", ""),
            if_none_match=headers.get("if-none-match"), if_modified_since=headers.get("if-modified-since"),
        )  # fmt: skip
        if method not in ("GET", "HEAD") or not target:
            return BAD_REQUEST
        answer = self.handler(request)
        return NOT_FOUND if answer is None else answer


class Connection(asyncio.Protocol):
    """One connection: reads requests one after the other and plays what the host decides."""

    def __init__(self, host: Host) -> None:
        self.host, self.buffer, self.number, self.opened = host, b"", 0, time.monotonic()
        host.connections["all"] += 1
        self.serial = host.connections["all"]
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who came."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.peer = ":".join(map(str, transport.get_extra_info("peername")[:2]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop whatever was still being said."""
        self.writable.set()
        if self.task is not None:
            self.task.cancel()
        self._stop_timer()

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """It caught up."""
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        """Collect a request head; requests that come while one is being answered wait."""
        self.buffer += data
        self._stop_timer()
        if self.task is None:
            self._next()

    def _next(self) -> None:
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0 and not self.transport.is_closing():
            head, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            answer = self.host.answer(self, head)
            if isinstance(answer, Answer) and not answer.wait_s and len(answer.body) < 200_000:
                self._send(answer, head)
                continue
            self.task = asyncio.ensure_future(self._play(answer, head))
            return
        if self.buffer.startswith(b"\x16\x03"):  # TLS to a plain port: say so, as servers do
            self._send(BAD_REQUEST, b"")
        elif len(self.buffer) > HEADER_BYTES_MAX:
            self.transport.abort()

    def _send(self, answer: Answer, head: bytes) -> None:
        self.transport.write(answer.head() + (b"" if head.startswith(b"HEAD ") else answer.body))
        if answer.hang_up or wants_close(head):
            self.transport.close()
        elif answer.idle_close_s is not None:
            self.timer = asyncio.get_running_loop().call_later(answer.idle_close_s, self.transport.close)

    async def _play(self, answer: Answer | Script, head: bytes) -> None:
        if isinstance(answer, Answer):
            await asyncio.sleep(answer.wait_s)
            self._send(answer, head)
        else:
            for step in answer.steps:
                if self.transport.is_closing():
                    return
                if not await self._step(step):
                    return
            if wants_close(head):
                self.transport.close()
        self.task = None
        self._next()

    async def _step(self, step: bytes | float | End) -> bool:
        """Do one step; False when the script ends here."""
        if isinstance(step, bytes):
            self.transport.write(step)
            await self.writable.wait()
            await asyncio.sleep(0)
        elif isinstance(step, End):
            if step is End.RESET:
                linger = struct.pack("ii", 1, 0)
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.transport.abort()
            elif step is End.CLOSE:
                self.transport.close()
            return False
        else:
            await asyncio.sleep(step)
        return True

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def listen(addresses: list[str], port: int) -> dict[str, socket.socket]:
    """Bind one port on every address. Port 0: one that is free on all of them. Raises OSError when taken."""
    for attempt in range(50):
        bound: dict[str, socket.socket] = {}
        chosen = port
        try:
            for address in addresses:
                sock = socket.socket()
                bound[address] = sock
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((address, chosen))
                sock.listen(1024)
                chosen = sock.getsockname()[1]
            return bound
        except OSError:
            for sock in bound.values():
                sock.close()
            if port or attempt == 49:
                raise
    raise AssertionError("unreachable")


async def serve(hosts: list[tuple[Host, socket.socket]], end_with_stdin: bool = False) -> None:
    """Serve for ever, or until stdin is closed: then whoever started us is gone."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    if end_with_stdin:
        loop.add_reader(0, ended.set)
    for host, sock in hosts:
        sock.setblocking(False)
        await loop.create_server(lambda host=host: Connection(host), sock=sock, backlog=1024)  # type: ignore[misc]
    await ended.wait()
