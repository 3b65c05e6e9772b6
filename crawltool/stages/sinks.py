"""How does a trio stage publish without standing still: the frontier its targets, fetch its outcomes?

Any task may publish; the call returns when its lines are in the pipe, the file, or a published segment of a spool (law 4).
The frontier calls it in a writer task of its own, so that it never waits on a write. When the reader has gone publish()
raises ReaderGone once and drops what comes later, so that fetch can finish its WARC files. Called by frontier and fetch.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence

import trio

from crawltool import limits
from crawltool.stages.drain import ReaderGone
from crawltool.stages.outlets import GONE_ERRNOS, FileOutlet, Outlet, SpoolOutlet, open_outlet, parse_routes, room_waits, sort
from crawltool.stores.spool import SpoolWriter

__all__ = ["AsyncSink", "open_async_sink", "parse_routes"]

PIPE_BUF = 4096  # what poll(2) promises a writer; POSIX promises 512


class AsyncOutlet:
    """One place to write to; this one is for places that do not make one wait (files, null)."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    async def write(self, lines: Sequence[bytes]) -> None:
        """Publish lines."""
        self._outlet.write(lines)
        await trio.lowlevel.checkpoint()

    async def flush(self) -> None:
        """Publish what a cancelled write left over."""

    def close(self, *, end: bool = False) -> None:
        """Let go; end: nothing will ever be added (spools)."""
        self._outlet.close(end=end)


class PipeOutlet(AsyncOutlet):
    """A pipe, FIFO, socket or terminal written from trio.

    O_NONBLOCK belongs to the open file, which the shell, stderr and our neighbours may share, so it is set on a second
    opening of the same pipe through /proc; where that does not work, no write is larger than what poll(2) promises.
    """

    def __init__(self, fd: int, name: str) -> None:
        super().__init__(FileOutlet(fd, name))
        self.fd = fd
        self._own: int | None = None
        self._rest = memoryview(b"")
        self._turn = trio.Lock()
        with contextlib.suppress(OSError):
            self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)

    async def write(self, lines: Sequence[bytes]) -> None:
        """Write all lines. Cancelled in the middle of a line, it keeps the rest, which the next write sends first."""
        async with self._turn:
            await self._send()
            self._rest = memoryview(b"".join(lines))
            await self._send()

    async def flush(self) -> None:
        """Send what is left over."""
        async with self._turn:
            await self._send()

    async def _send(self) -> None:
        fd = self.fd if self._own is None else self._own
        while self._rest:
            if self._own is None:
                await trio.lowlevel.wait_writable(fd)
            try:
                sent = os.write(fd, self._rest[:PIPE_BUF] if self._own is None else self._rest)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(fd)
                continue
            except OSError as error:
                if error.errno in GONE_ERRNOS:
                    self._rest = memoryview(b"")
                    raise ReaderGone from None
                raise
            self._rest = self._rest[sent:]

    def close(self, *, end: bool = False) -> None:
        """Close both openings."""
        if self._own is not None:
            os.close(self._own)
            self._own = None
        super().close()


class SpoolGatherer(AsyncOutlet):
    """A spool: lines of many tasks become one segment."""

    def __init__(self, outlet: SpoolOutlet) -> None:
        super().__init__(outlet)
        self.writer: SpoolWriter = outlet.writer
        self._pending: list[bytes] = []
        self._size = self._added = self._published = 0  # bytes pending; lines, ever
        self._turn = trio.Lock()
        self._begin_segment()

    def _begin_segment(self) -> None:
        self._closes_at, self._is_full = trio.current_time() + limits.SEGMENT_AGE_S, trio.Event()

    async def write(self, lines: Sequence[bytes]) -> None:
        """Add lines to the pending segment; return when it is published: at SEGMENT_AGE_S at the latest, given room."""
        if not self._pending:
            self._begin_segment()
        self._pending += lines
        self._size += sum(map(len, lines))
        self._added += len(lines)
        mine = self._added
        if len(self._pending) >= self.writer.records_max or self._size >= limits.SEGMENT_BYTES_MAX:
            self._is_full.set()
        with trio.move_on_at(self._closes_at):
            await self._is_full.wait()
        async with self._turn:
            if self._published < mine:
                await self._publish_pending()

    async def flush(self) -> None:
        """Publish what is pending."""
        async with self._turn:
            await self._publish_pending()

    async def _publish_pending(self) -> None:
        for pause in room_waits():
            if not self.writer.full():
                break
            await trio.sleep(pause)
        lines, size = self._pending[:], self._size
        # Not abandoned when cancelled: a segment is in or it is not, and we know which.
        await trio.to_thread.run_sync(self.writer.publish, lines)
        del self._pending[: len(lines)]
        self._size -= size
        self._published += len(lines)
        if self._pending:  # came while the thread wrote: their segment begins now
            self._begin_segment()


class AsyncSink:
    """For trio stages; any task may publish."""

    def __init__(self, main: AsyncOutlet, routes: Mapping[str, AsyncOutlet] | None = None) -> None:
        self.main, self.routes = main, dict(routes or {})
        self.gone = False  # the reader has gone; what is published now is dropped

    async def publish(self, lines: Sequence[bytes]) -> None:
        """Publish lines, each with its newline. Raises ReaderGone, DiskTrouble."""
        if self.gone:
            return
        for outlet, some in sort(lines, self.main, self.routes):
            try:
                await outlet.write(some)
            except ReaderGone:
                self.gone = True
                raise

    async def aclose(self, *, end: bool = False) -> None:
        """Publish what cancelled calls left over, then let go: the reader sees the end. Raises ReaderGone, DiskTrouble."""
        for outlet in (*self.routes.values(), self.main):
            try:
                if not self.gone:
                    await outlet.flush()
            finally:
                outlet.close(end=end)


def open_async_sink(
    where: str, routes: Mapping[str, str] | None = None, *, targets: bool = False, depth_max: int | None = limits.SPOOL_DEPTH_MAX
) -> AsyncSink:
    """Open places for a trio stage, inside trio.run. targets: the lines are the frontier's. Raises as open_sink does."""

    def one(text: str) -> AsyncOutlet:
        return adapt(open_outlet(text, targets=targets, depth_max=depth_max))

    return AsyncSink(one(where), {kind: one(text) for kind, text in (routes or {}).items()})


def adapt(outlet: Outlet) -> AsyncOutlet:
    """Choose how trio writes to a place."""
    if isinstance(outlet, SpoolOutlet):
        return SpoolGatherer(outlet)
    if isinstance(outlet, FileOutlet) and not stat.S_ISREG(os.fstat(outlet.fd).st_mode):
        return PipeOutlet(outlet.fd, outlet.name)
    return AsyncOutlet(outlet)
