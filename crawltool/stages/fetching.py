"""How does a target become a request, and what came of it an outcome?

The companion of stages/fetch: no waiting and no state here. Builds the engine's Request with the operator's identity and
reads the Exchange into a WARC capture and an Outcome; the verdict is core/verdicts'. Law 9: what goes on the wire is the
target's URL, escapes as found. Law 10: every request says who asks.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from crawltool import limits
from crawltool.core import decoding, freshness, robots, verdicts
from crawltool.core.identity import Identity
from crawltool.core.mediatypes import WantedTypes, essence
from crawltool.core.urls import Url
from crawltool.net import guard
from crawltool.net.asking import HeaderList
from crawltool.net.dns import Answer
from crawltool.net.engine import Exchange, Request
from crawltool.records import Outcome, Prior, Robots, Target, Verdict
from crawltool.stores.warc import Capture, Stored

SHOWN_CHARS = 300  # of a Content-Type or reason in an outcome
VALIDATOR_CHARS_MAX = 1000
_encode = msgspec.json.Encoder().encode


class Asking:
    """Makes requests and outcomes with one set of settings."""

    def __init__(
        self,
        identity: Identity,
        types: WantedTypes,
        max_body_bytes: int,
        timeouts_s: tuple[float, float, float],
        connect_port: Callable[[str, int], int],
    ) -> None:
        """timeouts_s: connect, first byte, total. connect_port tells where a pin moves a port."""
        self._identity, self._types, self._timeouts_s, self._connect_port = identity, types, timeouts_s, connect_port
        self._headers = identity.headers()
        self._caps = {
            "robots": limits.ROBOTS_BYTES_MAX + 1,  # one more, so that a file of exactly the limit is known to be whole
            "sitemap": limits.SITEMAP_BYTES_MAX,
        }
        self._max_body_bytes = max_body_bytes

    def request(self, target: Target, url: Url, address: str) -> Request:
        """Build the request for a target to be asked at an address."""
        connect_s, first_byte_s, total_s = self._timeouts_s
        validators = _validators(target.prior)
        return Request(
            url.scheme,
            url.host.strip("[]"),
            url.port,
            url.target,
            address,
            headers=[*self._headers, *validators] if validators else self._headers,
            connect_port=self._connect_port(url.host, url.port),
            typed=target.typed,
            keep=target.rest_s <= 0,
            timeout_connect_s=connect_s,
            timeout_first_byte_s=first_byte_s,
            timeout_total_s=total_s,
            max_body_bytes=self._caps.get(target.kind, self._max_body_bytes),
            want=self._want if target.kind in ("page", "probe") else None,
        )

    def _want(self, status: int, headers: HeaderList) -> bool:
        for name, value in headers:
            if len(name) == 12 and name.lower() == "content-type":
                return self._types.wants(value)
        return True

    def outcome(self, target: Target, url: Url, exchange: Exchange, fetched_at: float) -> Outcome:
        """Tell what came of an exchange; where it is stored is added by archived()."""
        headers = _fields(exchange.headers)
        content_type = headers.get("content-type")
        facts = verdicts.Facts(
            target.kind,
            exchange.status,
            exchange.error,
            exchange.reason if exchange.wanted else essence(content_type),
            exchange.truncated,
            exchange.wanted,
            bool(_validators(target.prior)),
        )
        verdict, reason = verdicts.classify(facts)
        # Refused by the guard, or this machine had no descriptor: nobody was asked, and no clock moves.
        was_asked = exchange.status is not None or exchange.error not in ("blocked_address", "returned") or exchange.reused
        made = _blank(target, verdict, reason)
        if was_asked:
            made.fetched_at, made.elapsed_s = round(fetched_at, 6), round(exchange.elapsed_s, 6)
            made.timings, made.peer_ip = exchange.timings or None, exchange.peer_ip
        if exchange.status is None:
            return made
        made.status, made.headers = exchange.status, _bounded(headers)
        made.content_type = _shown(content_type)
        made.body_bytes, made.wire_bytes, made.truncated = exchange.body_bytes, exchange.wire_bytes, exchange.truncated
        made.etag, made.last_modified = _validator(headers.get("etag")), _validator(headers.get("last-modified"))
        if exchange.status >= 300:
            self._add_refusal(made, url, headers)
        if target.kind == "robots":
            made.robots = self._robots(made, exchange, headers)
        return made

    def _add_refusal(self, made: Outcome, url: Url, headers: dict[str, str]) -> None:
        """Add where a redirect leads and how long the host wants to be left alone."""
        if made.verdict == "redirect":
            made.redirect, bad = verdicts.redirect_of(headers.get("location"), url.href)
            made.reason = bad or made.reason
        assert made.fetched_at is not None and made.elapsed_s is not None
        made.retry_after_s = freshness.retry_after_s(headers.get("retry-after"), made.fetched_at + made.elapsed_s)

    def _robots(self, made: Outcome, exchange: Exchange, headers: dict[str, str]) -> Robots | None:
        """Read the rules that apply to us; of an answer that means "no rules" only how long it holds."""
        means = verdicts.availability(made.verdict, made.status)
        if means == "unreachable":
            return None
        found = Robots()
        if means == "rules" and exchange.body is not None:
            packed = exchange.body.read()
            body = decoding.decode(packed, headers.get("content-encoding"), limits.ROBOTS_BYTES_MAX + 1)
            if packed and not body.data:
                made.verdict, made.reason = "malformed", _shown(body.trouble)  # unreadable rules are not "no rules"
                return None
            found = robots.parse(body.data, self._identity.robots_token)
            found.cut = found.cut or exchange.truncated is not None
        assert made.fetched_at is not None and made.elapsed_s is not None
        found.max_age_s = freshness.max_age_s(
            headers.get("cache-control"),
            headers.get("expires"),
            headers.get("date"),
            headers.get("age"),
            made.fetched_at + made.elapsed_s,
        )
        return found


def capture(target: Target, url: Url, exchange: Exchange, fetched_at: float) -> Capture | None:
    """Give what is archived of an exchange; None when no answer came."""
    if exchange.status is None or exchange.body is None or not exchange.header_bytes:
        return None
    return Capture(
        url=url.href,
        fetched_at=fetched_at,
        ip=exchange.peer_ip,
        request_bytes=exchange.request_bytes,
        response_header_bytes=exchange.header_bytes,
        body=exchange.body,
        status=exchange.status,
        kind=target.kind,
        truncated=exchange.truncated,
        prior=target.prior if exchange.status == 304 else None,
    )


def archived(outcome: Outcome, stored: Stored) -> Outcome:
    """Add where the answer lies, now that it lies there (law 2)."""
    outcome.warc, outcome.body_warc, outcome.digest = stored.warc, stored.body_warc, stored.digest
    return outcome


def returned(target: Target, reason: str, fetched_at: float | None = None, elapsed_s: float | None = None) -> Outcome:
    """Give a target back; with times when its exchange was begun and cut off, so that the clocks move."""
    made = _blank(target, "returned", reason)
    made.fetched_at, made.elapsed_s = fetched_at, elapsed_s
    return made


def resolved(target: Target, answer: Answer, allow_nets: tuple[guard.Net, ...]) -> Outcome:
    """Answer kind address: the addresses that may be asked, or why none may."""
    refused = {one: guard.judge(one, target.typed, allow_nets) for one in answer.addresses}
    usable = [one for one, reason in refused.items() if reason is None]
    if not usable:
        return _blank(target, "blocked_address", ", ".join(f"{one} is {reason}" for one, reason in refused.items()))
    made = _blank(target, "ok", None)
    made.addresses, made.ttl_s = usable[: limits.ADDRESSES_OF_A_HOST_MAX], round(answer.ttl_s, 3)
    return made


def failed(target: Target, verdict: Verdict, reason: str) -> Outcome:
    """Answer a target for which nobody was asked."""
    return _blank(target, verdict, reason)


def _blank(target: Target, verdict: Verdict, reason: str | None) -> Outcome:
    return Outcome(
        url=target.url,
        lease=target.lease,
        kind=target.kind,
        verdict=verdict,
        reason=_shown(reason),
        depth=target.depth,
        hops=target.hops,
        tags=target.tags,
    )


def _validators(prior: Prior | None) -> list[tuple[str, str]]:
    """Give the conditions of a request, byte for byte as the server sent them; what HTTP cannot carry is not sent."""
    if prior is None:
        return []
    pairs = (("If-None-Match", prior.etag), ("If-Modified-Since", prior.last_modified))
    return [(name, value) for name, value in pairs if value and value.isascii() and value.isprintable()]


def _fields(headers: HeaderList) -> dict[str, str]:
    """Join fields of one name (RFC 9110 section 5.3); names in lower case. Of a Location only the first counts."""
    fields: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        if low not in fields:
            fields[low] = value
        elif low not in ("location", "content-type"):
            fields[low] = f"{fields[low]}, {value}"
    return fields


def _bounded(fields: dict[str, str]) -> dict[str, str]:
    """Keep what fits into an outcome, in the order received; all of it is in the archive."""
    if sum(map(len, fields)) + sum(map(len, fields.values())) + 6 * len(fields) < limits.OUTCOME_HEADERS_BYTES_MAX // 6:
        return fields
    kept: dict[str, str] = {}
    room = limits.OUTCOME_HEADERS_BYTES_MAX
    for name, value in fields.items():
        room -= len(_encode(name)) + len(_encode(value)) + 2
        if room < 0:
            break
        kept[name] = value
    return kept


def _validator(text: str | None) -> str | None:
    """Keep a validator whole or not at all: a shortened one would never match."""
    return text if text and len(text) <= VALIDATOR_CHARS_MAX else None


def _shown(text: str | None) -> str | None:
    return text[:SHOWN_CHARS] if text else None
