"""What is on the pages that were fetched? The filter that reads them.

Acts on outcomes of pages and sitemaps that have a body in the archive and a type that core/pages/content reads; all else passes
byte for byte, and so does an outcome that was read before. The body is read by locator, `page` and `links` are spliced
in, the text goes before in a line of its own, and links that do not fit go ahead as candidates (law 3: same write, before
the outcome). A page's trouble is in `page.trouble`; no page ends the stage. No memory, so nothing to save between
publishing and letting go (law 4). Any number may run. Called by cli/parse.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from crawltool import limits, records
from crawltool.core.pages import content
from crawltool.core.pages.reading import Reading, join_troubles
from crawltool.records import Candidate, Link, Locator, Page, Text
from crawltool.stages.drain import FilterDrain
from crawltool.stages.lines import Batch, Sink, Trouble, open_sink, open_source, parse_routes
from crawltool.stores import warcread


@dataclass(frozen=True)
class Settings:
    """What the operator decided."""

    dir: Path
    input: str = "-"
    output: str = "-"
    routes: tuple[str, ...] = ()
    strict: bool = False
    text: Literal["main", "all", "none"] = "main"
    parse_bytes: int = 10 * limits.MIB
    robots_token: str = "crawltool"


@dataclass
class Counts:
    """What one run did."""

    pages: int = 0  # read, sitemaps included
    links: int = 0
    ahead: int = 0  # of these, sent ahead as candidates
    troubled: int = 0  # pages that could not be read, or not all of them
    passed: int = 0  # lines that were none of ours


class _Head(msgspec.Struct, tag="outcome"):
    """What parse reads of an outcome; the rest stays bytes."""

    url: str
    lease: str
    verdict: str
    kind: str = "page"
    status: int | None = None
    content_type: str | None = None
    body_bytes: int | None = None
    warc: Locator | None = None
    body_warc: Locator | None = None
    depth: int = 0
    page: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    links: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_ours(self) -> bool:
        """Tell whether there is a body to read that nobody read before."""
        return (
            self.kind in ("page", "sitemap")
            and self.verdict in ("ok", "too_large")
            and self.warc is not None
            and (self.status is None or 200 <= self.status < 300)
            and self.body_bytes != 0
            and self.page is msgspec.UNSET
            and self.links is msgspec.UNSET
            and content.is_readable(self.content_type, self.kind)
        )


_read_head = msgspec.json.Decoder(_Head).decode
_encode = msgspec.json.Encoder().encode
_UNREADABLE = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# Kept free in an outcome for `dup` and `seq`, which come later.
_LATER_BYTES = 4 * limits.KIB
# mallopt(3) of the GNU C library: parameter, bytes; the last is the greatest that it takes.
_TRIM_THRESHOLD = (-1, 64 * limits.MIB)
_TOP_PAD = (-2, 1 * limits.MIB)
_MMAP_THRESHOLD = (-3, 32 * limits.MIB)


class Parse:
    """The filter. think() turns one line into what leaves in its place; run() is the loop around it."""

    def __init__(self, settings: Settings, trouble: Trouble | None = None) -> None:
        self.settings, self.counts, self.trouble = settings, Counts(), trouble or Trouble()
        self._warc = settings.dir / "warc"
        self._token = settings.robots_token.lower()

    def run(self, source: Iterable[Batch], sink: Sink) -> Counts:
        """Filter to the end of the input."""
        for batch in source:
            sink.publish([line for given in batch.lines for line in self.think(given)])
            batch.done()
        return self.counts

    def think(self, line: bytes) -> list[bytes]:
        """Give the lines that leave for one that came: text and candidates first, then the outcome."""
        head = self._head(line)
        if head is None or not head.is_ours:
            self.counts.passed += 1
            return [line]
        reading = self._read(head)
        if reading is None:
            self.counts.passed += 1
            return [line]
        self.counts.pages += 1
        self.counts.links += len(reading.links)
        self.counts.troubled += reading.page.trouble is not None
        return [*self._text(head, reading), *self._outcome(line, head, reading)]

    def _head(self, line: bytes) -> _Head | None:
        kind = records.type_of(line)
        if kind != "outcome":
            if not kind:
                self.trouble.refuse("input", 0, "no record", line)
            return None
        try:
            return _read_head(line)
        except _UNREADABLE:
            self.trouble.refuse("input", 0, "outcome that cannot be read", line)
            return None

    def _read(self, head: _Head) -> Reading | None:
        """Read the body from the archive and the page from the body; None when its type has no reader."""
        assert head.warc is not None
        room = limits.SITEMAP_BYTES_MAX if head.kind == "sitemap" else limits.BODY_PARSED_BYTES_MAX
        try:
            stored = warcread.read(self._warc, head.body_warc or head.warc, room)
        except warcread.Unreadable as error:
            return Reading(Page(trouble=f"no body: {error}"))
        made = content.read(
            stored.body,
            head.content_type or stored.http_header("content-type"),
            head.url,
            stored.http_headers,
            kind=head.kind,
            token=self._token,
            limit=self.settings.parse_bytes,
        )
        if made is not None and stored.cut:
            made.page.trouble = join_troubles(made.page.trouble, f"only the first {room} stored bytes were read")
        return made

    def _text(self, head: _Head, reading: Reading) -> list[bytes]:
        """Give the text's own line, if there is text and somebody wants it."""
        text = reading.text
        if self.settings.text == "all" and reading.whole is not None:
            text = reading.whole()
        if not text or self.settings.text == "none":
            return []
        cut = False
        room = limits.TEXT_BYTES_MAX
        while True:  # ends: room halves until the line, with its escapes, fits
            raw = text.encode()
            if len(raw) > room:
                text, cut = raw[:room].decode("utf-8", "ignore"), True
            line = records.encode(Text(url=head.url, lease=head.lease, text=text, cut=cut))
            if records.fits(line):
                return [line]
            room //= 2

    def _outcome(self, line: bytes, head: _Head, reading: Reading) -> list[bytes]:
        """Give the outcome with page and links; before it, candidates for the links that do not fit."""
        page, links = reading.page, reading.links
        whole = records.splice(line, page=page, links=links or None)
        most = limits.OUTCOME_BYTES_MAX - _LATER_BYTES
        if len(whole) <= most:
            return [whole]
        room = most - len(records.splice(line, page=page, links=[]))
        stay: list[Link] = []
        ahead: list[bytes] = []
        for link in links:
            size = len(_encode(link)) + 1
            if size <= room:
                room -= size
                stay.append(link)
            elif link.follow:
                room = 0  # the order of links is the page's: nothing after this one stays
                ahead.append(records.encode(_candidate(head, link, reading.lastmods.get(link.url))))
            else:
                page.links_cut += 1
        self.counts.ahead += len(ahead)
        return [*ahead, records.splice(line, page=page, links=stay or None)]


