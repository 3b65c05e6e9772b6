"""The policy that was in force is kept with each run, and a stage may not speak under another name than its crawl."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.crawls import CONTACT, Crawl, tool
from tests.web import Web


def policies(crawl: Crawl) -> list[dict[str, str]]:
    """Give the policy of each run."""
    rows = map(json.loads, (crawl.dir / "stats.jsonl").read_text().splitlines())
    return [row["policy"] for row in rows if "policy" in row]


def test_each_run_keeps_what_was_in_force(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=3"}) as web:
        crawl = Crawl(tmp_path, web.url("a"))
        crawl.run("--delay", "0.01", "--delay-factor", "0", "--backoff", "0.1s")
        crawl.run("--delay", "20ms")
        crawl.run()
    kept = policies(crawl)
    assert [row["delay"] for row in kept] == ["0.01", "0.02", "0.02"]
    assert {row["backoff"] for row in kept} == {"0.1"} and {row["robots_ttl"] for row in kept} == {"4h"}


def test_a_stage_under_another_name_ends_with_78(tmp_path: Path) -> None:
    tool(tmp_path, "init", "-C", "c", *CONTACT, cwd=tmp_path)
    done = tool(tmp_path, "fetch", "-C", "c", "--contact", "other@x.org", cwd=tmp_path, code=78)
    assert "contradicts" in done.stderr and "crawltool init -C c --contact other@x.org" in done.stderr
    (tmp_path / "c" / "crawl.toml").write_text("[politeness]\ndely = 1\n")
    for stage in ("frontier", "fetch", "parse", "dedup"):
        done = tool(tmp_path, stage, "-C", "c", cwd=tmp_path, code=78)
        assert "politeness.dely" in done.stderr
