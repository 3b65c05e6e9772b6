"""What happened, outcome by outcome, for as long as the crawl directory lives?

The crawl log: outcomes/SEQ.jsonl.zst, one outcome a line, in the order of `seq`. The frontier commits outcomes to an
outbox in the same batch as the state they change, appends them here, and deletes from the outbox up to the `seq` this
file calls durable: a line is lost or doubled by no crash. The unit is the zstd frame: appended whole, then fsynced; a
torn one is cut at start. Called by stages/frontier; stores/crawlview, cli/log, cli/why and cli/warc read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.stores import atomic, frames
from crawltool.stores.frames import FrameFile

SUFFIX = ".jsonl.zst"


class _Numbered(msgspec.Struct):
    seq: int


_numbered = msgspec.json.Decoder(_Numbered)


class CrawlLog:
    """The writer; the holder of frontier.lock is the only one. `durable` is the highest seq that is on disk."""

    def __init__(self, directory: Path | str, file_bytes: int = limits.LOG_FILE_BYTES) -> None:
        """Open the log, cut a torn frame, find the last seq. Raises DiskTrouble, CannotHold."""
        self._directory = Path(directory)
        self._file_bytes = file_bytes
        self._lines: list[bytes] = []
        self._bytes = 0
        self._began_at = 0.0  # when the first line of the frame came
        self._file: FrameFile | None = None
        self.cut_bytes = 0  # of a torn frame found at start
        with atomic.disk(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            self.durable = self._taken = self._recover()

    def append(self, lines: Sequence[tuple[int, bytes]], now: float) -> int:
        """Take lines (seq, line with or without newline) in the order of seq; those already here are skipped.

        Closes frames by size and age. Returns the highest durable seq. Raises DiskTrouble: the lines stay buffered,
        and the next call or flush() tries again.
        """
        for seq, line in lines:
            if seq <= self._taken:
                continue
            if not self._lines:
                self._began_at = now
            text = line if line.endswith(b"\n") else line + b"\n"
            self._lines.append(text)
            self._bytes += len(text)
            self._taken = seq
            if self._bytes >= limits.LOG_FRAME_BYTES:
                self.flush()
        return self.tick(now)

    def tick(self, now: float) -> int:
        """Close the frame when it is old enough. Returns the highest durable seq."""
        if self._lines and now - self._began_at >= limits.LOG_FRAME_AGE_S:
            self.flush()
        return self.durable

    def wakeup(self) -> float | None:
        """Tell when tick() has something to do; None when nothing is buffered."""
        return self._began_at + limits.LOG_FRAME_AGE_S if self._lines else None

    def flush(self) -> int:
        """Write what is buffered as one frame, durable on return. Returns the highest durable seq."""
        if self._lines:
            self._file_with_room().append(b"".join(self._lines))
            self._lines.clear()
            self._bytes = 0
            self.durable = self._taken
        return self.durable

    def close(self) -> None:
        """Flush and let go. Raises DiskTrouble."""
        try:
            self.flush()
        finally:
            self._let_go()

    def _file_with_room(self) -> FrameFile:
        """Give the file to append to: a new one when the last is full. Names are first seqs, so they sort."""
        if self._file is not None and self._file.end >= self._file_bytes:
            self._let_go()
        if self._file is None:
            self._file = FrameFile(self._directory / f"{self.durable + 1:020d}{SUFFIX}")
        return self._file

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _recover(self) -> int:
        """Cut a torn frame off the last file and give the last seq; a file without a whole frame is removed."""
        for path in reversed(files(self._directory)):
            self._file = FrameFile(path)
            last, end = b"", 0
            for last, end in frames.read(path):  # noqa: B007 -- only the last one counts
                pass
            self.cut_bytes += self._file.cut(end)
            if last:
                return _seq_of(last, path)
            self._let_go()
            path.unlink()
        return 0


class LogReader:
    """Reads the log's lines in order; keeps its place, so that a later lines() goes on where the last one ended."""

    def __init__(self, directory: Path | str) -> None:
        self._directory = Path(directory)
        self._name = ""
        self._offset = 0
        self.damaged_bytes = 0  # skipped in files that are no longer written

    def lines(self) -> Iterator[bytes]:
        """Give every line (without newline) of the whole frames that are there now.

        A torn frame at the end is being written, or was when the power went: it is left for the next call.
        """
        names = [path.name for path in files(self._directory) if path.name >= self._name]
        for position, name in enumerate(names):
            if name != self._name:
                self._name, self._offset = name, 0
            yield from self._file_lines(self._directory / name)
            if position + 1 < len(names):
                self.damaged_bytes += (self._directory / name).stat().st_size - self._offset

    def _file_lines(self, path: Path) -> Iterator[bytes]:
        """Give the lines of one file from the kept place on, frame by frame."""
        for text, end in frames.read(path, self._offset):
            self._offset = end
            yield from text.split(b"\n")[:-1]


def read(directory: Path | str) -> Iterator[bytes]:
    """Give every line of the log, oldest first."""
    return LogReader(directory).lines()


def line_of(directory: Path | str, seq: int) -> bytes | None:
    """Give one line by its number, by halving: files are named by their first number, frames begin with theirs.

    None when it is not in the log (yet).
    """
    names = files(Path(directory))
    place = bisect_right(names, seq, key=lambda path: int(path.name.removesuffix(SUFFIX))) - 1
    if seq < 1 or place < 0:
        return None
    path = names[place]
    offsets = frames.starts(path)
    place = bisect_right(offsets, seq, key=lambda offset: _first_seq(path, offset)) - 1
    if place < 0:
        return None
    text, _ = next(frames.read(path, offsets[place]), (b"", 0))
    return next((line for line in text.split(b"\n")[:-1] if _numbered.decode(line).seq == seq), None)


def size_bytes(directory: Path | str) -> int:
    """Tell how large the log is on disk, packed."""
    return sum(path.stat().st_size for path in files(Path(directory)))


def _first_seq(path: Path, offset: int) -> int:
    text, _ = next(frames.read(path, offset), (b"", 0))
    try:
        return _numbered.decode(text.partition(b"\n")[0]).seq
    except msgspec.DecodeError as error:
        raise DiskTrouble(f"{path}: the line at {offset} has no number: {error}", remedy="restore the file") from error


def files(directory: Path) -> list[Path]:
    """Give the files of the log, oldest first."""
    return sorted(directory.glob(f"*{SUFFIX}"))


def _seq_of(frame: bytes, path: Path) -> int:
    """Give the number of a frame's last line."""
    try:
        return _numbered.decode(frame.rstrip(b"\n").rpartition(b"\n")[2]).seq
    except msgspec.DecodeError as error:
        raise DiskTrouble(f"{path}: the last line is no outcome: {error}", remedy="restore the file") from error
