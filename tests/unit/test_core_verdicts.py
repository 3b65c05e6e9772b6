"""core/verdicts: one place where facts become words."""

from __future__ import annotations

import pytest

from crawltool.core.verdicts import Facts, availability, by_status, classify, redirect_of
from crawltool.records import VERDICTS


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, "ok"),
        (206, "ok"),
        (301, "redirect"),
        (304, "not_modified"),
        (402, "payment_required"),
        (404, "client_error"),
        (410, "gone"),
        (429, "busy"),
        (500, "server_error"),
        (503, "busy"),
        (999, "malformed"),
        (0, "malformed"),
        (101, "malformed"),
    ],
)
def test_every_status_has_a_verdict(status: int, verdict: str) -> None:
    assert by_status(status) == verdict
    assert verdict in VERDICTS


@pytest.mark.parametrize(
    ("facts", "verdict", "reason"),
    [
        (Facts(error="timeout", reason="connect"), "timeout", "connect"),
        (Facts(error="blocked_address", reason="loopback"), "blocked_address", "loopback"),
        (Facts(status=200), "ok", None),
        (Facts(status=200, error="timeout", reason="total", truncated="time"), "timeout", "total"),
        (Facts(status=200, error="too_large", reason="body over 5 bytes", truncated="length"), "too_large", "body over 5 bytes"),
        (Facts(status=404, error="too_large", reason="body over 5 bytes", truncated="length"), "client_error", None),
        (Facts(status=503, error="timeout", reason="total", truncated="time"), "busy", None),
        (Facts(status=200, truncated="disconnect", reason="closed"), "ok", "closed"),
        (Facts(status=200, wanted=False, reason="video/mp4", truncated="length"), "skipped_type", "video/mp4"),
        (Facts(status=404, wanted=False, reason="video/mp4"), "client_error", None),
        (Facts(status=304, asked_if=True), "not_modified", None),
        (Facts(status=304), "malformed", "304 to a request without validators"),
        (Facts(status=777), "malformed", "status 777"),
    ],
)
def test_a_status_outweighs_trouble_unless_the_body_was_wanted(facts: Facts, verdict: str, reason: str | None) -> None:
    assert classify(facts) == (verdict, reason)


@pytest.mark.parametrize("truncated", ["disconnect", "unspecified"])
def test_half_a_robots_file_holds_no_rules(truncated: str) -> None:
    verdict, _ = classify(Facts(kind="robots", status=200, truncated=truncated))
    assert availability(verdict, 200) == "unreachable"


def test_a_robots_file_over_its_limit_is_read_as_far_as_that() -> None:
    verdict, _ = classify(Facts(kind="robots", status=200, error="too_large", truncated="length"))
    assert availability(verdict, 200) == "rules"


@pytest.mark.parametrize(
    ("verdict", "status", "means"),
    [
        ("ok", 200, "rules"),
        ("client_error", 404, "allow_all"),
        ("client_error", 403, "allow_all"),
        ("gone", 410, "allow_all"),
        ("busy", 429, "unreachable"),
        ("busy", 503, "unreachable"),
        ("server_error", 500, "unreachable"),
        ("timeout", None, "unreachable"),
        ("timeout", 200, "unreachable"),
        ("malformed", 200, "unreachable"),
        ("tls_error", None, "unreachable"),
    ],
)
def test_availability_follows_the_status(verdict: str, status: int | None, means: str) -> None:
    assert availability(verdict, status) == means


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://:443/", "not_a_url"),
        ("http://site.test:notaport/", "not_a_url"),
        ("http://[::1", "not_a_url"),
        ("https://b.test:robots.txt", "not_a_url"),
        ("data:text/html,x", "scheme"),
        ("javascript:void(0)", "scheme"),
        ("file:///etc/hostname", "scheme"),
        ("ftp://site.test/x", "scheme"),
        (None, "no Location"),
    ],
)
def test_an_unusable_location_is_no_redirect_and_says_why(location: str | None, reason: str) -> None:
    redirect, why = redirect_of(location, "http://site.test/a/b?c")
    assert redirect is None
    assert why is not None and why.startswith(f"bad_redirect: {reason}")


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("", "http://site.test/a/b?c"),
        ("d#frag", "http://site.test/a/d"),
        ("//Other.test", "http://other.test/"),
        ("?x=%2f", "http://site.test/a/b?x=%2f"),
        ("/\xc3\xbc", "http://site.test/%C3%BC"),
        ("/\xfc", "http://site.test/%C3%BC"),
        ("  /sp ace ", "http://site.test/sp%20ace"),
    ],
)
def test_a_usable_location_is_resolved_as_a_browser_does(location: str, leads_to: str) -> None:
    assert redirect_of(location, "http://site.test/a/b?c") == (leads_to, None)
