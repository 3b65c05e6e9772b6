"""How long does an answer hold, and how long does a host ask to be left alone?

Reads the time fields of HTTP: dates in their three forms, Retry-After, Cache-Control and Expires. Junk gives None, never an
error; what is huge is capped. `now` is epoch seconds. Called by fetch for outcomes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from crawltool import limits

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
_FORMS = (
    re.compile(rf"[a-z]{{3}}, (?P<day>\d\d) (?P<month>[a-z]{{3}}) (?P<year>\d{{4}}) {_CLOCK} gmt", re.IGNORECASE | re.ASCII),
    re.compile(rf"[a-z]{{6,9}}, (?P<day>\d\d)-(?P<month>[a-z]{{3}})-(?P<year>\d\d) {_CLOCK} gmt", re.IGNORECASE | re.ASCII),
    re.compile(rf"[a-z]{{3}} (?P<month>[a-z]{{3}}) (?P<day>[ \d]\d) {_CLOCK} (?P<year>\d{{4}})", re.IGNORECASE | re.ASCII),
)
_DIGITS = re.compile(r"[0-9]+")
_MAX_AGE = re.compile(r'(?<![a-z-])max-age\s*=\s*"?([0-9]+)"?')
_YEAR_S = 365.25 * 86_400


def http_date(text: str, now: float) -> float | None:
    """Read an HTTP-date in any of its three forms; epoch seconds, or None. Source: RFC 9110 section 5.6.7.

    A year of two digits that would lie more than fifty years ahead of now is one of the century before.
    """
    for form in _FORMS:
        match = form.fullmatch(text.strip())
        if match is None:
            continue
        name = match["month"].lower()
        month = _MONTHS.index(name) + 1 if name in _MONTHS else 0
        year = int(match["year"])
        if len(match["year"]) == 2:
            year += datetime.fromtimestamp(now, UTC).year // 100 * 100
            at = _epoch(year, month, match)
            if at is not None and at > now + 50 * _YEAR_S:
                year -= 100
        return _epoch(year, month, match)
    return None


def retry_after_s(value: str | None, now: float) -> float | None:
    """Read Retry-After: whole seconds or a date; a date gone by is 0, junk is None, never above its limit.

    Source: RFC 9110 section 10.2.3.
    """
    if value is None:
        return None
    value = value.strip()
    if _DIGITS.fullmatch(value):
        return float(min(int(value[:18]), limits.RETRY_AFTER_S_MAX))
    at = http_date(value, now)
    return None if at is None else min(max(at - now, 0.0), float(limits.RETRY_AFTER_S_MAX))


def max_age_s(cache_control: str | None, expires: str | None, date: str | None, age: str | None, now: float) -> float | None:
    """Tell for how many seconds from now an answer is fresh, None when it does not say.

    Cache-Control wins over Expires, which counts from the answer's own Date; what Age tells is taken off. An Expires that is
    no date means stale. Source: RFC 9111 sections 4.2, 5.2.2 and 5.3.
    """
    spent = float(int(age.strip()[:18])) if age is not None and _DIGITS.fullmatch(age.strip()) else 0.0
    for directive in (cache_control or "").lower().split(","):
        word = directive.strip()
        if word in ("no-store", "no-cache"):
            return 0.0
    found = _MAX_AGE.search((cache_control or "").lower())
    if found is not None:
        return max(float(int(found[1][:18])) - spent, 0.0)
    if expires is None:
        return None
    until = http_date(expires, now)
    if until is None:
        return 0.0
    since = http_date(date, now) if date is not None else None
    return max(until - (now if since is None else since) - spent, 0.0)


def _epoch(year: int, month: int, match: re.Match[str]) -> float | None:
    try:
        # A leap second is the second before it: datetime has none.
        seconds = min(int(match["s"]), 59)
        return datetime(year, month, int(match["day"]), int(match["h"]), int(match["m"]), seconds, tzinfo=UTC).timestamp()
    except ValueError:
        return None
