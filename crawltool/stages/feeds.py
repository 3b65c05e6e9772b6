"""What lies in a place that records come from, now, and when may it be let go of?

A feed gives a batch without waiting: all complete lines that are there, at most about limits.PIPE_READ_BYTES; under load
batches are large, when idle they are prompt, and there is no timer (DESIGN section 4, Filters). Law 4 is the stage's:
publish, save its own memory, then batch.done(). Source waits for a feed in a synchronous filter; stages/sources does the
same in trio. Seen from filters this file is a part of stages/lines.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO

from crawltool import limits
from crawltool.errors import NoInput
from crawltool.stages import where as places
from crawltool.stages.drain import FilterDrain
from crawltool.stages.where import Splitter, Trouble, Where
from crawltool.stores.spoolread import Segment, SpoolReader

READ_BYTES = 128 * limits.KIB  # of a pipe at once; Linux pipes hold 64 KiB
SEGMENT_READ_BYTES = 8 * limits.SEGMENT_BYTES_MAX  # room for links sent ahead: our own segments come whole
READS_MAX = 64  # of a pipe, for one batch: a fast writer must not keep a batch from ending


class Batch:
    """Whole lines, each with its newline.

    name: the segment they came from (with @OFFSET where one came in pieces). first: the number of the first line in
    `origin`; exact for the others only where blank lines are kept.
    """

    __slots__ = ("_done", "first", "lines", "name", "origin")

    def __init__(
        self,
        lines: list[bytes],
        *,
        name: str | None = None,
        origin: str = "-",
        first: int = 1,
    ) -> None:
        self.lines, self.name, self.origin, self.first = lines, name, origin, first
        self._done: Callable[[], None] | None = None

    def on_done(self, act: Callable[[], None]) -> None:
        """Say what letting go means."""
        self._done = act

    def done(self) -> None:
        """Let go of the input; call it when what was made of it is published and saved."""
        if self._done is not None:
            self._done()
            self._done = None


class Feed:
    """One place to read from, without waiting: read() gives what is there now.

    `ended` turns true when nothing will come any more; `fd` is what to wait for, None when there is never a wait (files) or
    no descriptor to wait on. Common to the synchronous and the trio side.
    """

    fd: int | None = None
    ended = False

    def __init__(self, trouble: Trouble, origin: str, *, keep_blank: bool = False) -> None:
        self.trouble, self.origin = trouble, origin
        self._keep_blank = keep_blank

    def read(self) -> Batch | None:
        """Give a batch, or None when there is nothing now (see `ended`)."""
        raise NotImplementedError

    def stop(self) -> None:
        """Begin nothing new: a spool claims no further segment. A pipe is read to its end all the same."""

    def close(self) -> None:
        """Let go."""

    def _splitter(self, origin: str) -> Splitter:
        return Splitter(
            lambda number: self.trouble.refuse(origin, number, "longer than a record may be"), keep_blank=self._keep_blank
        )


class PipeFeed(Feed):
    """A pipe, socket or terminal that somebody else writes."""

    def __init__(self, fd: int, trouble: Trouble, origin: str, *, keep_blank: bool = False) -> None:
        super().__init__(trouble, origin, keep_blank=keep_blank)
        self.fd: int | None = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._lines = self._splitter(origin)

    def read(self) -> Batch | None:
        """Give all lines that ended; one read when the writer is slow, several when it is fast."""
        lines: list[bytes] = []
        size, first = 0, self._lines.line_number + 1
        for _ in range(READS_MAX):
            if self.ended or size >= limits.PIPE_READ_BYTES or not self._poll.poll(0):
                break
            data = self._read_once()
            if data is None:
                break
            size += len(data)
            lines += self._lines.feed(data) if data else self._lines.end()
            self.ended = not data
        return Batch(lines, origin=self.origin, first=first) if lines else None

    def _read_once(self) -> bytes | None:
        assert self.fd is not None
        try:
            # poll(2) said there is something: no O_NONBLOCK, which would change the terminal under everybody's feet.
            return os.read(self.fd, READ_BYTES)
        except BlockingIOError:  # somebody else did set it
            return None
        except OSError as error:
            if error.errno in (errno.ECONNRESET, errno.EIO):  # the other end of a socket or terminal is gone
                return b""
            raise


class FilesFeed(Feed):
    """Files on disk, one after the other."""

    def __init__(
        self, where: Where, trouble: Trouble, files: Iterator[tuple[str, BinaryIO]] | None = None, *, keep_blank: bool = False
    ) -> None:
        super().__init__(trouble, where.name, keep_blank=keep_blank)
        chosen = places.paths(where) if files is None else []
        self._files = files or ((str(path), places.open_file(path)) for path in chosen)
        self._batches: Iterator[Batch] = iter(())

    def read(self) -> Batch | None:
        """Give the lines of the next read."""
        while not self.ended:
            batch = next(self._batches, None)
            if batch is not None:
                return batch
            self._next_file()
        return None

    def _next_file(self) -> None:
        try:
            self.origin, file = next(self._files)
        except StopIteration:
            self.ended = True
        except OSError as error:
            raise NoInput(f"{self.origin}: {error.strerror}") from error
        else:
            self._batches = self._read_file(self.origin, file)

    def _read_file(self, origin: str, file: BinaryIO) -> Iterator[Batch]:
        splitter = self._splitter(origin)
        with file:
            for lines, first in self._split(splitter, origin, file):
                if lines:
                    yield Batch(lines, origin=origin, first=first)

    def _split(self, splitter: Splitter, origin: str, file: BinaryIO) -> Iterator[tuple[list[bytes], int]]:
        try:
            for data in places.pieces(file):
                first = splitter.line_number + 1
                yield splitter.feed(data), first
        except places.UNPACK_ERRORS as error:
            self.trouble.refuse(origin, 0, f"compressed file is torn: {error}")
        first = splitter.line_number + 1
        yield splitter.end(), first


class SpoolFeed(Feed):
    """Segments of a spool; a batch is a whole segment unless that is larger than any of ours."""

    def __init__(self, reader: SpoolReader, trouble: Trouble, *, endless: bool = False) -> None:
        super().__init__(trouble, f"spool:{reader.path}")
        self.reader, self._endless = reader, endless
        self.fd = reader.trigger_fd()
        self._open: Iterator[Batch] = iter(())
        self._stopped = False

    def read(self) -> Batch | None:
        """Give the lines of the next segment, claiming it."""
        while True:  # ends: each turn uses up a segment
            batch = next(self._open, None)
            if batch is not None:
                return batch
            segment = None if self._stopped else self.reader.claim()
            if segment is None:
                self.ended = self._stopped or (not self._endless and self.reader.ended())
                return None
            self._open = self._batches(segment)

    def _batches(self, segment: Segment) -> Iterator[Batch]:
        """Give a segment's batches; the last one lets go of it. One that holds no line at all is let go of here."""
        splitter = self._splitter(f"{self.origin}/{segment.name}")
        whole = segment.size_bytes <= SEGMENT_READ_BYTES
        last: Batch | None = None
        offset = 0
        for data in places.pieces(segment.file, SEGMENT_READ_BYTES if whole else limits.PIPE_READ_BYTES):
            offset += len(data)
            lines = splitter.feed(data) + (splitter.end() if offset >= segment.size_bytes else [])
            if not lines:
                continue
            if last is not None:
                yield last
            # Read again after a kill, the same bytes get the same name: the frontier knows what it has applied.
            last = Batch(lines, name=segment.name if whole else f"{segment.name}@{offset}", origin=self.origin)
        if last is None:
            segment.done()
            return
        last.on_done(segment.done)
        yield last

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopped = True

    def close(self) -> None:
        """Publish again what was claimed and not done."""
        self.reader.close()


