"""What does a page teach beyond itself: what its links are worth, how its host behaves, and whether a space ends?

Called by core/frontier/turn: settling tells which pages were settled in a turn; before their links are admitted importance moves
along them (`--order`), after it the host's conduct and the discovery of new URLs are counted. Nothing here decides on a URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from crawltool import records
from crawltool.core.frontier import listings, rows
from crawltool.core.frontier.book import PRIORITY_S, Book
from crawltool.core.frontier.discovery import Discovery
from crawltool.core.frontier.hosts import Host
from crawltool.core.frontier.importance import Importance
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.rows import Entry, Table
from crawltool.core.frontier.spaces import Fetched
from crawltool.core.scope import Scope
from crawltool.core.urls import key as url_key
from crawltool.core.urls import split, split_once

AGAIN = frozenset(("busy", "server_error"))  # most likely tried again: what it links to is not known yet
GONE = frozenset((404, 410))
_ALARMS = b"alarms"
_pairs = msgspec.json.Decoder(list[tuple[str, str]])


class Lesson(NamedTuple):
    """A page that was settled, the host that answered, and what was found on it."""

    outcome: records.Outcome
    entry: Entry
    host: Host
    found: list[Entry]


class Lessons:
    """Collects the lessons of a turn and draws them."""

    def __init__(self, book: Book, scope: Scope, importance: Importance | None) -> None:
        self.book = book
        self.scope = scope
        self.importance = importance
        self.discovery = Discovery()
        self.lessons: list[Lesson] = []

    def load(self) -> None:
        """Take up what was said before: no alarm is raised twice."""
        raw = self.book.port.get(Table.META, _ALARMS)
        self.discovery = Discovery(_pairs.decode(raw) if raw is not None else ())

    def hear(self, outcome: records.Outcome, entry: Entry, host: Host, found: list[Entry]) -> None:
        """A page was settled in this turn."""
        self.lessons.append(Lesson(outcome, entry, host, found))

    # --- before the links are admitted ---

    def weigh(self) -> None:
        """Keep of what sitemaps list what they may; let pages pay what they link to."""
        for lesson in self.lessons:
            if lesson.entry.kind == "sitemap":
                lesson.found[:] = listings.weigh(lesson.found, lesson.entry, lesson.host.row.conduct, self.book.ledger)
        self._pay()

    def sent_ahead(self, entry: Entry) -> list[Entry]:
        """Judge a URL of a sitemap that is still out: its outcome was too long for one line."""
        book, url = self.book, split(entry.via) if entry.via is not None else None
        state = book.known_now([url_key(url)])[0] if url is not None else None
        lease = book.leases.get(state[1:].decode()) if state is not None and state[:1] == rows.LEASED else None
        if lease is None:
            return [entry]  # told again, or late: what it may list was judged when it came first
        return listings.weigh([entry], lease.entry, book.host(lease.host).row.conduct, book.ledger)

    def _pay(self) -> None:
        """Let each page pay what it links to (`--order opic`), or count its links (`--order inlinks`)."""
        importance = self.importance
        if importance is None:
            return
        todo = [
            (lesson, *self._keys(lesson))
            for lesson in self.lessons
            if lesson.entry.kind == "page" and lesson.outcome.verdict not in AGAIN
        ]
        self._read([key for lesson, keys, _ in todo for key in (self.book.key_of(lesson.entry), *keys)])
        for lesson, keys, outside in todo:
            importance.settle(self.book.key_of(lesson.entry), keys, outside=outside, host_pages=lesson.host.row.pages - 1)

    def _keys(self, lesson: Lesson) -> tuple[list[bytes], int]:
        """Give the keys of a page's links in scope, and count the others."""
        keys: list[bytes] = []
        outside: set[str] = set()
        for entry in lesson.found:
            url = split_once(entry.url)
            if url is not None and self.scope.judge(url) is None:
                keys.append(url_key(url))
            else:
                outside.add(entry.url)
        return keys, len(outside)

    def _read(self, keys: Sequence[bytes]) -> None:
        assert self.importance is not None
        unread = self.importance.unread(keys)
        if unread:
            self.importance.hold(unread, self.book.port.many(Table.IMPORTANCE, unread))

    def bonus_s(self, key: bytes, seed: bool) -> float:
        """Give how much earlier a new URL is ranked for what pages gave it."""
        assert self.importance is not None
        self._read([key])
        return PRIORITY_S * self.importance.arrive(key, seed=seed)

    # --- after it ---

    def draw(self, new_from: dict[str, int]) -> list[str]:
        """Count conduct and discovery, move what became worth more; new_from: new URLs of its own host by page.

        The result are lines for people: alarms.
        """
        said: list[str] = []
        for lesson in self.lessons:
            outcome, entry, host = lesson.outcome, lesson.entry, lesson.host
            if entry.kind != "page":
                continue
            if entry.listed and outcome.verdict not in AGAIN:
                host.row.conduct.sitemap_listed(gone=outcome.status in GONE)
            host.row.conduct.page(duplicate=outcome.dup is not None, error=outcome.verdict == "server_error")
            self.book.touch(host)
            if (url := split(entry.url)) is not None:
                said += self._discover(lesson, url.host, url.target, new_from.get(entry.url, 0))
        if said:
            self.book.put(Table.META, _ALARMS, msgspec.json.encode(self.discovery.alarmed()))
        if self.importance is not None:
            self._move()
        self.lessons.clear()
        return said

    def _discover(self, lesson: Lesson, host: str, target: str, new: int) -> list[str]:
        via = split(lesson.entry.via) if lesson.entry.via is not None else None
        own = f"//{host}/"
        page = Fetched(
            host,
            target,
            via.target if via is not None and via.host == host else None,
            len({link.url for link in lesson.outcome.links if link.follow and own in link.url}),
            new,
            lesson.outcome.dup is not None,
            lesson.host.row.pages,
        )
        alarms = self.discovery.add(page)
        for _ in alarms:
            bump(self.book.ledger.alarms, host)
        return [str(alarm) for alarm in alarms]

    def _move(self) -> None:
        """Write what changed, and key queued URLs again that became worth twice as much."""
        assert self.importance is not None
        changes = self.importance.take()
        book = self.book
        for key, row in changes.save:
            book.put(Table.IMPORTANCE, key, row)
        if changes.save:
            book.put(Table.META, b"importance", self.importance.root.packed())
        states = book.known_now([key for key, _ in changes.grown])
        for (key, priority), state in zip(changes.grown, states, strict=True):
            if state is not None and state[:1] in (rows.QUEUED, rows.REQUEUED) and len(state) == 1 + rows.QUEUE_KEY_BYTES:
                book.rank_again(key, state, PRIORITY_S * priority)
