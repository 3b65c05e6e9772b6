"""What did an exchange come to?

The one place where status codes and the engine's error words become verdicts (records.VERDICTS). Called by stages/fetch;
the frontier asks availability() what an answer to /robots.txt means.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from crawltool.core import urls
from crawltool.records import VERDICTS, Verdict

_BY_STATUS: dict[int, Verdict] = {304: "not_modified", 402: "payment_required", 410: "gone", 429: "busy", 503: "busy"}
_BY_HUNDRED: dict[int, Verdict] = {2: "ok", 3: "redirect", 4: "client_error", 5: "server_error"}


class Facts(NamedTuple):
    """What the engine found, in plain values.

    status is None when no answer came; error is a verdict word or None; truncated says how the body broke off. wanted: the
    type filter's word. asked_if: validators were sent.
    """

    kind: str = "page"
    status: int | None = None
    error: str | None = None
    reason: str | None = None
    truncated: str | None = None
    wanted: bool = True
    asked_if: bool = False


def classify(facts: Facts) -> tuple[Verdict, str | None]:
    """Give verdict and reason. A status outweighs trouble with the body, unless the body is what was wanted."""
    if facts.status is None:
        assert facts.error in VERDICTS, facts
        return facts.error, facts.reason  # type: ignore[return-value]
    verdict = by_status(facts.status)
    if verdict == "malformed":
        return verdict, f"status {facts.status}"
    if verdict == "not_modified" and not facts.asked_if:
        return "malformed", "304 to a request without validators"
    if verdict != "ok":
        return verdict, None
    if facts.error is not None:
        assert facts.error in VERDICTS, facts
        return facts.error, facts.reason  # type: ignore[return-value]
    if not facts.wanted:
        return "skipped_type", facts.reason
    if facts.kind == "robots" and facts.truncated in ("disconnect", "unspecified"):
        return "unreachable", f"the file broke off: {facts.reason or facts.truncated}"  # half of the rules are no rules
    return verdict, facts.reason


def by_status(status: int) -> Verdict:
    """Give the verdict on a complete answer with this status; a number that HTTP does not know is malformed."""
    return _BY_STATUS.get(status) or _BY_HUNDRED.get(status // 100, "malformed")


def redirect_of(location: str | None, base: str) -> tuple[str | None, str | None]:
    """Resolve a Location (as latin-1 text): the absolute http(s) URL, or None and the reason why it cannot be followed.

    Raw octets above ASCII are read as UTF-8 where they are that, as browsers do.
    """
    if location is None:
        return None, "bad_redirect: no Location"
    if not location.isascii():
        raw = location.encode("latin-1", "replace")
        location = raw.decode("utf-8", "surrogateescape")
        if not location.isprintable():
            location = raw.decode("latin-1")
    url = urls.parse(location, base)
    if url is not None:
        return url.href, None
    joined = urls.join(base, location)
    return None, f"bad_redirect: {urls.why_not(location if joined is None else joined)}: {location[:200]}"


def availability(verdict: str, status: int | None) -> Literal["rules", "allow_all", "unreachable"]:
    """Tell what an answer to /robots.txt means: its rules hold, there are none, or nothing may be asked until it is retried.

    Source: RFC 9309 section 2.3.1; 429 counts as a server error: the host asks for a rest, it does not say "no rules". A file
    beyond the size limit is read as far as that (section 2.5); one that broke off may lack its rules and is unreachable.
    """
    if status is None:
        return "unreachable"
    if 400 <= status < 500 and status != 429:
        return "allow_all"
    if 200 <= status < 300 and verdict in ("ok", "too_large", "skipped_type"):
        return "rules"
    return "unreachable"
