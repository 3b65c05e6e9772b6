"""Which pages repeat others? The filter that knows, and that keeps the pages.

It acts on `text` lines, which it takes out of the stream and remembers for the outcome of the same lease that follows, and on
outcomes of whole, non-empty 200 pages; all else passes byte for byte. It splices `dup` into the outcome of a page that
repeats another URL's: `exact` when the payload digest is the same, `near` when the SimHashes differ in at most 3 bits and the
page has limits.SIMHASH_WORDS_MIN words. A page is never a duplicate of itself: a body that its own URL gave before, or that
lies near what its own URL gave before, says nothing; whoever gave a body first stays its original.

pages/ gets a row for each distinct body that parse has read (no `trouble`, or a text in spite of it) or that is HTML, read or
not, and an alias line for each other URL with such a body. A body that nobody read and that is not HTML has no row and no
`dup`: its copies are found by the WARC digest index. So over whole, non-empty 200 HTML pages, distinct digests = rows.

Law 4: rows are durable (one fsync a batch) before the outcomes leave; then the memory (dedup.db, an index of pages/) is saved,
every few thousand rows; then the input is let go. After kill -9 the replayed input finds its rows and adds none, and gets the
same answers as the first time. One dedup per crawl, by flock on dedup.lock. Called by cli/dedup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from crawltool import limits, records
from crawltool.core.pages import neardup
from crawltool.errors import DiskTrouble
from crawltool.records import Dup, Locator, Page, Text
from crawltool.stages.drain import FilterDrain
from crawltool.stages.lines import Batch, Sink, Trouble, open_sink, open_source, parse_routes
from crawltool.stores import atomic
from crawltool.stores.pages import AliasRow, PageRow, Pages
from crawltool.stores.signatures import Nearness, Original, Signatures

_HTML = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True)
class Settings:
    """What the operator decided."""

    dir: Path
    input: str = "-"
    output: str = "-"
    routes: tuple[str, ...] = ()
    strict: bool = False


class _Head(msgspec.Struct, tag="outcome"):
    """What dedup reads of an outcome; links and the rest stay bytes."""

    url: str
    lease: str
    verdict: str
    kind: str = "page"
    status: int | None = None
    truncated: str | None = None
    body_bytes: int | None = None
    digest: str | None = None
    fetched_at: float | None = None
    content_type: str | None = None
    warc: Locator | None = None
    body_warc: Locator | None = None
    page: Page | None = None
    dup: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_whole_page(self) -> bool:
        """Tell whether this is an answer whose body can repeat another's."""
        is_ok = self.kind == "page" and self.verdict == "ok" and self.status == 200
        return is_ok and not self.truncated and bool(self.body_bytes) and self.digest is not None

    @property
    def is_html(self) -> bool:
        """Tell what the server says it is."""
        return (self.content_type or "").partition(";")[0].strip().lower() in _HTML


_read_head = msgspec.json.Decoder(_Head).decode
_read_text = msgspec.json.Decoder(Text).decode
_read_row = msgspec.json.Decoder(PageRow | AliasRow).decode
_write_row = msgspec.json.Encoder().encode
_UNREADABLE = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass
class Counts:
    """What one run did."""

    pages: int = 0  # new rows
    near: int = 0  # of these, near duplicates
    aliases: int = 0  # new alias lines
    known: int = 0  # pages whose URL gave that body before
    unread: int = 0  # neither read by parse nor HTML: no row
    orphans: int = 0  # texts without an outcome


