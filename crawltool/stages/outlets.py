"""How are records published, and when is a write done?

publish() is one write of all lines; it returns when they are in the pipe, in the file, or in a published segment of a
spool: only then may the input be let go (law 4). --route sends records of one type elsewhere, before the others go.
Sink is for synchronous filters; stages/sinks does the same in trio. Seen from filters this file is a part of
stages/lines.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from crawltool import limits, records
from crawltool.errors import Misuse
from crawltool.stages import where as places
from crawltool.stages.drain import ReaderGone
from crawltool.stages.where import Where
from crawltool.stores import atomic
from crawltool.stores.spool import SpoolWriter

ROOM_WAIT_S = (0.01, 0.2)  # between looks at a full spool: first and longest
GONE_ERRNOS = frozenset({errno.EPIPE, errno.ECONNRESET})


class Outlet:
    """One place to write to; this one swallows everything (--route TYPE=null)."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Publish lines; may block."""

    def close(self, *, end: bool = False) -> None:
        """Let go; end: nothing will ever be added (spools)."""


class FileOutlet(Outlet):
    """A file or a descriptor that takes all there is: an append-only file, or a pipe written with blocking writes."""

    def __init__(self, fd: int, name: str) -> None:
        self.fd, self.name = fd, name

    def write(self, lines: Sequence[bytes]) -> None:
        """Write all lines with one write(2) (more only when the system takes less)."""
        view = memoryview(b"".join(lines))
        with atomic.disk(self.name):
            while view:
                view = view[self._write_some(view) :]

    def _write_some(self, view: memoryview) -> int:
        try:
            return os.write(self.fd, view)
        except BlockingIOError:  # somebody who shares this descriptor made it non-blocking
            select.select([], [self.fd], [])
            return 0
        except OSError as error:
            if error.errno in GONE_ERRNOS:
                raise ReaderGone from None
            raise

    def close(self, *, end: bool = False) -> None:
        """Close, so that the reader sees the end; a standard descriptor is left pointing nowhere."""
        if self.fd > 2:
            os.close(self.fd)
            return
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, self.fd)
        os.close(nowhere)


class SpoolOutlet(Outlet):
    """A spool. A forward spool that is full makes the writer wait."""

    def __init__(self, writer: SpoolWriter) -> None:
        self.writer = writer

    def write(self, lines: Sequence[bytes]) -> None:
        """Publish a segment at once (or several): the filter's batch is what fills it."""
        for pause in room_waits():
            if not self.writer.full():
                break
            time.sleep(pause)
        self.writer.publish(lines)

    def close(self, *, end: bool = False) -> None:
        """Let go of the spool; with end its readers end when they have read it."""
        self.writer.close(end=end)


def room_waits() -> Iterator[float]:
    """Give the seconds between looks at a full spool, without end: its readers decide."""
    pause = ROOM_WAIT_S[0]
    while True:
        yield pause
        pause = min(pause * 2, ROOM_WAIT_S[1])


def parse_routes(routes: Sequence[str]) -> dict[str, str]:
    """Read the values of --route, TYPE=WHERE. Raises Misuse."""
    found: dict[str, str] = {}
    for route in routes:
        kind, equals, where = route.partition("=")
        if not equals or kind not in records.TYPES:
            raise Misuse(f"--route {route}: write TYPE=WHERE with one of {', '.join(records.TYPES)}")
        found[kind] = where
    return found


def open_outlet(text: str, *, depth_max: int | None, stdout: int = 1, targets: bool = False) -> Outlet:
    """Open a place for writing. targets: small segments, and no fsync, for a lost target costs what a kill costs."""
    place = places.parse(text)
    if place.kind == "null":
        return Outlet()
    if place.kind == "spool":
        most = limits.TARGET_SEGMENT_RECORDS_MAX if targets else limits.SEGMENT_RECORDS_MAX
        return SpoolOutlet(SpoolWriter(place.name, records_max=most, depth_max=depth_max, durable=not targets))
    return FileOutlet(stdout if place.kind == "std" else _open_file(place), text)


def _open_file(place: Where) -> int:
    """Open a file for appending: an interrupted stage that is run again must not wipe out what it had written."""
    if place.kind == "set" or place.name.endswith((".zst", ".gz")):
        raise Misuse(f"{place.name}: records are written to a plain file, or to spool:DIR")
    with atomic.disk(place.name):
        fd = os.open(place.name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # a FIFO: opened for writing only, else a gone reader is never seen
        os.close(fd)
        return os.open(place.name, os.O_WRONLY | os.O_CLOEXEC)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")  # a kill tore the last line; the next record gets its own
    return fd


Kind = TypeVar("Kind")


def sort(lines: Sequence[bytes], main: Kind, routes: Mapping[str, Kind]) -> list[tuple[Kind, Sequence[bytes]]]:
    """Give what each outlet gets, the main one last (a text before its outcome)."""
    if not routes:
        return [(main, lines)] if lines else []
    chosen: dict[str | None, list[bytes]] = {}
    for line in lines:
        kind = records.type_of(line)
        chosen.setdefault(kind if kind in routes else None, []).append(line)
    rest = chosen.pop(None, None)
    found: list[tuple[Kind, Sequence[bytes]]] = [(routes[str(kind)], some) for kind, some in chosen.items()]
    return [*found, (main, rest)] if rest else found


class Sink:
    """For synchronous filters."""

    def __init__(self, main: Outlet, routes: Mapping[str, Outlet] | None = None) -> None:
        self.main, self.routes = main, dict(routes or {})

    def publish(self, lines: Sequence[bytes]) -> None:
        """Publish lines, each with its newline, with one write. Raises ReaderGone, DiskTrouble."""
        for outlet, some in sort(lines, self.main, self.routes):
            outlet.write(some)

    def close(self, *, end: bool = False) -> None:
        """Let go of all outlets; end: at the natural end of input, so that a spool's readers end too."""
        for outlet in (*self.routes.values(), self.main):
            outlet.close(end=end)


def open_sink(
    where: str, routes: Mapping[str, str] | None = None, *, depth_max: int | None = limits.SPOOL_DEPTH_MAX, stdout: int = 1
) -> Sink:
    """Open places for a synchronous filter. depth_max: None for an inbox. Raises Misuse, CannotHold, DiskTrouble."""
    others = {kind: open_outlet(text, depth_max=depth_max, stdout=stdout) for kind, text in (routes or {}).items()}
    return Sink(open_outlet(where, depth_max=depth_max, stdout=stdout), others)
