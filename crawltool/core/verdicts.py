"""What did an exchange come to?

The one place where status codes and the engine's error words become verdicts (records.VERDICTS). Called by stages/fetch;
the frontier asks availability() what an answer to /robots.txt means.
"""

from __future__ import annotations

from typing import Literal

from crawltool.records import Verdict

_BY_STATUS: dict[int, Verdict] = {304: "not_modified", 402: "payment_required", 410: "gone", 429: "busy", 503: "busy"}
_BY_HUNDRED: dict[int, Verdict] = {2: "ok", 3: "redirect", 4: "client_error", 5: "server_error"}


def by_status(status: int) -> Verdict:
    """Give the verdict on a complete answer with this status; a number that HTTP does not know is malformed."""
    return _BY_STATUS.get(status) or _BY_HUNDRED.get(status // 100, "malformed")


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
