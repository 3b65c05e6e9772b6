"""What does a crawl know? Questions to the crawl database and the crawl log, also while the crawl runs.

The database is opened by CrawlDb.look: a fixed view of one moment, so that the rows and the ledger fit together (law 6). The
text of a URL that is done lies in the crawl log only: its KNOWN row names the one line of the log that settled it, so lines
that are newer than the view count for nothing. All rows are streamed, nothing is held for each URL. Called by cli/dump,
cli/why and cli/crawl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property
from math import inf
from pathlib import Path

import msgspec

from crawltool.core.frontier import rows
from crawltool.core.frontier.ledger import Ledger, ledger_of
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.reputation import Budget, budget
from crawltool.core.frontier.rows import Entry, HostRow, RobotsRow, Table
from crawltool.core.frontier.steering import PREFIX, HostSettings, settings_of
from crawltool.core.robots import Rules
from crawltool.core.urls import Url, split_once
from crawltool.core.urls import key as url_key
from crawltool.records import Robots
from crawltool.stores import crawllog
from crawltool.stores.crawldb import CrawlDb

STATES = ("queued", "leased", "done", "failed", "refused")
CLASS_WORDS = ("urgent", "high", "normal", "low")
VIA_MAX = 20  # pages named on the way from a seed
_ASKED_AT_ONCE = 1000


class UrlRow(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One URL of the crawl as dump prints it; what is not known of it is left out."""

    url: str
    state: str
    reason: str | None = None
    detail: str | None = None
    kind: str | None = None
    host: str | None = None
    depth: int | None = None
    hops: int | None = None
    via: str | None = None
    priority_class: str | None = None
    priority: float | None = None
    attempt: int | None = None
    first_seen_at: float | None = None
    at: float | None = None  # when it was settled; of a done URL the start of its exchange
    due_at: float | None = None  # not before: it waits for another try
    lease: str | None = None
    expires_at: float | None = None
    verdict: str | None = None
    status: int | None = None
    seq: int | None = None


