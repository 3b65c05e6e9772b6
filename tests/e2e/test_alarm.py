"""A crawl that runs into spaces without an end says so, names host and pattern, and says it once over two runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.crawls import FAST, Crawl
from tests.web import Web

PAGES = 2 * 1100


def test_an_endless_space_is_named_once(tmp_path: Path) -> None:
    with Web(tmp_path, {"sessions": "sessions", "maze": "maze", "honest": "plain pages=150"}) as web:
        seeds = [web.url(name) for name in ("sessions", "maze", "honest")]
        crawl = Crawl(tmp_path, *seeds, *FAST, "--text", "none", "--max-depth", "none", "--per-host", "8")
        said = crawl.run("--max-pages", str(PAGES), timeout_s=120)
        hosts = {name: web.url(name).split("/")[2].split(":")[0] for name in ("sessions", "maze", "honest")}
        lines = [line for line in said.splitlines() if "no end" in line or "endless" in line]
        assert any(hosts["sessions"] in line and "PHPSESSID" in line for line in lines), said
        assert any(hosts["maze"] in line for line in lines), said
        assert not any(hosts["honest"] in line for line in lines), said
        last = json.loads((crawl.dir / "stats.jsonl").read_text().splitlines()[-1])
        assert last["discovery"]["alarms"] == 2
        again = crawl.run("--max-pages", str(PAGES + 300), timeout_s=60)
        assert "PHPSESSID" not in again
