"""What comes next in an archive file, and where in the file does it lie?

Unpacked bytes with a look ahead, over the segments of stores/unpacking. A record is never read beyond a member that begins
another one, and nothing is read across a broken place. Called by stores/warcwalk.
"""

from __future__ import annotations

import os
import re
from collections import deque

from crawltool import limits
from crawltool.core import warcformat
from crawltool.stores import packings, unpacking
from crawltool.stores.unpacking import Broken, Segment

PEEK = 2 * limits.KIB
NEWLINES = b"\r\n"
PATTERN_BYTES = 32
NEXT = re.compile(rb"\nWARC/[0-9]\.[0-9]+[ \t]*\r?\n", re.IGNORECASE)  # where a record begins


class Stream:
    """Unpacked bytes with their places, with a look ahead."""

    def __init__(self, descriptor: int, kind: str, start: int = 0) -> None:
        self.descriptor, self.is_plain = descriptor, kind == "plain"
        self.size = os.fstat(descriptor).st_size
        self._parts = unpacking.segments(descriptor, kind, start)
        self._queue: deque[Segment] = deque()
        self._at = self.inner = 0  # in the first segment; in its member
        self.broken: Broken | None = None  # comes after the queue
        self._is_over = False

    def _fill(self) -> bool:
        """Take one more part; False when there is nothing to be had before the end, or before a broken place."""
        if self.broken is not None or self._is_over:
            return False
        part = next(self._parts, None)
        if part is None:
            self._is_over = True
        elif isinstance(part, Broken):
            self.broken = part
        else:
            if not self._queue and part.begins:
                self.inner = 0
            self._queue.append(part)
            return True
        return False

    def peek(self, size: int) -> bytes:
        """Look at up to `size` bytes ahead, across members, not across a broken place."""
        while sum(len(part.data) for part in self._queue) - self._at < size and self._fill():
            pass
        if not self._queue:
            return b""
        first = self._queue[0].data[self._at : self._at + size]
        if len(first) == size or len(self._queue) == 1:
            return first
        return b"".join((first, *(part.data for part in list(self._queue)[1:])))[:size]

    def take(self, size: int, of_record: bool = False) -> bytes:
        """Take bytes of one segment; b'' before the end, a broken place, and (of_record) a member that begins a record."""
        if not self._queue and not self._fill():
            return b""
        part = self._queue[0]
        if of_record and part.begins and not self._at and packings.is_start(self.peek(16)) and self._is_record():
            return b""
        data = part.data[self._at : self._at + size]
        self._at += len(data)
        self.inner += len(data)
        if self._at == len(part.data):
            self._queue.popleft()
            self._at = 0
            if self._queue and self._queue[0].begins:
                self.inner = 0
        return data

    def discard(self, size: int) -> None:
        """Pass bytes by that were looked at."""
        while size > 0:
            size -= len(self.take(size)) or size

    def _is_record(self) -> bool:
        return bool(NEXT.match(b"\n" + self.peek(PATTERN_BYTES))) or warcformat.read_arc(self.peek(PEEK)) is not None

    def skip_newlines(self) -> int:
        """Pass line ends by; tell how many there were."""
        ends = 0
        while True:
            window = self.peek(8)
            blank = len(window) - len(window.lstrip(NEWLINES))
            ends += window[:blank].count(b"\n")
            self.discard(blank)
            if blank < 8:
                return ends

    def is_at_start(self) -> bool:
        """Tell whether what comes next can be reached by an offset."""
        if not self._queue:
            self._fill()
        return self.is_plain or not self._queue or (self._queue[0].begins and not self._at)

    def is_at_end(self) -> bool:
        """Tell whether nothing comes any more, not even something broken."""
        return not self._queue and not self._fill() and self.broken is None

    def place(self) -> int:
        """Give the byte of the file where what comes next begins, or its member."""
        if not self._queue and not self._fill():
            return self.broken.offset if self.broken else self.size
        return self._queue[0].offset + (self._at if self.is_plain else 0)

    def pass_broken(self) -> Broken:
        """Pass a broken place by."""
        broken, self.broken = self.broken, None
        assert broken is not None
        return broken
