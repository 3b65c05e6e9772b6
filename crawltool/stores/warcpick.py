"""Which records of an archive does a person mean by a URL, a pattern or a line of the crawl log?

Reads the crawl log where there is one, else the files from end to end. Of each URL the newest capture counts; what matches a
pattern is sorted on disk, so any number may match. Called by cli/warc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from crawltool.core import filetree, urls
from crawltool.core.urls import Url
from crawltool.records import Locator
from crawltool.stores import crawllog
from crawltool.stores.sorting import Sorter
from crawltool.stores.warcwalk import Piece, walk

_CAPTURES = frozenset({"response", "revisit", "resource"})


class Picked(NamedTuple):
    """One record: its file's folder and place, and where its body lies when that is known to be elsewhere."""

    url: str
    directory: Path
    locator: Locator
    body: Locator | None = None


class _Row(msgspec.Struct):
    """What is read of an outcome."""

    url: str
    type: str = ""
    status: int | None = None
    warc: Locator | None = None
    body_warc: Locator | None = None


_row = msgspec.json.Decoder(_Row)
_encode = msgspec.json.Encoder().encode
_UNREADABLE = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def of_line(line: bytes, warc: Path) -> Picked | None:
    """Give the record that an outcome names; None for any other line."""
    try:
        row = _row.decode(line)
    except _UNREADABLE:
        return None
    if row.type != "outcome" or row.warc is None:
        return None
    return Picked(row.url, warc, row.warc, row.body_warc)


def last_in_log(href: str, crawl: Path) -> Picked | None:
    """Find the last outcome of a URL that has a record."""
    last, text = None, b'"url":' + _encode(href)
    for line in crawllog.read(crawl / "outcomes"):
        if text in line:
            picked = of_line(line, crawl / "warc")
            last = picked if picked is not None and picked.url == href else last
    return last


def last_in_files(href: str, files: Sequence[Path], date: str | None = None) -> Picked | None:
    """Find the last capture of a URL by reading files from end to end; with a date, a body captured then. Raises OSError."""
    last = None
    for path in files:
        for piece in _captures(path):
            head = piece.head
            assert head is not None
            if not _is(head.url, href) or (date is not None and (head.get("warc-date") != date or head.type == "revisit")):
                continue
            last = _picked(piece, path, href)
    return last


def matching(matches: Callable[[Url], bool], crawl: Path, files: Sequence[Path]) -> Iterator[Picked]:
    """Give every good answer (2xx) whose URL matches, as they come: from the log of a crawl, or from files."""
    for picked in _good_in_files(files) if files else _good_in_log(crawl):
        url = urls.split(picked.url)
        if url is not None and matches(url):
            yield picked


def newest(found: Iterable[Picked]) -> Iterator[tuple[Picked, bool]]:
    """Give the last of each URL, in the order of their files' names (core/filetree).

    True with all but the first whose names are one where the case of letters does not count.
    """
    with Sorter() as sorter:
        for number, picked in enumerate(found):
            url = urls.split(picked.url)
            name = filetree.folded(filetree.path_of(url)) if url is not None else ""
            place = _encode([str(picked.directory), picked.locator, picked.body])
            line = f"{name}\t{picked.url}\t{number:020d}\t".encode("utf-8", "surrogatepass")
            sorter.add(line + place + b"\n")
        yield from _last_of_each(sorter.lines())


def _last_of_each(lines: Iterable[bytes]) -> Iterator[tuple[Picked, bool]]:
    held, name, url, is_twin = b"", b"", b"", False
    for line in lines:
        now_name, now_url, _ = line.split(b"\t", 2)
        if held and now_url != url:
            yield _unpacked(held), is_twin
            is_twin = now_name == name
        held, name, url = line, now_name, now_url
    if held:
        yield _unpacked(held), is_twin


def _unpacked(line: bytes) -> Picked:
    _, url, _, place = line.split(b"\t", 3)
    directory, locator, body = msgspec.json.decode(place, type=tuple[str, Locator, Locator | None])
    return Picked(url.decode("utf-8", "surrogatepass"), Path(directory), locator, body)


def _good_in_log(crawl: Path) -> Iterator[Picked]:
    for line in crawllog.read(crawl / "outcomes"):
        picked = of_line(line, crawl / "warc")
        if picked is not None and 200 <= (_row.decode(line).status or 0) < 300:
            yield picked


def _good_in_files(files: Sequence[Path]) -> Iterator[Picked]:
    for path in files:
        for piece in _captures(path):
            head = piece.head
            assert head is not None
            url = urls.parse(head.url)
            if url is None or (head.is_http and not _is_good(next(piece.chunks(), b""))):
                continue
            picked = _picked(piece, path, url.href)
            if picked is not None:
                yield picked


def _is_good(start: bytes) -> bool:
    """Tell by a status line whether an answer is one."""
    words = start[:64].split(None, 2)
    return len(words) > 1 and words[0].startswith(b"HTTP/") and words[1][:1] == b"2"


def _captures(path: Path) -> Iterator[Piece]:
    return (piece for piece in walk(path) if piece.head is not None and piece.head.type in _CAPTURES)


def _picked(piece: Piece, path: Path, href: str) -> Picked | None:
    """Give the place of a record that can be read by offset."""
    piece.close()
    if piece.inner or not piece.length or not piece.is_whole:
        return None
    return Picked(href, path.parent, Locator(file=path.name, offset=piece.offset, length=piece.length))


def _is(written: str, href: str) -> bool:
    """Tell whether a target URI is a URL, however it is spelled."""
    if written == href:
        return True
    url = urls.parse(written)
    return url is not None and url.href == href
