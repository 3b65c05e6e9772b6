"""What crosses a pipe: the five record types, their fields, and how a line is read and written.

JSON Lines, UTF-8, one record a line, tag field `type`, at most `limits.RECORD_BYTES_MAX`. This file is
the single definition; crawltool-records(5) is printed from it. `_at` is epoch seconds UTC (float), `_s` is
seconds, `_bytes` is bytes. New fields are optional and have a default; readers skip fields they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from crawltool import limits

if TYPE_CHECKING:
    AnyJson = msgspec.Raw | None
else:  # msgspec reads a union of Raw and None as None alone, and refuses every value
    AnyJson = msgspec.Raw

Kind = Literal["address", "robots", "sitemap", "probe", "page"]
KINDS: tuple[str, ...] = get_args(Kind)

Verdict = Literal[
    "ok",
    "not_modified",
    "redirect",
    "gone",
    "client_error",
    "busy",
    "payment_required",
    "server_error",
    "unreachable",
    "dns_failure",
    "tls_error",
    "timeout",
    "too_large",
    "skipped_type",
    "blocked_address",
    "malformed",
    "returned",
]
VERDICTS: dict[str, str] = {
    "ok": "a 2xx answer; for kind address: the name has addresses",
    "not_modified": "304: the copy named by `prior` is still right",
    "redirect": "a 3xx answer; `redirect` is where it leads, or `reason` why that cannot be followed",
    "gone": "410",
    "client_error": "any other 4xx; with fetch --from-warc also a URL that is not in the archive",
    "busy": "429 or 503: the host asks for a rest; costs the URL no attempt",
    "payment_required": "402",
    "server_error": "any other 5xx",
    "unreachable": "no connection, or it broke before an answer",
    "dns_failure": "the name has no address; `reason` is `no_such_name` (final) or `temporary`",
    "tls_error": "the TLS handshake or the certificate failed",
    "timeout": "a limit on connect, first byte, silence or total time ran out; `reason` names it",
    "too_large": "the body passed its limit; what came is kept and flagged",
    "skipped_type": "the content type is not wanted; headers and the first bytes are kept",
    "blocked_address": "the address may not be asked (private, loopback, metadata …)",
    "malformed": "what came is not HTTP",
    "returned": "fetch did not start this target; the lease is given back at no cost",
}


class Prior(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The last known copy of a page; rides from recrawl through the frontier to fetch."""

    etag: str | None = None
    last_modified: str | None = None
    digest: str | None = None
    fetched_at: float | None = None
    warc_id: str | None = None
    warc_date: str | None = None
    warc_url: str | None = None


