"""What do the WHERE of -i and -o, and the bytes behind it, mean?

The grammar (DESIGN section 7): `-`, a file, a directory or glob of *.jsonl[.zst|.gz] (a read-only set), `spool:DIR`, and
`null` for --route. Splitter turns bytes into whole lines in bounded memory; Trouble counts the lines that are none and
shows a person the first few. Used by stages/sources, stages/sinks and stages/seed.
"""

from __future__ import annotations

import glob
import gzip
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, Literal, NamedTuple, cast

import zstandard

from crawltool import limits
from crawltool.errors import BadRecord, Misuse, NoInput

SUFFIXES = (".jsonl", ".jsonl.zst", ".jsonl.gz")
SHOWN = 5  # bad lines that a person sees; the rest is counted


class Where(NamedTuple):
    """A parsed WHERE; name is the path, or `-` or `null`."""

    kind: Literal["std", "file", "set", "spool", "null"]
    name: str


def parse(text: str) -> Where:
    """Read a WHERE. Raises Misuse when it is empty or of a scheme we do not have."""
    if text in ("-", "null"):
        return Where("std" if text == "-" else "null", text)
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "spool" and rest:
        return Where("spool", rest)
    if not text or (colon and (scheme == "spool" or rest.startswith("//"))):
        raise Misuse(f"{text!r} is not a place for records: write -, a file, a directory or glob of *.jsonl, or spool:DIR")
    if Path(text).is_dir() or (glob.has_magic(text) and not Path(text).exists()):
        return Where("set", text)
    return Where("file", text)


def paths(where: Where) -> list[Path]:
    """Give the files of a file or set, by name. Raises NoInput when there is none."""
    if where.kind == "file":
        if not Path(where.name).exists():
            raise NoInput(f"{where.name}: no such file")
        return [Path(where.name)]
    folder = Path(where.name)
    found = folder.iterdir() if folder.is_dir() else map(Path, glob.iglob(where.name, recursive=True))  # noqa: PTH207 - relative or absolute, as the shell does
    chosen = sorted(path for path in found if path.name.endswith(SUFFIXES) and path.is_file())
    if not chosen:
        raise NoInput(f"{where.name}: no {' or '.join('*' + suffix for suffix in SUFFIXES)} there")
    return chosen


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading, unpacking .zst and .gz on the way; reads are bounded by what is asked for."""
    file = path.open("rb", buffering=0)
    if path.name.endswith(".zst"):
        return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True))
    if path.name.endswith(".gz"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=cast(IO[bytes], file)))
    return cast(BinaryIO, file)


# What a torn or foreign compressed file raises while it is read; the lines before it were whole.
UNPACK_ERRORS: tuple[type[Exception], ...] = (EOFError, zstandard.ZstdError, gzip.BadGzipFile)


class Trouble:
    """Count bad lines by reason and show the first few, with control characters escaped: the web writes them too."""

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._say = say or (lambda text: print(text, file=sys.stderr))

    @property
    def total(self) -> int:
        """Give the number of bad lines."""
        return self.counts.total()

    def refuse(self, origin: str, number: int, reason: str, line: bytes = b"") -> None:
        """Count a line; number counts from 1, 0 when it is not known."""
        self.counts[reason] += 1
        if self.total <= SHOWN:
            place = f"{origin}:{number}" if number else origin
            self._say(f"{place}: {reason}{': ' + shown(line) if line else ''}")

    def check(self, strict: bool) -> None:
        """Raise BadRecord if lines were bad and strict is set."""
        if strict and self.total:
            raise BadRecord(self.summary())

    def summary(self) -> str:
        """Say how many of what; '' when there were none."""
        if not self.total:
            return ""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.counts.most_common())
        return f"{self.total} bad line{'s' if self.total > 1 else ''} ({reasons})"


def shown(line: bytes, width: int = 80) -> str:
    """Make a line fit to be printed on a terminal: bounded, and no byte of it can command the terminal."""
    text = line[: width * 4].rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    safe = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text[: width + 1])
    return safe if len(safe) <= width else safe[: width - 1] + "…"


class Splitter:
    """Cut a stream of bytes into whole lines, each with its newline, at b"\\n" only.

    A line beyond line_bytes_max is dropped as it comes and handed to `oversize` with its number: memory is bounded by one
    line and one read. Blank lines are left out unless keep_blank, which also puts a blank in the place of a dropped line, so
    that numbers can be counted.
    """

    def __init__(
        self,
        oversize: Callable[[int], None] = lambda number: None,
        *,
        line_bytes_max: int = limits.RECORD_BYTES_MAX,
        keep_blank: bool = False,
    ) -> None:
        self.line_number = 0  # of the last line that ended
        self._oversize, self._line_bytes_max, self._keep_blank = oversize, line_bytes_max, keep_blank
        self._parts: list[bytes] = []  # of the line that has not ended
        self._held = 0
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; give the lines that ended."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._hold(data)
            return []
        whole = data[:end]
        if self._parts or self._dropping:
            whole = self._rejoin(data, end)
        lines = io.BytesIO(whole).readlines()
        self._hold(data[end:])
        return self._checked(lines)

    def end(self) -> list[bytes]:
        """Give the last line when it had no newline."""
        return self.feed(b"\n") if self._parts or self._dropping else []

    def _hold(self, data: bytes) -> None:
        self._held += len(data)
        if self._held > self._line_bytes_max:
            self._parts, self._dropping = [], True
        elif data:
            self._parts.append(data)

    def _rejoin(self, data: bytes, end: int) -> bytes:
        """Put the held beginning before its rest; a dropped line leaves only a byte too many, for _checked to find."""
        if self._dropping:
            first = data.find(b"\n")
            joined = b" " * self._line_bytes_max + b" " + data[first:end]
        else:
            joined = b"".join((*self._parts, data[:end]))
        self._parts, self._held, self._dropping = [], 0, False
        return joined

    def _checked(self, lines: list[bytes]) -> list[bytes]:
        first = self.line_number + 1
        self.line_number += len(lines)
        longest = self._line_bytes_max
        if max(map(len, lines)) > longest:
            for index, line in enumerate(lines):
                if len(line) > longest:
                    self._oversize(first + index)
                    lines[index] = b"\n"
        if self._keep_blank or (b"\n" not in lines and b"\r\n" not in lines):
            return lines
        return [line for line in lines if line not in (b"\n", b"\r\n")]


def pieces(file: BinaryIO, size: int = limits.PIPE_READ_BYTES) -> Iterator[bytes]:
    """Read a file to its end; a torn compressed one ends where it is torn, with one of UNPACK_ERRORS."""
    while data := file.read(size):
        yield data
