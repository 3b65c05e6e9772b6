"""net/failures: whose fault it was, in words that a record can hold."""

from __future__ import annotations

from crawltool import records
from crawltool.net import failures
from crawltool.records import Outcome


def test_a_reason_that_quotes_odd_bytes_fits_into_a_record() -> None:
    word, reason = failures.why_no_answer(8, "Unsolicited Transfer-Encoding (\udc9dhunked) found, bücher", 0, True, "http")
    assert (word, reason) == ("malformed", "Unsolicited Transfer-Encoding (\\x9dhunked) found, bücher")
    records.encode(Outcome(url="http://x.test/", lease="1-1", kind="page", verdict="malformed", reason=reason))


def test_an_error_without_a_message_still_has_a_reason() -> None:
    assert failures.why_no_answer(100, "", 0, True, "http") == ("malformed", "error 100 of libcurl")
