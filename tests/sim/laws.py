"""What must hold in a simulated crawl: at each step, after each crash, and at the end."""

from __future__ import annotations

from collections import Counter

from crawltool import limits, records
from crawltool.core.frontier import rows
from crawltool.core.frontier.importance import worth_of
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Table
from crawltool.core.frontier.turn import Frontier, Turn
from crawltool.core.urls import key, split
from tests.sim.fetchers import domain_of
from tests.sim.store import DictStore
from tests.sim.world import World


class Rules:
    """What the frontier was told about rules, to judge what it releases (law 10)."""

    def __init__(self, ttl_s: float) -> None:
        self.ttl_s = ttl_s
        self.told: dict[str, tuple[list[tuple[str, str, int]] | None, float]] = {}  # authority -> rules, when
        self.used: set[str] = set()

    def tell(self, outcome: records.Outcome, authority: str, began: float) -> None:
        """An answer about rules was committed."""
        if outcome.status in (200, 404) or (outcome.verdict == "redirect" and outcome.hops == limits.ROBOTS_HOPS_MAX):
            self.told[authority] = (outcome.robots.rules if outcome.robots else [], began)
            self.used.discard(authority)

    def set_back(self, by_s: float) -> None:
        """The clock was set back: that makes what is known look younger, but what lies in the future must not be used."""
        self.told = {authority: (found, at + by_s) for authority, (found, at) in self.told.items()}

    def judge(self, target: records.Target, now: float) -> None:
        """A page leaves: rules are known, allow it, and are not too old, but for the URL that they were fetched for."""
        url = split(target.url)
        assert url is not None
        assert url.authority in self.told, f"law 10: released without rules: {target.url}"
        found, at = self.told[url.authority]
        assert found is not None
        assert not any(url.target.startswith(p) for _, p, _ in found), f"law 10: disallowed, and released: {target.url}"
        age_s = now - at
        assert age_s >= 0.0, f"law 10: on rules of the future: {target.url}"
        assert age_s <= self.ttl_s + 1e-3 or url.authority not in self.used, f"law 10: on old rules ({age_s} s): {target.url}"
        self.used.add(url.authority)


