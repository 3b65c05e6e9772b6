"""What the crawl database holds: its tables, the rows in them, and how they are packed.

Called by the frontier's core (which says what must be saved) and by stores/crawldb (which saves it). Rows are
msgpack arrays; new fields go to the end with a default, so an older database stays readable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import IntEnum

import msgspec

from crawltool.core.frontier.reputation import Conduct
from crawltool.records import Prior


class Table(IntEnum):
    """The tables; the number is the column family's place and never changes."""

    KNOWN = 0  # URL key (16 bytes) -> state byte and detail: every accepted URL
    QUEUE = 1  # queue key -> Entry
    LEASES = 2  # lease id -> Lease
    HOSTS = 3  # host name -> HostRow
    ROBOTS = 4  # authority -> RobotsRow
    SETTLED = 5  # settled_key -> Settled: failed and refused URLs, with their text
    OUTBOX = 6  # seq (8 bytes) -> crawl log line that may not be on disk yet
    META = 7  # counters, scope entries, serial numbers
    WAITING = 8  # due_at (8 bytes), serial (6) -> Entry: retries that wait outside their host's queue
    SINCE = 9  # generation (4 bytes), first URL key -> URL keys of one batch: what the sieve's snapshot on disk lacks
    LENGTHS = 10  # serial (8 bytes) -> queue lengths that one turn changed (core/frontier/lengths)
    IMPORTANCE = 11  # URL key -> what pages gave it (core/frontier/importance); only with --order opic or inlinks
    BUDGETS = 12  # d + directory, n + registrable domain -> what they brought in (core/frontier/budgets)


Save = list[tuple[Table, bytes, bytes | None]]  # None deletes
TableScan = Callable[[Table, bytes, bytes, int], list[tuple[bytes, bytes]]]  # as core/frontier/workbench.Port has it
SCAN_ROWS = 10_000
LAST_KEY = b"\xff" * 64


def each(scan: TableScan, table: Table, start: bytes = b"", end: bytes = LAST_KEY) -> Iterator[tuple[bytes, bytes]]:
    """Give all committed rows of a table, or of a range of it, in order; a bounded number of them is held."""
    while part := scan(table, start, end, SCAN_ROWS):
        yield from part
        start = part[-1][0] + b"\0"


class Entry(msgspec.Struct, array_like=True, gc=False):
    """One accepted URL on its way: what its next target needs."""

    url: str
    kind: str = "page"
    depth: int = 0
    hops: int = 0
    via: str | None = None
    first_seen_at: float = 0.0
    priority: float = 0.0
    seed: bool = False  # the operator named it, or redirects from what he named led here
    attempt: int = 0
    lost: int = 0  # leases of it that ran out
    returned: int = 0  # times in a row that fetch gave it back unasked
    busy: int = 0  # 429 and 503 answers: no attempt, but not without end (law 11)
    for_: str | None = None  # robots: the authority whose rules these are; sitemap: the one whose robots.txt named it
    else_url: str | None = None
    prior: Prior | None = None
    tags: bytes | None = None
    typed: bool = False  # the operator typed it: its host counts as typed, loopback included
    listed: bool = False  # a sitemap named it first
    channel: str = ""  # of inbox.d, whose quota it takes from; not kept

    @property
    def was_leased(self) -> bool:
        """Tell whether a target of it went out before: an outcome for it may be ours."""
        return self.attempt + self.lost + self.returned + self.busy > 0


class Lease(msgspec.Struct, array_like=True):
    """A target that is out. Its host's and its address's slot are taken until it is settled or expires."""

    host: str
    address: str | None
    entry: Entry
    queue_key: bytes  # where it goes back to when the lease is void; empty for address and robots targets
    released_at: float
    expires_at: float
    rest_s: float  # the whole rest the host gets when nothing is known of the exchange
    slot_at: float = 0.0  # the slot's time before this lease: given back when nothing was asked
    ip_slot_at: float = 0.0
    domain_slot_at: float = 0.0
    settled: bool = False  # its URL was settled meanwhile: out for its host only


class HostRow(msgspec.Struct, array_like=True):
    """A host as it must survive a crash. Times are epoch seconds."""

    number: int
    state: str = "new"
    addresses: list[str] = []
    address_until: float = 0.0
    slots: list[float] = []  # next times of its free slots
    rest_s: float = 0.0  # the longest rest that the slots' times contain
    rest_until: float = 0.0  # back-off of the whole host
    backoff_s: float = 0.0  # its recorded length
    streak: int = 0  # failures of the whole host in a row: the fifth closes it
    troubles: int = 0  # step on the ladder of connect failures, timeouts and 5xx; an answer ends it
    complaints: int = 0  # step on the ladder of 429 and 503; only time ends it
    server_errors: int = 0  # 5xx in a row
    failed_at: float = 0.0
    rested_at: float = 0.0  # when the rest after the last failure ends
    pages: int = 0  # page exchanges that got a status
    typed: bool = False
    closed_for: str | None = None
    closed_run: int = 0  # the run that closed it
    answers_at: str = ""  # the authority that answered last: one dead port is not a dead host
    unanswered: int = 0  # address and robots targets in a row that came back unasked or not at all
    conduct: Conduct = msgspec.field(default_factory=Conduct)


class AddressRow(msgspec.Struct, array_like=True):
    """What an address is known for, kept in META. An address nobody complained at has no row."""

    rest_until: float = 0.0
    rest_s: float = 0.0  # the recorded length of that rest
    complaints: dict[str, float] = {}  # host -> when it said 429 or 503 last; the oldest first