def open_feed(
    text: str,
    trouble: Trouble | None = None,
    *,
    at_most_once: bool = False,
    endless: bool = False,
    keep_blank: bool = False,
    stdin: int = 0,
) -> Feed:
    """Open a WHERE for reading. Raises Misuse, NoInput. endless: a spool that others may come back to (the inbox)."""
    place = places.parse(text)
    trouble = trouble or Trouble()
    if place.kind == "spool":
        return SpoolFeed(SpoolReader(place.name, at_most_once=at_most_once), trouble, endless=endless)
    if place.kind == "null":
        return FilesFeed(place, trouble, iter(()))
    if place.kind == "std":
        if _is_file(stdin):
            return FilesFeed(place, trouble, iter([("-", os.fdopen(os.dup(stdin), "rb", buffering=0))]), keep_blank=keep_blank)
        return PipeFeed(stdin, trouble, "-", keep_blank=keep_blank)
    paths = places.paths(place)
    if len(paths) == 1 and not paths[0].is_file():  # a named FIFO: waits for a writer, as the shell does
        return PipeFeed(os.open(paths[0], os.O_RDONLY | os.O_CLOEXEC), trouble, str(paths[0]), keep_blank=keep_blank)
    return FilesFeed(place, trouble, keep_blank=keep_blank)


def _is_file(fd: int) -> bool:
    """Tell whether a descriptor never makes one wait, and cannot be polled by epoll: a file, a block device, /dev/null."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))


class Source:
    """Iterate over batches until the input ends (a spool also ends when the drain begins). For synchronous filters."""

    def __init__(self, feed: Feed, drain: FilterDrain | None = None) -> None:
        self.feed, self.trouble = feed, feed.trouble
        self._drain = drain

    def __iter__(self) -> Iterator[Batch]:
        while not self.feed.ended:
            if self._drain is not None and self._drain.stopping:
                self.feed.stop()
            batch = self.feed.read()
            if batch is not None:
                yield batch
            elif not self.feed.ended:
                self._wait()

    def _wait(self) -> None:
        spool = isinstance(self.feed, SpoolFeed)
        watched = [self.feed.fd] if self.feed.fd is not None else []
        if spool and self._drain is not None and not self._drain.stopping:
            watched.append(self._drain.wakeup_fd)
        select.select(watched, [], [], limits.SPOOL_RESCAN_S if spool else None)

    def close(self) -> None:
        """Let go of the place."""
        self.feed.close()


def open_source(
    text: str, drain: FilterDrain | None = None, trouble: Trouble | None = None, *, keep_blank: bool = False
) -> Source:
    """Open a WHERE for a synchronous filter. Raises Misuse, NoInput."""
    return Source(open_feed(text, trouble, keep_blank=keep_blank), drain)