def _candidate(head: _Head, link: Link, lastmod: str | None) -> Candidate:
    """Make a candidate of a link that goes ahead of its outcome."""
    is_listed = link.kind in ("sitemap", "sitemap_index")
    return Candidate(
        url=link.url,
        kind="sitemap" if link.kind == "sitemap_index" else "page",
        source="sitemap" if is_listed else "link",
        via=head.url,
        depth=head.depth + 1,
        priority=link.priority,
        lastmod=lastmod,
    )


def run(settings: Settings, trouble: Trouble) -> Counts:
    """Be the filter, from input to output. Raises Misuse, NoInput, BadRecord (strict), DiskTrouble."""
    _keep_freed_memory()
    with FilterDrain() as drain:
        parse = Parse(settings, trouble)
        source = open_source(settings.input, drain, trouble)
        sink = open_sink(settings.output, parse_routes(settings.routes))
        try:
            counts = parse.run(source, sink)
        finally:
            source.close()
        sink.close(end=not drain.stopping)
        trouble.check(settings.strict)
    return counts


def _keep_freed_memory() -> None:
    """Keep up to 64 MiB of freed memory in this process, where the C library is GNU's.

    A page's tree and its copies are a few hundred KiB, freed at once. By default that memory goes back to the system, and the
    next page faults it in again: over 100 page faults a page where batches are small, up to a fifth of the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    for parameter, size in (_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD):
        mallopt(parameter, size)