class RobotsRow(msgspec.Struct, array_like=True):
    """The rules of one authority, or why there are none."""

    availability: str  # rules | allow_all | unreachable
    fetched_at: float
    expires_at: float
    rules: list[tuple[str, str, int]] = []
    crawl_delay_s: float | None = None
    failures: int = 0  # in a row, in run `run`
    run: int = 0
    reason: str | None = None


class Settled(msgspec.Struct, array_like=True):
    """A URL that failed or was refused; the text stays, so that a changed policy can judge it again."""

    state: str  # failed | refused
    reason: str
    detail: str
    at: float
    entry: Entry


# First byte of a KNOWN row. Upper case: it was leased at least once, so an outcome for it may be ours.
QUEUED, REQUEUED, LEASED, DONE, FAILED, REFUSED, DROPPED = b"q", b"Q", b"L", b"D", b"F", b"r", b"R"
STATE_WORDS = {
    QUEUED: "queued",
    REQUEUED: "queued",
    LEASED: "leased",
    DONE: "done",
    FAILED: "failed",
    REFUSED: "refused",
    DROPPED: "refused",
}
EVER_LEASED = frozenset((REQUEUED, LEASED, DONE, FAILED, DROPPED))

# Reasons that hold for a run or under a policy only: a start looks at these again.
HOST_REASONS = frozenset(("host_unavailable", "robots_unreachable", "dns_failure", "blocked_address"))
LIMIT_REASONS = frozenset(
    (
        "too_deep",
        "url_too_long",
        "too_many_segments",
        "too_many_redirects",
        "queue_full",
        "dir_full",
        "domain_full",
        "crawl_delay",
    )
)
ENTRY_REASONS = LIMIT_REASONS - {"crawl_delay"}  # judged when a URL is found; the others when it is its turn
REVIVABLE = HOST_REASONS | LIMIT_REASONS

_pack = msgspec.msgpack.Encoder().encode
entry_of = msgspec.msgpack.Decoder(Entry).decode
lease_of = msgspec.msgpack.Decoder(Lease).decode
host_row_of = msgspec.msgpack.Decoder(HostRow).decode
address_row_of = msgspec.msgpack.Decoder(AddressRow).decode
robots_row_of = msgspec.msgpack.Decoder(RobotsRow).decode
settled_of = msgspec.msgpack.Decoder(Settled).decode


def pack(row: msgspec.Struct) -> bytes:
    """Pack one row."""
    return _pack(row)


def pack_entry(entry: Entry) -> bytes:
    """Pack an entry; without the fields at its end where they have their defaults, as those of a plain link do."""
    if (
        entry.priority
        or entry.seed
        or entry.tags is not None
        or entry.for_
        or entry.listed
        or entry.prior
        or entry.else_url
        or entry.was_leased
    ):
        return _pack(entry)
    return _pack((entry.url, entry.kind, entry.depth, entry.hops, entry.via, entry.first_seen_at))


def settled_key(reason: str, key: bytes) -> bytes:
    """Give the place of a settled URL: those that may live again come first, to be found without reading the rest."""
    return (b"0" if reason in REVIVABLE else b"1") + key


ADDRESS_PREFIX, ADDRESS_END = b"address:", b"address;"


def address_key(ip: str) -> bytes:
    """Give the META key of an address."""
    return ADDRESS_PREFIX + ip.encode()


CLASSES = 4  # priority classes: urgent, high, normal, low
URGENT, HIGH, NORMAL, LOW = range(CLASSES)
_LEAST = (10.0, 1.0, -1.0)  # the least priority of each class but the last


def class_of(priority: float) -> int:
    """Give the class of a priority; a priority that is no number is the lowest."""
    if -1.0 <= priority < 1.0:  # nearly all
        return NORMAL
    return next((place for place, least in enumerate(_LEAST) if priority >= least), LOW)


# host number (4 bytes), class (1), rank in milliseconds (6), serial (5)
_QUEUE_KEY = struct.Struct(">IBHIBI")
QUEUE_KEY_BYTES = _QUEUE_KEY.size
_RANK_ZERO = 1 << 47  # ranks are signed: a high priority reaches below zero
_RANK_MAX_S = 1e11


def queue_key(host_number: int, place: int, rank: float, serial: int) -> bytes:
    """Give the place in a host's queue: host number, class, rank (seconds; the lowest goes first), serial."""
    if not -_RANK_MAX_S < rank < _RANK_MAX_S:  # a page may claim any priority
        rank = _RANK_MAX_S if not rank < 0 else -_RANK_MAX_S
    millis = int(rank * 1000.0) + _RANK_ZERO
    return _QUEUE_KEY.pack(host_number, place, millis >> 32, millis & 0xFFFFFFFF, serial >> 32 & 0xFF, serial & 0xFFFFFFFF)


def rank_of(key: bytes) -> float:
    """Give the rank in a queue key, in seconds."""
    return (int.from_bytes(key[5:11], "big") - _RANK_ZERO) / 1000.0


def queue_prefix(host_number: int, place: int) -> bytes:
    """Give the first bytes of all queue keys of a host's class."""
    return host_number.to_bytes(4, "big") + place.to_bytes(1, "big")


def waiting_key(due_at: float, serial: int) -> bytes:
    """Give the place among the waiting: due time in microseconds, serial."""
    return max(int(due_at * 1e6), 0).to_bytes(8, "big") + serial.to_bytes(6, "big")
