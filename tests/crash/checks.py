"""What must hold of a crawl that was killed again and again, once it has been run to its end.

Called by tests/crash/campaign and test_kill. Facts come from the test web's own log, from other people's WARC readers, and from
files read without crawltool.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from tests.e2e.crawls import Crawl, pages_asked
from tests.e2e.test_whole_site import may
from tests.web import Ask

NOT_PLAIN = ("dups", "slow", "late")  # their robots.txt is not that of tests/web/behaviours/plain.py


def check(crawl: Crawl, asks: list[Ask], expected: set[str], repeats_max: int) -> None:
    """Claim what DESIGN promises: no page is lost, few are fetched twice, the archives can be read, the sums match."""
    asked = pages_asked(asks)
    assert set(asked) == expected, (sorted(expected - set(asked))[:9], sorted(set(asked) - expected)[:9])
    repeats = asked.total() - len(asked)
    assert repeats <= repeats_max, f"{repeats} repeats, {repeats_max} may be"
    assert not [ask for ask in asks if ask.site not in NOT_PLAIN and not may(ask.target)]
    crawl.check_warcs()
    settled = {record["url"] for record in crawl.outcomes() if record["kind"] == "page" and record.get("status")}
    assert settled >= expected, f"not in the log: {sorted(expected - settled)[:9]}"
    check_locators(crawl)
    check_sums(crawl)


def check_locators(crawl: Crawl) -> None:
    """Claim that every locator of the log leads to a whole gzip member."""
    for record in crawl.outcomes():
        for locator in filter(None, (record.get("warc"), record.get("body_warc"))):
            data = (crawl.dir / "warc" / locator["file"]).read_bytes()[locator["offset"] :][: locator["length"]]
            assert record["url"].encode() in zlib.decompress(data, 31)[:4000] or locator is record.get("body_warc"), locator


def check_sums(crawl: Crawl) -> None:
    """Claim that every accepted URL is accounted for (law 6)."""
    status = crawl.status()
    parts = [status[name] for name in ("queued", "leased", "done", "failed", "refused")]
    total = sum(sum(part.values()) if isinstance(part, dict) else part for part in parts)
    assert total == status["accepted"], status


def gaps(asks: Iterable[Ask]) -> list[tuple[float, float, str]]:
    """Give the time between each two requests that a host saw in a row, by the server's clock: seconds, when, and of what."""
    last: dict[str, Ask] = {}
    found = []
    for ask in sorted(asks, key=lambda ask: ask.t):
        before = last.get(ask.host)
        if before is not None:
            found.append((ask.t - before.t, before.t, f"{before.url} and {ask.url}"))
        last[ask.host] = ask
    return found
