"""What is the body inside the chunks?

Undoes the chunked transfer coding piece by piece (RFC 9112 section 7.1), for archives whose writers kept it. What is said to
be chunked and is not is noticed: `is_broken` tells so, and the caller takes the bytes as they are. Called by
core/warcchecks and stores/warcread.
"""

from __future__ import annotations

_LINE_MAX = 4096  # of a chunk's size with its extensions
_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class Dechunker:
    """feed() gives body bytes; `is_done` after the last chunk, whose trailers are dropped."""

    def __init__(self) -> None:
        self.is_broken = self.is_done = False
        self._line = b""  # of a size, as far as it came
        self._left = 0  # of the chunk
        self._is_behind = False  # a chunk: its line end comes next

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the message; gives what of the body is in them."""
        out, at = list[bytes](), 0
        while at < len(data) and not (self.is_broken or self.is_done):
            if self._left:
                piece = data[at : at + self._left]
                out.append(piece)
                self._left -= len(piece)
                at += len(piece)
                self._is_behind = not self._left
                continue
            at = self._size(data, at)
        return b"".join(out)

    def _size(self, data: bytes, at: int) -> int:
        """Read (more of) the line with a chunk's size; gives the place behind."""
        end = data.find(b"\n", at)
        self._line += data[at : end + 1 if end >= 0 else len(data)]
        if len(self._line) > _LINE_MAX:
            self.is_broken = True
        if end < 0 or self.is_broken:
            return len(data)
        line, self._line = self._line.strip(), b""
        if self._is_behind and not line:
            self._is_behind = False
            return end + 1
        size = line.partition(b";")[0].strip()
        if self._is_behind or not size or len(size) > 16 or not _DIGITS.issuperset(size):
            self.is_broken = True
        else:
            self._left = int(size, 16)
            self.is_done = not self._left
        return end + 1


def dechunk(body: bytes) -> bytes | None:
    """Undo the coding of a body at hand, as far as it came; None when it is not chunked."""
    machine = Dechunker()
    data = machine.feed(body)
    return data if data or machine.is_done or not body else None