class Rests:
    """Who asked for a rest, and got it: no start before it is over, whatever happens; none is shortened (laws 5 and 8)."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.until: dict[str, float] = {}  # host, or "ip " and address -> asked for nothing before then
        self.complaints: dict[str, dict[str, float]] = {}  # address -> host -> when
        self.kept: dict[str, float] = {}  # the frontier's own times, on its clock
        self.steps: dict[str, tuple[int, float]] = {}  # host -> step of its ladder before this turn, quiet since

    def before(self, frontier: Frontier, outcomes: list[records.Outcome]) -> None:
        """A turn begins: note where the ladders of those stand that complain in it."""
        rows_ = {name: frontier.book.hosts[name].row for o in outcomes if (name := host_of(o.url)) in frontier.book.hosts}
        self.steps = {name: (row.complaints, row.rested_at) for name, row in rows_.items()}

    def tell(self, outcome: records.Outcome, ip: str | None, now: float) -> None:
        """An answer 429 or 503 was committed; ip is None for one that came late."""
        name, length_s = host_of(outcome.url), outcome.retry_after_s
        if length_s:
            self.until[name] = max(self.until.get(name, 0.0), now + length_s)
        if ip is not None:
            here = self.complaints.setdefault(ip, {})
            here[name] = now
            if sum(at >= now - limits.COMPLAINING_S for at in here.values()) >= limits.COMPLAINING_HOSTS:
                until = now + (self.policy.backoff_s if length_s is None else length_s)
                self.until["ip " + ip] = max(self.until.get("ip " + ip, 0.0), until)

    def after(self, frontier: Frontier, told: list[records.Outcome], clock: float) -> None:
        """The ladder of complaints: a step further for each, begun anew after half an hour of quiet."""
        for name, times in Counter(host_of(o.url) for o in told).items():
            row, (step, quiet_since) = frontier.book.hosts[name].row, self.steps[name]
            if clock >= quiet_since + limits.FORGIVEN_S:
                assert row.complaints <= times, f"never forgiven: {name} is at step {row.complaints}"
            else:
                assert row.complaints >= step, f"forgiven too early: {name} fell from step {step} to {row.complaints}"
            if row.closed_for is None and row.complaints and all(o.retry_after_s is None for o in told if host_of(o.url) == name):
                least_s = min(self.policy.backoff_s * 2.0 ** (row.complaints - 1), limits.BACKOFF_S_MAX)
                assert row.rest_until >= clock + least_s - 1e-3, f"law 5: {name} rests too short at step {row.complaints}"

    def check(self, target: records.Target, now: float) -> None:
        """A target leaves."""
        for name in (host_of(target.url), f"ip {target.address}"):
            assert self.until.get(name, 0.0) <= now + 1e-6, f"law 5: {name} asked for a rest"

    def check_kept(self, frontier: Frontier, clock: float) -> None:
        """No rest is shortened, by a restart neither."""
        told = {name: host.row.rest_until for name, host in frontier.book.hosts.items()}
        told |= {f"ip {a.ip}": a.row.rest_until for a in frontier.book.addresses.values() if a.row is not None}
        for name, until in told.items():
            kept = self.kept.get(name, 0.0)
            assert until >= kept or kept <= clock, f"law 8: the rest of {name} became shorter"
        self.kept |= told


def host_of(url: str) -> str:
    return url.split("/")[2]


def check_step(frontier: Frontier, turn: Turn) -> None:
    """Law 6 in numbers, law 5 in leases, and that the shell is called again when something is left to do."""
    book = frontier.book
    book.ledger.check()
    leased = Counter(lease.host for lease in book.leases.values() if lease.address is not None)
    for name, host in book.hosts.items():
        assert host.slots.taken == leased[name], (name, host.slots, leased[name])
        assert len(host.slots.free) + host.slots.taken <= max(book.policy.per_host, host.slots.taken), name
        assert not host.parked or any(name in state.waiting for state in book.rulebook.held.values()), (
            f"parked for nothing: {name}"
        )
    for state in book.rulebook.held.values():
        assert state.pending or not state.waiting, "law 11: hosts wait for rules that nobody fetches"
    if turn.idle:
        assert not book.leases and not book.closing
        held_back = sum(host.queued for host in book.hosts.values() if host.full)
        held_back += sum(book.lengths.of_host(number) for number in book.room.cold.values())  # none of them waits: they are full
        assert frontier.release.limit or book.ledger.queued == held_back, f"law 11: idle with a queue: {book.ledger}"


def check_lease(frontier: Frontier, store: DictStore, target: records.Target) -> None:
    """Laws 1 and 5 when a target leaves."""
    assert store.get(Table.LEASES, target.lease.encode()) is not None, f"law 1: {target.lease} is not durable"
    book, lease = frontier.book, frontier.book.leases[target.lease]
    mine = [x for x in book.leases.values() if x.address is not None]
    if lease.address is not None:
        assert sum(x.host == lease.host for x in mine) <= book.policy.per_host, f"law 5: {lease.host}"
        assert sum(x.address == lease.address for x in mine) <= book.policy.address_slots, f"law 5: {lease.address}"
        domain, most = domain_of(lease.host), book.policy.per_domain
        assert most is None or sum(domain_of(x.host) == domain for x in mine) <= most, f"law 5: {domain}"


def check_store(store: DictStore) -> None:
    """Law 6 in the store: each URL is in one state, and what that state names is there."""
    known = store.rows[Table.KNOWN]
    queued = {k: rows.entry_of(v) for k, v in store.rows[Table.QUEUE].items()}
    of_urls = {k for k, e in queued.items() if e.kind != "robots"}
    places = {row[1:] for row in known.values() if row[:1] in (rows.QUEUED, rows.REQUEUED)}
    assert places == of_urls | set(store.rows[Table.WAITING]), "law 6: a queued URL without a place, or a place without URL"
    leases = {k: rows.lease_of(v) for k, v in store.rows[Table.LEASES].items()}
    leased = {k for k, x in leases.items() if x.entry.kind in ("page", "sitemap") and not x.settled}
    assert {row[1:] for row in known.values() if row[:1] == rows.LEASED} == leased, "law 6: leases"
    for url_key, row in known.items():
        if row[:1] in (rows.FAILED, rows.REFUSED, rows.DROPPED):
            assert rows.settled_key(row[1:].decode(), url_key) in store.rows[Table.SETTLED], "law 6: settled"
    lengths = Lengths()
    lengths.load(store.get(Table.META, b"lengths"), store.scan(Table.LENGTHS, b"", b"\xff" * 9, 1 << 30))
    per_line = Counter(int.from_bytes(k[:4], "big") * rows.CLASSES + k[4] for k in queued)
    assert {line: n for line, n in enumerate(lengths.counts) if n} == per_line, "law 6: the length of a queue"
    numbers = {rows.host_row_of(raw).number for raw in store.rows[Table.HOSTS].values()}
    assert {line // rows.CLASSES for line in per_line} <= numbers, "law 6: a queue without a host"


def check_cash(frontier: Frontier, store: DictStore) -> None:
    """What the root has lent is what all URLs have: no crash makes or loses any."""
    importance = frontier.lessons.importance
    if importance is not None and importance.order == "opic":
        cash = sum(worth_of(row).cash for row in store.rows[Table.IMPORTANCE].values())
        assert cash == importance.root.lent, f"cash: {cash} is not {importance.root.lent}"


def check_ledger(frontier: Frontier, store: DictStore) -> None:
    """Law 6: the counters are what the rows say."""
    ledger, words = frontier.book.ledger, Counter(rows.STATE_WORDS[row[:1]] for row in store.rows[Table.KNOWN].values())
    told = {"queued": ledger.queued, "leased": ledger.leased, "done": ledger.done}
    told |= {"failed": sum(ledger.failed.values()), "refused": sum(ledger.refused.values())}
    assert told == {word: words[word] for word in told}, f"law 6: {told} != {words}"
    assert ledger.accepted == len(store.rows[Table.KNOWN])


def check_nothing_lost(store: DictStore, world: World, seeds: list[str]) -> None:
    """Law 3: what a settled page leads to is known, from the seeds on."""
    seen, todo = set(seeds), list(seeds)
    while todo:
        url = todo.pop()
        parts = split(url)
        assert parts is not None
        row = store.get(Table.KNOWN, key(parts))
        assert row is not None, f"law 3: {url} is lost"
        if row[:1] == rows.DONE:
            fresh = [link for link in world.found_on(url) if link not in seen]
            seen.update(fresh)
            todo += fresh