class Dedup:
    """The filter with its two stores. think() decides, keep() makes it durable; run() is the loop around them."""

    def __init__(self, pages: Pages, signatures: Signatures, lock: atomic.Lock | None = None) -> None:
        self.counts, self.trouble = Counts(), Trouble()
        self._pages, self._signatures, self._lock = pages, signatures, lock
        self._texts: dict[str, Text] = {}  # by lease; of limits.TEXT_BATCHES_MAX batches at most
        self._rows: list[bytes] = []  # decided, not yet in the journal
        self._catch_up()

    @classmethod
    def open(cls, crawl: Path) -> Dedup:
        """Take the crawl's dedup lock and bring its memory up to its journal.

        Raises CannotHold when another dedup runs, DiskTrouble when pages/ is damaged.
        """
        lock = atomic.lock(crawl / "dedup.lock")
        try:
            return cls(Pages(crawl / "pages"), Signatures(crawl / "dedup.db"), lock)
        except BaseException:
            lock.release()
            raise

    @property
    def torn_bytes(self) -> int:
        """Tell how much of a torn frame was cut from the journal at the start: a crash in the middle of a write."""
        return self._pages.torn_bytes

    def run(self, source: Iterable[Batch], sink: Sink) -> Counts:
        """Filter to the end of the input. Whatever ends it, the disk is right."""
        held: list[Batch] = []
        for batch in source:
            lines = self.think(batch.lines)
            self.keep()
            sink.publish(lines)
            self.save(only_if_due=True)
            held.append(batch)
            if len(held) > limits.TEXT_BATCHES_MAX:
                self._drop_texts()
            if not self._texts:  # else an outcome to come needs the text of a batch at hand: a replay must have both
                release(held)
        self._drop_texts()
        self.save()
        release(held)
        return self.counts

    def think(self, lines: Sequence[bytes]) -> list[bytes]:
        """Give what is to be passed on, in order, with `dup` where it belongs."""
        passed = []
        for line in lines:
            kind = records.type_of(line)
            if kind == "text" and self._hold(line):
                continue
            passed.append(self._judge(line) if kind == "outcome" else line)
        return passed

    def keep(self) -> None:
        """Put the rows of what was thought into the journal, durable on return."""
        if self._rows:
            self._pages.append(self._rows)
            self._rows.clear()

    def save(self, *, only_if_due: bool = False) -> None:
        """Save the memory, all of it kept in the journal before."""
        assert not self._rows, len(self._rows)
        if self._signatures.is_due or not only_if_due:
            self._signatures.save(self._pages.end)

    def close(self) -> None:
        """Let go. What was not saved is found in the journal at the next start."""
        self._signatures.close()
        self._pages.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _catch_up(self) -> None:
        """Apply the rows that the journal has and the memory lacks; build it anew when it is not this journal's."""
        if not self._pages.reaches(self._signatures.place):
            self._signatures.clear()
        for lines, place in self._pages.catch_up(self._signatures.place):
            for line in lines:
                self._apply(line)
            if self._signatures.is_due:
                self._signatures.save(place)

    def _apply(self, line: bytes) -> None:
        """Put a line of the journal into the memory."""
        try:
            row = _read_row(line)
        except _UNREADABLE as error:
            raise DiskTrouble(f"pages/ has a line that is none of ours: {error}", remedy="restore the files") from error
        if isinstance(row, PageRow):
            self._remember(row, *self._neighbour(row))
        else:
            found = self._signatures.find(row.digest)
            assert found is not None, row
            self._signatures.add_alias(found[0], row.url)

    def _hold(self, line: bytes) -> bool:
        """Remember a text for its outcome; False when it cannot be read."""
        try:
            text = _read_text(line)
        except _UNREADABLE:
            self.trouble.refuse("input", 0, "text that cannot be read", line)
            return False
        self._texts[text.lease] = text
        return True

    def _drop_texts(self) -> None:
        """Forget texts whose outcome did not come."""
        self.counts.orphans += len(self._texts)
        self._texts.clear()

    def _judge(self, line: bytes) -> bytes:
        """Give an outcome with what dedup knows about it."""
        try:
            head = _read_head(line)
        except _UNREADABLE:
            self.trouble.refuse("input", 0, "outcome that cannot be read", line)
            return line
        text = self._texts.pop(head.lease, None)
        if not head.is_whole_page:
            return line
        dup = self._find(head, text if text is not None and text.url == head.url else None)
        if dup is None or head.dup is not msgspec.UNSET:
            return line
        return records.splice(line, dup=dup)

    def _find(self, head: _Head, text: Text | None) -> Dup | None:
        """Decide what a whole page repeats; a body or URL that is new is remembered."""
        assert head.digest is not None
        found = self._signatures.find(head.digest)
        if found is None:
            return self._meet(head, text)
        number, original = found
        if original.url == head.url:
            self.counts.known += 1
            return None if original.of is None else Dup(kind="near", of=original.of, distance=original.distance)
        if self._signatures.has_alias(number, head.url):
            self.counts.known += 1
        else:
            self._add_alias(head, number, original)
        return Dup(kind="exact", of=original.url)

    def _add_alias(self, head: _Head, number: int, original: Original) -> None:
        """Record that a URL gave the body of an earlier page."""
        assert head.digest is not None
        row = AliasRow(url=head.url, of=original.url, digest=head.digest, fetched_at=head.fetched_at, warc=head.warc)
        self._signatures.add_alias(number, head.url)
        self._rows.append(_write_row(row) + b"\n")
        self.counts.aliases += 1

    def _meet(self, head: _Head, text: Text | None) -> Dup | None:
        """Give a new body its row."""
        page = head.page
        if not head.is_html and (page is None or (page.trouble is not None and text is None)):
            self.counts.unread += 1
            return None
        row = _row(head, page or Page(), text)
        signature, nearness = self._neighbour(row)
        if nearness.of is not None:
            row.dup = Dup(kind="near", of=nearness.of, distance=nearness.distance)
            self.counts.near += 1
        self._remember(row, signature, nearness)
        self._rows.append(_write_row(row) + b"\n")
        self.counts.pages += 1
        return row.dup

    def _neighbour(self, row: PageRow) -> tuple[int | None, Nearness]:
        """Give a row's SimHash, if it says something, and what lies near it."""
        signature = neardup.signature(row.simhash, row.words)
        return signature, Nearness() if signature is None else self._signatures.near(signature, row.url)

    def _remember(self, row: PageRow, signature: int | None, nearness: Nearness) -> None:
        """Put a page into the memory; one page per SimHash value is filed, it finds all that lie near it."""
        original = Original(row.url) if row.dup is None else Original(row.url, row.dup.of, row.dup.distance)
        self._signatures.add_page(row.digest, original, None if nearness.is_filed else signature)


