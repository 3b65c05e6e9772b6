"""`why` explains any URL truly, by the crawl it is asked about."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.crawls import FAST, Crawl
from tests.web import Web


def test_why_tells_what_happened_to_each_url(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=4", "shut": "robots_all", "dead": "refused"}) as web:
        seeds = {name: web.url(name) for name in ("a", "shut", "dead")}
        crawl = Crawl(tmp_path, *seeds.values(), f"{seeds['a']}no-such-page", *FAST)
        crawl.run()
        done = json.loads(crawl.tool("why", "--json", seeds["a"]).stdout)
        assert done["state"] == "done"
        assert [(row["verdict"], row["status"]) for row in done["exchanges"] if row["kind"] == "page"] == [("ok", 200)]
        told = crawl.tool("why", seeds["a"].removeprefix("http://")).stdout
        assert "done" in told and "ok 200" in told and "warc/" in told, told
        told = crawl.tool("why", seeds["shut"]).stdout
        assert "refused" in told and "robots" in told and "disallow: /" in told, told
        told = crawl.tool("why", seeds["dead"]).stdout
        assert "refused: robots_unreachable" in told and "given up" in told, told
        told = crawl.tool("why", f"{seeds['a']}no-such-page").stdout
        assert "404" in told, told
        unknown = crawl.tool("why", f"{seeds['a']}never-linked", code=66)
        assert "not known" in unknown.stdout + unknown.stderr
        assert crawl.tool("why", "mailto:me@x.org", code=64).stderr
