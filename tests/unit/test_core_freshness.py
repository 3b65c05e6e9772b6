"""core/freshness: whatever a server writes about time gives a bounded number or None."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.freshness import http_date, max_age_s, retry_after_s

NOW = 1_784_000_000.0  # 14 July 2026


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "sun, 06 nov 1994 08:49:37 gmt",
    ],
)
def test_the_three_forms_of_a_date_are_one_moment(text: str) -> None:
    assert http_date(text, NOW) == 784111777.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "yesterday",
        "Sun, 31 Feb 2026 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Xyz 1994 08:49:37 GMT",
        "١",
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert http_date(text, NOW) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 5 ", 5.0),
        ("9999999999", float(limits.RETRY_AFTER_S_MAX)),
        ("9" * 5000, float(limits.RETRY_AFTER_S_MAX)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wednesday, 21-Oct-15 07:28:00 GMT", 0.0),
        ("Tue, 14 Jul 2026 03:33:40 GMT", 20.0),
        ("Sat, 01 Jan 9999 00:00:00 GMT", float(limits.RETRY_AFTER_S_MAX)),
        ("-5", None),
        ("1.5", None),
        ("120junk", None),
        ("", None),
        ("5, 10", None),
        (None, None),
    ],
)
def test_retry_after_is_whole_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds


DATE, LATER = "Tue, 14 Jul 2026 03:33:20 GMT", "Tue, 14 Jul 2026 04:33:20 GMT"


@pytest.mark.parametrize(
    ("cache_control", "expires", "date", "age", "seconds"),
    [
        ("public, max-age=600", None, None, None, 600.0),
        ("Max-Age=600", LATER, DATE, "100", 500.0),
        ('max-age="600"', None, None, "700", 0.0),
        ("s-maxage=5, max-age=60", None, None, None, 60.0),
        ("s-maxage=5", None, None, None, None),
        ("no-cache", LATER, DATE, None, 0.0),
        ("max-age=60, no-store", None, None, None, 0.0),
        ("max-age=-1", None, None, None, None),
        (None, LATER, DATE, None, 3600.0),
        (None, LATER, None, None, 3600.0),
        (None, "0", DATE, None, 0.0),
        (None, DATE, LATER, None, 0.0),
        (None, None, DATE, None, None),
    ],
)
def test_freshness_is_told_by_cache_control_then_expires(
    cache_control: str | None, expires: str | None, date: str | None, age: str | None, seconds: float | None
) -> None:
    assert max_age_s(cache_control, expires, date, age, NOW) == seconds


@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    for value in (retry_after_s(text, NOW), max_age_s(text, None, text, text, NOW), max_age_s(None, text, text, text, NOW)):
        assert value is None or value >= 0