class Locator(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where a WARC record lies: file name inside warc/, offset and length of its gzip member in bytes."""

    file: str
    offset: int
    length: int


class Candidate(msgspec.Struct, tag="candidate", omit_defaults=True, kw_only=True):
    """This might be fetched. Made by seed, recrawl, parse (links that do not fit an outcome) or a user."""

    url: str
    kind: Kind = "page"
    source: str = "link"  # seed | link | sitemap | robots | recrawl | a user's word
    via: str | None = None  # the URL it was found on
    depth: int = 0
    hops: int = 0  # redirects that led here
    priority: float = 0.0
    due_at: float | None = None
    lastmod: str | None = None
    importance: float | None = None
    else_url: str | None = None  # queued when `url` is unreachable (https, then http)
    prior: Prior | None = None
    tags: AnyJson = None  # any JSON, at most limits.TAGS_BYTES_MAX; carried to target and outcome


class Target(msgspec.Struct, tag="target", omit_defaults=True, kw_only=True, rename={"for_": "for"}):
    """Fetch this now: you hold the lease. Made by the frontier only."""

    url: str
    lease: str  # RUN-SERIAL
    kind: Kind  # always written: who reads the stream with jq asks for it
    for_: str | None = None  # kind robots: the authority (scheme://host:port) whose rules these are
    address: str | None = None  # connect to this IP and no other; none for kind address
    rest_s: float = 0.0  # the host's rest after this exchange; above 0 the connection is not kept
    typed: bool = False  # the operator typed this host: loopback is allowed
    depth: int = 0
    hops: int = 0
    attempt: int = 0
    expires_at: float = 0.0
    prior: Prior | None = None
    tags: AnyJson = None


class Robots(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The group of a robots.txt that applies to us (kind robots, any final answer)."""

    rules: list[tuple[str, str, int]] = []  # ("allow" | "disallow", pattern, line number)
    crawl_delay_s: float | None = None
    sitemaps: list[str] = []
    max_age_s: float | None = None  # HTTP freshness, when the answer names one
    cut: bool = False  # more than limits.ROBOTS_BYTES_MAX: the rest was not read


class Link(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One link of a page. `follow` says whether the crawl policy follows it; what is found is data."""

    url: str
    kind: str = "a"  # a area iframe frame canonical next prev refresh redirect img script stylesheet sitemap …
    rel: str = ""
    text: str = ""  # anchor text, at most limits.LINK_TEXT_CHARS_MAX
    place: str = ""  # nav header footer main hidden, or empty
    hops: int = 0
    priority: float = 0.0
    follow: bool = True


class Page(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What parse read on a page."""

    title: str | None = None
    description: str | None = None
    lang: str | None = None
    lang_confidence: float | None = None
    charset: str | None = None
    canonical: str | None = None
    robots: list[str] = []  # noindex nofollow … from meta robots and X-Robots-Tag, lower case
    text_bytes: int = 0
    words: int = 0
    simhash: str | None = None  # 16 hex digits
    links_found: int = 0
    links_cut: int = 0  # links beyond limits.LINKS_MAX, not reported
    trouble: str | None = None  # why parse could not read it (all of it)


class Dup(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What dedup knows: the same bytes as (`exact`) or nearly the text of (`near`) another URL."""

    kind: Literal["exact", "near"]
    of: str  # the URL of the page it repeats
    distance: int = 0  # SimHash bits that differ


class Outcome(msgspec.Struct, tag="outcome", omit_defaults=True, kw_only=True):
    """What happened to a target, and all that was found. Made by fetch, enriched by parse and dedup."""

    url: str
    lease: str
    kind: Kind
    verdict: Verdict
    status: int | None = None
    reason: str | None = None
    redirect: str | None = None  # absolute URL of a usable Location
    fetched_at: float | None = None  # start of the exchange; none when nothing was asked
    elapsed_s: float | None = None
    timings: dict[str, float] | None = None  # connect tls first_byte, in seconds from the start
    addresses: list[str] | None = None  # kind address
    ttl_s: float | None = None  # kind address: how long they may be used
    peer_ip: str | None = None
    headers: dict[str, str] | None = None
    content_type: str | None = None
    body_bytes: int | None = None  # entity body as stored (transfer coding removed, content coding kept)
    wire_bytes: int | None = None
    digest: str | None = None  # payload digest, sha1:BASE32
    truncated: str | None = None  # length | time | disconnect | unspecified: the body is not whole
    etag: str | None = None
    last_modified: str | None = None
    retry_after_s: float | None = None
    warc: Locator | None = None  # the response or revisit record
    body_warc: Locator | None = None  # of a revisit: the record that holds the body
    robots: Robots | None = None
    depth: int = 0
    hops: int = 0
    tags: AnyJson = None
    page: Page | None = None
    links: list[Link] = []
    dup: Dup | None = None
    seq: int | None = None  # its number in the crawl log; added by the frontier
    via: str | None = None  # the URL it was found on; added by the frontier in the crawl log


class Text(msgspec.Struct, tag="text", omit_defaults=True, kw_only=True):
    """A page's text for the corpus, one line before its outcome; dedup takes it out of the stream."""

    url: str
    lease: str
    text: str
    cut: bool = False  # longer than limits.TEXT_BYTES_MAX


class Control(msgspec.Struct, tag="control", omit_defaults=True, kw_only=True):
    """Steer the crawl: from the operator's inbox only. Actions set, never add: the same line twice is the same as once."""

    action: str  # one of ACTIONS; crawltool-control(1) says what each needs
    host: str | None = None  # the host that is meant; of block also a domain
    url: str | None = None  # the URL that is meant; of block also a pattern
    value: AnyJson = None  # inject: priority; slow: seconds; budget: pages; reputation: factor; requeue: reason; stop: run


ACTIONS: dict[str, str] = {
    "inject": "fetch this URL before all others of its host; it counts as typed",
    "block": "ask this host, domain or URL pattern for nothing more; what is queued is refused (banned)",
    "unblock": "lift a block; what it refused is queued again",
    "slow": "let this host rest at least so many seconds; none: as before",
    "budget": "at most so many pages of this host; none: as before",
    "reputation": "take this factor for this host's reputation; none: as computed",
    "pause": "release nothing more; what is out comes in",
    "resume": "go on after a pause",
    "stop": "end this run in order, with 75",
    "requeue": "queue dead letters again: one URL, those of a host, or those with a reason",
    "forget": "remove what the crawl knows of a URL or of all URLs of a host",
    "reload": "read the ban files again",
}


Record = Candidate | Target | Outcome | Text | Control
TYPES: dict[str, type[msgspec.Struct]] = {
    "candidate": Candidate,
    "target": Target,
    "outcome": Outcome,
    "text": Text,
    "control": Control,
}


class _Tag(msgspec.Struct):
    type: str = ""


_record = msgspec.json.Decoder(Record)
_tag = msgspec.json.Decoder(_Tag)
_encoder = msgspec.json.Encoder()
_HEADS = {f'{{"type":"{name}"'.encode(): name for name in TYPES}


def decode(line: bytes) -> Record:
    """Read one line. Raises ValueError (msgspec's, with what and where) when it is not one of the five types."""
    try:
        return _record.decode(line)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def encode(record: Record) -> bytes:
    """Write one record as one line with its newline; `type` comes first."""
    return _encoder.encode(record) + b"\n"


def type_of(line: bytes) -> str:
    """Tell a line's type without reading it whole; '' when it is not a JSON object with a `type`."""
    cut = line.find(b",")
    name = _HEADS.get(line[:cut] if cut > 0 else line.rstrip(b"}\n"))
    if name is not None:
        return name
    try:
        return _tag.decode(line).type
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def splice(line: bytes, **fields: object) -> bytes:
    """Add fields before the line's last `}` and leave every other byte alone.

    The caller never adds a field the line already has: readers keep the last of two. Fields that are None are not
    written. `line` may end in a newline; the result always does.
    """
    body = line.rstrip()
    assert body.endswith(b"}"), body[-40:]
    parts = [b'"%s":%s' % (name.encode(), _encoder.encode(value)) for name, value in fields.items() if value is not None]
    if not parts:
        return body + b"\n"
    comma = b"" if body[:-1].rstrip().endswith(b"{") else b","
    return body[:-1] + comma + b",".join(parts) + b"}\n"


def fits(line: bytes) -> bool:
    """Tell whether a line may cross a pipe."""
    return len(line) <= limits.RECORD_BYTES_MAX
