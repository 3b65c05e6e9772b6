"""Which pages does this crawl have, what do they say, and which URLs repeat them?

pages/ is the corpus and dedup's journal in one: files `pages-00000.jsonl.zst`, `pages-00001…`, each a row of zstd frames
of JSON lines (stores/frames), in the order in which dedup saw the pages. Two kinds of line, told apart by `type`:

  {"type":"page", "url", "digest", "fetched_at", "content_type", "title", "description", "lang", "charset", "canonical",
   "robots", "words", "simhash", "text", "cut", "warc", "dup":{"kind":"near","of","distance"}}   one per distinct body
  {"type":"alias", "url", "of", "digest", "fetched_at", "warc"}      another URL that gave the body of an earlier page

`zstdcat pages/*.zst | jq 'select(.type=="page")'` reads it. Law 4: a row is durable before the outcome it comes from
leaves dedup. Called by stages/dedup (append, catch_up); rows() is for readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.records import Dup, Locator
from crawltool.stores import atomic, frames

_NAME = re.compile(r"pages-(\d{5,})\.jsonl\.zst")


class PageRow(msgspec.Struct, tag="page", omit_defaults=True, kw_only=True):
    """One distinct page body: what parse read on it, under the URL that gave it first."""

    url: str
    digest: str
    fetched_at: float | None = None
    content_type: str | None = None
    title: str | None = None
    description: str | None = None
    lang: str | None = None
    charset: str | None = None
    canonical: str | None = None
    robots: list[str] = []
    words: int = 0
    simhash: str | None = None
    trouble: str | None = None  # why parse could not read it (all of it)
    text: str | None = None
    cut: bool = False  # the text was longer than limits.TEXT_BYTES_MAX
    warc: Locator | None = None  # the WARC record that holds the body
    dup: Dup | None = None  # kind near only


class AliasRow(msgspec.Struct, tag="alias", omit_defaults=True, kw_only=True):
    """A URL that gave the body of an earlier page, once per URL and body."""

    url: str
    of: str
    digest: str
    fetched_at: float | None = None
    warc: Locator | None = None  # its own record, a revisit


class Place(NamedTuple):
    """A point in the journal between two frames: file number and byte offset."""

    file: int
    offset: int


START = Place(0, 0)


class Pages:
    """The journal, open for appending. One writer: the caller holds the crawl's dedup lock.

    Read catch_up() to its end before the first append: it also cuts what a crash tore.
    """

    def __init__(self, folder: Path, rotate_bytes: int = limits.LOG_FILE_BYTES) -> None:
        self._folder, self._rotate_bytes = folder, rotate_bytes
        with atomic.disk(folder):
            folder.mkdir(exist_ok=True)
        self._number = max(numbers(folder), default=0)
        self._file = frames.FrameFile(folder / name(self._number))
        self.torn_bytes = 0  # cut by catch_up

    @property
    def end(self) -> Place:
        """Tell where the next row will lie."""
        return Place(self._number, self._file.end)

    def reaches(self, place: Place) -> bool:
        """Tell whether the journal is as long as someone remembers it."""
        path = self._folder / name(place.file)
        return path.exists() and path.stat().st_size >= place.offset

    def catch_up(self, place: Place) -> Iterator[tuple[list[bytes], Place]]:
        """Give the lines of each frame behind a place, and the place behind the frame; then cut a torn last frame.

        Raises DiskTrouble when a frame before the last is broken.
        """
        for number in range(place.file, self._number + 1):
            path = self._folder / name(number)
            offset = place.offset if number == place.file else 0
            if not path.exists():
                raise DiskTrouble(f"{path} is missing", remedy="restore the file; nothing was changed")
            for content, after in frames.read(path, offset):
                offset = after
                yield content.splitlines(keepends=True), Place(number, after)
            if number < self._number and offset < path.stat().st_size:
                raise DiskTrouble(f"{path} is damaged at byte {offset}", remedy="restore the file; nothing was changed")
        self.torn_bytes = self._file.cut(offset)

    def append(self, lines: Sequence[bytes]) -> Place:
        """Add rows as one frame, durable on return; gives the place behind them. Raises DiskTrouble, having added none."""
        if self._file.end >= self._rotate_bytes:
            self._file.close()
            self._number += 1
            self._file = frames.FrameFile(self._folder / name(self._number))
        self._file.append(b"".join(lines))
        return self.end

    def close(self) -> None:
        """Let go."""
        self._file.close()


def rows(folder: Path) -> Iterator[bytes]:
    """Give every line that is whole, oldest first; safe beside a running dedup."""
    for number in sorted(numbers(folder)):
        for content, _ in frames.read(folder / name(number)):
            yield from content.splitlines(keepends=True)


def name(number: int) -> str:
    """Give a journal file's name."""
    return f"pages-{number:05d}.jsonl.zst"


def numbers(folder: Path) -> list[int]:
    """Give the numbers of the journal files that exist."""
    return [int(match[1]) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