def run(settings: Settings, trouble: Trouble, note: Callable[[str], object]) -> Counts:
    """Be the filter on a crawl directory, from input to output. Raises what Dedup.open raises, Misuse, NoInput, BadRecord."""
    with FilterDrain() as drain, Dedup.open(settings.dir) as dedup:
        dedup.trouble = trouble
        if dedup.torn_bytes:
            note(f"pages/: cut {dedup.torn_bytes} bytes that a crash left half written; their pages come again")
        source = open_source(settings.input, drain, trouble)
        sink = open_sink(settings.output, parse_routes(settings.routes))
        try:
            counts = dedup.run(source, sink)
        finally:
            source.close()
        sink.close(end=not drain.stopping)
        trouble.check(settings.strict)
    return counts


def release(held: list[Batch]) -> None:
    """Let go of batches, the oldest first."""
    for batch in held:
        batch.done()
    held.clear()


def _row(head: _Head, page: Page, text: Text | None) -> PageRow:
    """Join what fetch and parse know of a page."""
    assert head.digest is not None
    return PageRow(
        url=head.url,
        digest=head.digest,
        fetched_at=head.fetched_at,
        content_type=head.content_type,
        title=page.title,
        description=page.description,
        lang=page.lang,
        charset=page.charset,
        canonical=page.canonical,
        robots=page.robots,
        words=page.words,
        simhash=page.simhash,
        trouble=page.trouble,
        text=None if text is None else text.text,
        cut=text is not None and text.cut,
        warc=head.body_warc or head.warc,
    )
