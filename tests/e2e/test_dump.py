"""`dump` prints every URL of a crawl once, and its sums are the crawl's own, also while it runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.crawls import FAST, Crawl, wait_for
from tests.web import Web


def dumped(crawl: Crawl, *options: str, code: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in crawl.tool("dump", *options, code=code).stdout.splitlines()]


def sums(status: dict[str, Any]) -> Counter[tuple[str, str | None]]:
    found: Counter[tuple[str, str | None]] = Counter({(state, None): status[state] for state in ("queued", "leased", "done")})
    for state in ("failed", "refused"):
        found.update({(state, reason): count for reason, count in status[state].items()})
    return +found


def test_dump_prints_every_url_once_with_its_state_and_reason(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=12", "shut": "robots_all", "dead": "refused"}) as web:
        seeds = {name: web.url(name) for name in ("a", "shut", "dead")}
        crawl = Crawl(tmp_path, *seeds.values(), f"{seeds['a']}no-such-page", *FAST, "--max-depth", "2")
        crawl.run()
        rows = dumped(crawl)
        assert len({row["url"] for row in rows}) == len(rows)
        assert Counter((row["state"], row.get("reason")) for row in rows) == sums(crawl.status())
        assert {row["state"] for row in rows} == {"done", "failed", "refused"}
        by_url = {row["url"]: row for row in rows}
        seed, missing, shut = by_url[seeds["a"]], by_url[f"{seeds['a']}no-such-page"], by_url[seeds["shut"]]
        assert (seed["state"], seed["verdict"], seed["status"], seed["depth"], seed.get("via")) == ("done", "ok", 200, 0, None)
        assert (missing["state"], missing["reason"], missing["detail"]) == ("failed", "client_error", "404")
        assert shut["reason"] == "robots" and shut["detail"].startswith("disallow: /")
        linked = [row for row in rows if row["state"] == "done" and row["url"] not in seeds.values()]
        assert linked and all(row["via"] in by_url and row["depth"] > 0 for row in linked)

        counts = dumped(crawl, "--count")
        assert Counter({(row["state"], row.get("reason")): row["urls"] for row in counts}) == sums(crawl.status())
        assert [row["url"] for row in dumped(crawl, "--state", "refused", "--host", web.address("shut"))] == [seeds["shut"]]
        assert dumped(crawl, "--reason", "robots", "--match", "*nothing*") == []
        assert {row["url"] for row in dumped(crawl, "--match", "re:no-such", "--match", "/none")} == {missing["url"]}

        hosts = {row["host"]: row for row in dumped(crawl, "--hosts")}
        assert set(hosts) == {web.address(name) for name in seeds}
        assert hosts[web.address("dead")]["state"] == "closed" and hosts[web.address("dead")]["reason"] == "robots_unreachable"
        assert hosts[web.address("a")]["pages"] == crawl.status()["pages"]
        assert sum(row["queued"] for row in hosts.values()) == crawl.status()["queued"]
        assert hosts[web.address("a")]["budget"]["pages_h"] >= 0
        crawl.tool("dump", "--hosts", "--count", code=64)
        crawl.tool("dump", "--match", "re:(", code=78)

        for path in (crawl.dir / "outcomes").glob("*.zst"):
            path.unlink()
        lost = crawl.tool("dump", code=74)
        assert "done: 0 rows" in lost.stderr and "counters differ" in lost.stderr
        assert len(lost.stdout.splitlines()) == len(rows) - crawl.status()["done"]


def test_the_sums_match_while_the_crawl_runs(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=400"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST, "--per-host", "4")
        process = crawl.start()
        try:
            wait_for(lambda: (crawl.dir / "frontier.db" / "CURRENT").exists())
            looks = 0
            while process.poll() is None:
                rows = dumped(crawl)
                assert len({row["url"] for row in rows}) == len(rows)
                looks += 1
        finally:
            assert process.wait(60) == 0, crawl.said()
        assert looks > 1
        rows = dumped(crawl)
        assert Counter((row["state"], row.get("reason")) for row in rows) == sums(crawl.status())


def test_why_follows_a_page_back_to_its_seed(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "calendar"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST, "--max-depth", "25")
        crawl.run()
        last = max(dumped(crawl, "--state", "done"), key=lambda row: row["depth"])
        told = json.loads(crawl.tool("why", "--json", last["url"]).stdout)
        chain = [link["url"] for link in told["chain"]]
        assert chain[0] == last["via"] and len(chain) == 20
        assert all(link["state"] == "done" for link in told["chain"])
        assert last["depth"] == 25 and len(set(chain)) == 20
        assert told["host"]["slots"] and told["host"]["state"] == "open"
        assert told["robots"]["expires_at"] > told["robots"]["fetched_at"]
        near = json.loads(crawl.tool("why", "--json", chain[-1]).stdout)
        assert near["chain"][-1] == {"url": web.url("a"), "state": "done", "depth": 0, "status": 200}
        said = crawl.tool("why", last["url"]).stdout
        assert f"found on {last['via']} (done)" in said and "robots.txt:" in said
