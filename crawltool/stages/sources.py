"""How does a trio stage wait for records: the frontier for its pipe and its inbox, fetch for its targets?

The feeds are those of stages/feeds, which never wait; here one task waits until a look is worth it. Law 4 is the stage's:
batch.done() comes after publishing and saving. Called by frontier and fetch.
"""

from __future__ import annotations

import contextlib
import select

import trio

from crawltool import limits
from crawltool.stages.feeds import Batch, Feed, SpoolFeed, open_feed
from crawltool.stages.where import Trouble

__all__ = ["AsyncSource", "Batch", "Feed", "Inputs", "SpoolFeed", "open_async_source"]


class AsyncSource:
    """Give batches to a trio stage, one call of next() at a time."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.trouble = feed, feed.trouble

    @property
    def ended(self) -> bool:
        """Tell whether nothing will come any more."""
        return self.feed.ended

    def poll(self) -> Batch | None:
        """Give what is there now, without waiting."""
        return self.feed.read()

    async def next(self, timeout_s: float = float("inf")) -> Batch | None:
        """Wait for a batch: an empty one when the time comes first, None at the end of input."""
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(max(0.0, timeout_s)):
            while True:
                if (batch := self.feed.read()) is not None:
                    return batch
                if self.feed.ended:
                    return None
                await self.wait()
        return Batch([], origin=self.feed.origin)

    async def wait(self) -> None:
        """Return when it is worth to look again."""
        within = limits.SPOOL_RESCAN_S if isinstance(self.feed, SpoolFeed) else float("inf")
        with trio.move_on_after(within):
            if self.feed.fd is None:
                await trio.sleep(within if within < float("inf") else 0)
            else:
                await trio.lowlevel.wait_readable(self.feed.fd)

    def stop(self) -> None:
        """Begin nothing new: a spool is over with the segment in hand, a pipe is read to its end."""
        self.feed.stop()

    def close(self) -> None:
        """Let go of the place."""
        self.feed.close()


def open_async_source(
    text: str, trouble: Trouble | None = None, *, at_most_once: bool = False, endless: bool = False
) -> AsyncSource:
    """Open a WHERE for a trio stage. Raises Misuse, NoInput.

    at_most_once: the lines are targets (fetch). endless: a spool does not end by itself (the frontier's inbox).
    """
    return AsyncSource(open_feed(text, trouble, at_most_once=at_most_once, endless=endless))


class Inputs:
    """Several sources as one: the frontier's pipe and its inbox. Each batch says where it came from by `origin`."""

    def __init__(self, *sources: AsyncSource) -> None:
        self.sources = list(sources)
        self._turn = 0
        self._epoll = select.epoll()
        self._watched: set[int] = set()

    def add(self, source: AsyncSource) -> None:
        """Read one more source from now on."""
        self.sources.append(source)

    def poll(self) -> Batch | None:
        """Give what is there now, the sources taking turns."""
        for _ in self.sources:
            source = self.sources[self._turn % len(self.sources)]
            self._turn += 1
            if not source.ended and (batch := source.poll()) is not None:
                return batch
        return None

    @property
    def ended(self) -> bool:
        """Tell whether all sources are over."""
        return all(source.ended for source in self.sources)

    async def next(self, timeout_s: float = float("inf")) -> Batch | None:
        """Wait for a batch of any source: an empty one when the time comes first or a source ends, None when all are over."""
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(max(0.0, timeout_s)):
            while True:
                ended = [source.ended for source in self.sources]
                if (batch := self.poll()) is not None:
                    return batch
                if self.ended:
                    return None
                if ended != [source.ended for source in self.sources]:
                    break  # the caller looks at each source's `ended`
                await self._wait()
        return Batch([])

    async def _wait(self) -> None:
        """Return when it is worth to look again. One epoll stands for all sources: a task for each cost ten times as much."""
        for source in self.sources:
            fd = source.feed.fd
            if fd is not None and source.ended == (fd in self._watched):
                if source.ended:
                    self._epoll.unregister(fd)
                else:
                    self._epoll.register(fd, select.EPOLLIN)  # the default has EPOLLOUT: a spool's FIFO is always writable
                self._watched ^= {fd}
        with trio.move_on_after(limits.SPOOL_RESCAN_S):
            await trio.lowlevel.wait_readable(self._epoll.fileno())

    def close(self) -> None:
        """Let go of all."""
        self._epoll.close()
        with contextlib.ExitStack() as stack:
            for source in self.sources:
                stack.callback(source.close)
