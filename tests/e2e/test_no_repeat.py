"""libcurl never repeats a request by itself: hosts that close kept-alive connections see each request once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.crawls import FAST, Crawl, pages_asked
from tests.web import Web


@pytest.mark.parametrize("words", ["hang_up", "idle_close", "idle_close idle_s=0.02"])
def test_a_connection_closed_by_the_server_costs_no_page_and_no_second_request(tmp_path: Path, words: str) -> None:
    with Web(tmp_path, {"a": words}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        crawl.run()
        asked = pages_asked(web.log())
        assert len(asked) == 41
        assert [url for url, times in asked.items() if times > 1] == []
        # A request that met a connection as it closed never reached the server: it may be told as such, and is asked once.
        assert {record["url"] for record in crawl.outcomes("page") if record["verdict"] == "ok"} == set(asked)


def test_a_request_that_was_read_and_dropped_is_an_outcome_before_it_is_sent_again(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "drop every=3"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        crawl.run()
        exchanges = [record for record in crawl.outcomes("page") if record.get("fetched_at")]
        assert len(exchanges) == sum(pages_asked(web.log()).values()), "the server saw a request that is not in the log"
        assert [ask for ask in web.log() if ask.number >= 3], "no connection was kept: this proves nothing"