class HostLine(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One host as dump and why print it."""

    host: str
    state: str
    reason: str | None = None  # why it was given up
    queued: int
    leased: int = 0
    pages: int
    pages_max: int | None = None  # set by the operator
    next_at: float | None = None  # none while all its slots are out
    slots: list[float]
    rest_until: float | None = None
    rest_s: float
    delay_s: float | None = None  # of this host alone, set by the operator
    backoff_s: float | None = None
    failures_in_a_row: int = 0
    troubles: int = 0  # step of the ladder of failed connections, timeouts and 5xx
    complaints: int = 0  # step of the ladder of 429 and 503
    address_rest_until: float | None = None  # three hosts of its address complained
    addresses: list[str] = []
    address_until: float | None = None
    typed: bool = False
    budget: Budget | None = None


class LogLine(msgspec.Struct):
    """What is read of a line of the crawl log; lines that tell of no URL have none."""

    url: str = ""
    kind: str = "page"
    verdict: str = ""
    status: int | None = None
    reason: str | None = None
    redirect: str | None = None
    via: str | None = None
    depth: int = 0
    hops: int = 0
    fetched_at: float | None = None
    elapsed_s: float | None = None
    body_bytes: int | None = None
    warc: dict[str, object] | None = None
    dup: dict[str, object] | None = None
    seq: int = 0


log_line = msgspec.json.Decoder(LogLine).decode


class CrawlView:
    """One moment of a crawl: its database, opened for questions, and its log."""

    def __init__(self, directory: Path) -> None:
        """Open a crawl directory. Raises NoInput where there is no database yet, BadPolicy for one of another version."""
        self.outcomes = directory / "outcomes"
        self.db = CrawlDb.look(directory / "frontier.db")
        self.lengths = Lengths()
        self.lengths.load(self.db.get(Table.META, b"lengths"), rows.each(self.db.scan, Table.LENGTHS))

    def close(self) -> None:
        """Close the database."""
        self.db.close()

    def ledger(self) -> dict[tuple[str, str], int]:
        """Give how many URLs the crawl counts in each state, by state and reason; zeros are left out."""
        raw = self.db.get(Table.META, b"ledger")
        ledger = ledger_of(raw) if raw is not None else Ledger()
        found = {("queued", ""): ledger.queued, ("leased", ""): ledger.leased, ("done", ""): ledger.done}
        found |= {("failed", reason): count for reason, count in ledger.failed.items()}
        found |= {("refused", reason): count for reason, count in ledger.refused.items()}
        return {pair: count for pair, count in found.items() if count}

    # --- every URL ---

    def urls(self, states: Collection[str]) -> Iterator[UrlRow]:
        """Give every URL that is in one of these states: done ones in the order of the log, others by host or key."""
        if "queued" in states:
            yield from self._queued()
        if "leased" in states:
            yield from self._leased()
        if "done" in states:
            yield from self._done()
        if "failed" in states or "refused" in states:
            yield from self._settled(states)

    def _queued(self) -> Iterator[UrlRow]:
        for key, value in rows.each(self.db.scan, Table.QUEUE):
            entry = rows.entry_of(value)
            if entry.kind != "robots":  # the frontier's own: no URL of the crawl
                yield _row(entry, "queued", priority_class=CLASS_WORDS[key[4]])
        for place, value in rows.each(self.db.scan, Table.WAITING):
            yield _row(rows.entry_of(value), "queued", due_at=int.from_bytes(place[:8], "big") / 1e6)

    def _leased(self) -> Iterator[UrlRow]:
        for name, value in rows.each(self.db.scan, Table.LEASES):
            lease = rows.lease_of(value)
            if lease.entry.kind in ("page", "sitemap") and not lease.settled:
                yield _row(lease.entry, "leased", lease=name.decode(), at=lease.released_at, expires_at=lease.expires_at)

    def _settled(self, states: Collection[str]) -> Iterator[UrlRow]:
        for _, value in rows.each(self.db.scan, Table.SETTLED):
            settled = rows.settled_of(value)
            if settled.state in states:
                yield _row(settled.entry, settled.state, reason=settled.reason, detail=settled.detail or None, at=settled.at)

    def _done(self) -> Iterator[UrlRow]:
        """Give the URLs whose KNOWN row names the line of the log that is read; many rows are asked for at once."""
        lines: list[tuple[LogLine, bytes]] = []
        for line in self._log():
            url = split_once(line.url) if line.kind in ("page", "sitemap") else None
            if url is not None:
                lines.append((line, url_key(url)))
            if len(lines) == _ASKED_AT_ONCE:
                yield from self._settled_by(lines)
                lines.clear()
        yield from self._settled_by(lines)

    def _settled_by(self, lines: list[tuple[LogLine, bytes]]) -> Iterator[UrlRow]:
        known = self.db.many(Table.KNOWN, [key for _, key in lines]) if lines else []
        for (line, _), row in zip(lines, known, strict=True):
            if row == rows.DONE + line.seq.to_bytes(8, "big"):
                yield UrlRow(
                    url=line.url,
                    state="done",
                    kind=line.kind,
                    host=_host(line.url),
                    depth=line.depth,
                    hops=line.hops,
                    via=line.via,
                    at=line.fetched_at,
                    verdict=line.verdict,
                    status=line.status,
                    seq=line.seq,
                )

    def _log(self) -> Iterator[LogLine]:
        """Give the lines of the log, then those that were in the outbox at the moment of the view and are not read yet."""
        seq = 0
        for raw in crawllog.read(self.outcomes):
            line = log_line(raw)
            seq = max(seq, line.seq)
            yield line
        for number, raw in self.db.outbox():
            if number > seq:
                yield log_line(raw)

    # --- one URL ---

    def explain(self, url: Url, slots: int = 1, delay_s: float = 1.0) -> dict[str, object]:
        """Tell what is known of one URL: state, reason, detail, where it comes from, its host's clocks, its rules.

        slots and delay_s: --per-host and --delay, for the host's crawl budget.
        """
        key = url_key(url)
        row = self.db.get(Table.KNOWN, key)
        told: dict[str, object] = {"url": url.href, "key": key.hex(), "state": "unknown"}
        if row is not None:
            told |= {"state": rows.STATE_WORDS[row[:1]]} | self._detail(key, row)
            told["chain"] = self.chain(told.get("via"))
        host = self.db.get(Table.HOSTS, url.host.encode())
        if host is not None:
            told["host"] = self.host_line(url.host, rows.host_row_of(host), slots, delay_s)
        robots = self.db.get(Table.ROBOTS, url.authority.encode())
        if robots is not None:
            told["robots"] = _robots_told(rows.robots_row_of(robots), url)
        return told

    def line_of(self, seq: int) -> LogLine | None:
        """Give one line of the log by its number."""
        raw = crawllog.line_of(self.outcomes, seq) or self.db.get(Table.OUTBOX, seq.to_bytes(8, "big"))
        return log_line(raw) if raw is not None else None

    def chain(self, via: object) -> list[dict[str, object]]:
        """Follow `via` back to a seed: each page with its state; a page that was met before, or is not known, is the last."""
        found: list[dict[str, object]] = []
        met: set[bytes] = set()
        while isinstance(via, str) and len(found) < VIA_MAX and (url := split_once(via)) is not None:
            key = url_key(url)
            row = self.db.get(Table.KNOWN, key)
            told = self._detail(key, row) if row is not None else {}
            state = rows.STATE_WORDS[row[:1]] if row is not None else "unknown"
            found.append({"url": via, "state": state} | {name: told[name] for name in ("depth", "status") if name in told})
            if key in met:
                break
            met.add(key)
            via = told.get("via")
        return found

    def _detail(self, key: bytes, row: bytes) -> dict[str, object]:
        state, rest = row[:1], row[1:]
        raw: bytes | None = None
        if state in (rows.FAILED, rows.REFUSED, rows.DROPPED):
            raw = self.db.get(Table.SETTLED, rows.settled_key(rest.decode(), key))
            if raw is None:
                return {"reason": rest.decode()}
            settled = rows.settled_of(raw)
            return {"reason": settled.reason, "detail": settled.detail, "settled_at": settled.at} | _entry_told(settled.entry)
        if state == rows.LEASED:
            raw = self.db.get(Table.LEASES, rest)
            lease = rows.lease_of(raw) if raw is not None else None
            told: dict[str, object] = {"lease": rest.decode()}
            return told if lease is None else told | {"expires_at": lease.expires_at} | _entry_told(lease.entry)
        if state in (rows.QUEUED, rows.REQUEUED):
            raw = self.db.get(Table.QUEUE, rest) or self.db.get(Table.WAITING, rest)
            told = _entry_told(rows.entry_of(raw)) if raw is not None else {}
            if len(rest) == rows.QUEUE_KEY_BYTES:
                return told | {"priority_class": CLASS_WORDS[rest[4]]}
            return told | {"due_at": int.from_bytes(rest[:8], "big") / 1e6}
        return self._done_told(int.from_bytes(rest, "big"))

    def _done_told(self, seq: int) -> dict[str, object]:
        line = self.line_of(seq)
        if line is None:
            return {"seq": seq}
        return {"seq": seq, "via": line.via, "depth": line.depth, "hops": line.hops, "status": line.status}

    # --- hosts ---

    def hosts(self, slots: int, delay_s: float) -> Iterator[HostLine]:
        """Give every host that the crawl met, by name. slots and delay_s: --per-host and --delay, for its crawl budget."""
        for name, value in rows.each(self.db.scan, Table.HOSTS):
            yield self.host_line(name.decode(), rows.host_row_of(value), slots, delay_s)

    def host_line(self, name: str, row: HostRow, slots: int, delay_s: float) -> HostLine:
        """Tell a host's clocks, its queue, its state, and what the operator set for it."""
        self.lengths.grow(row.number)
        queued, leased, given = self.lengths.of_host(row.number), self._leased_of[name], self._set_by_operator(name)
        address_rests_until = self._rests_of_addresses.get(row.addresses[0], 0.0) if row.addresses else 0.0
        ready_at = max(min(row.slots, default=0.0), row.rest_until, address_rests_until)
        own_delay_s = delay_s if given.delay_s is None else given.delay_s
        return HostLine(
            host=name,
            state=row.state,
            reason=row.closed_for,
            queued=queued,
            leased=leased,
            pages=row.pages,
            pages_max=given.pages,
            next_at=(ready_at or None) if row.slots or not leased else None,
            slots=sorted(row.slots),
            rest_until=row.rest_until or None,
            rest_s=row.rest_s,
            delay_s=given.delay_s,
            backoff_s=row.backoff_s or None,
            failures_in_a_row=row.streak,
            troubles=row.troubles,
            complaints=row.complaints,
            address_rest_until=address_rests_until or None,
            addresses=row.addresses,
            address_until=row.address_until if 0.0 < row.address_until < inf else None,  # a literal one holds for ever
            typed=row.typed,
            budget=budget(row.conduct, override=given.reputation, queued=queued, slots=slots, delay_s=own_delay_s),
        )

    @cached_property
    def _leased_of(self) -> Counter[str]:
        """Count the leases of each host; there are no more than --room."""
        return Counter(rows.lease_of(value).host for _, value in rows.each(self.db.scan, Table.LEASES))

    @cached_property
    def _rests_of_addresses(self) -> dict[str, float]:
        """Tell until when addresses rest that several hosts complained at; there are few."""
        found = rows.each(self.db.scan, Table.META, rows.ADDRESS_PREFIX, rows.ADDRESS_END)
        return {key[len(rows.ADDRESS_PREFIX) :].decode(): rows.address_row_of(row).rest_until for key, row in found}

    def _set_by_operator(self, name: str) -> HostSettings:
        raw = self.db.get(Table.META, PREFIX + b"host:" + name.encode())
        return settings_of(raw) if raw is not None else HostSettings()


def _row(entry: Entry, state: str, **facts: object) -> UrlRow:
    return UrlRow(
        url=entry.url,
        state=state,
        kind=entry.kind,
        host=_host(entry.url),
        depth=entry.depth,
        hops=entry.hops,
        via=entry.via,
        priority=entry.priority or None,
        attempt=entry.attempt,
        first_seen_at=entry.first_seen_at or None,
        **facts,  # type: ignore[arg-type]
    )


def _host(href: str) -> str | None:
    url = split_once(href)
    return url.host if url is not None else None


def _entry_told(entry: Entry) -> dict[str, object]:
    return {
        "via": entry.via,
        "depth": entry.depth,
        "hops": entry.hops,
        "attempt": entry.attempt,
        "lost": entry.lost,
        "first_seen_at": entry.first_seen_at,
        "priority": entry.priority,
    }


def _robots_told(row: RobotsRow, url: Url) -> dict[str, object]:
    """Tell an authority's rules as they are known, and which of them decides on the URL."""
    told: dict[str, object] = {
        "availability": row.availability,
        "rules": len(row.rules),
        "fetched_at": row.fetched_at,
        "expires_at": row.expires_at,
    }
    told |= {"crawl_delay_s": row.crawl_delay_s} if row.crawl_delay_s is not None else {}
    told |= {"reason": row.reason, "failures": row.failures} if row.reason else {}
    if row.availability == "rules":
        allowed, line = Rules(Robots(rules=row.rules)).judge(url.target)
        told |= {"allowed": allowed, "rule": line}
    return told
