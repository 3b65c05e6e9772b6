"""A running crawl is steered: what crawltool control sets holds at once, over stops, and is logged."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from crawltool.stores.spool import SpoolWriter
from tests.e2e.crawls import CONTACT, Crawl, pages_asked, starts, wait_for
from tests.web import Ask, Web

DELAY_S = 0.4
SLOW = ["--delay", str(DELAY_S), "--delay-factor", "0"]


def told(crawl: Crawl) -> list[dict[str, Any]]:
    """Give what control lines did, from stats.jsonl."""
    rows = [json.loads(line) for line in (crawl.dir / "stats.jsonl").read_text().splitlines()]
    return [row["control"] for row in rows if "action" in row.get("control", {})]


def control(crawl: Crawl, *words: str, code: int = 0) -> str:
    return crawl.tool("control", *words, code=code).stderr


def asked(web: Web, url: str) -> list[Ask]:
    return [ask for ask in web.log() if ask.url == url]


def started(web: Web, crawl: Crawl, *more: str) -> Any:
    process = crawl.start(*more)
    wait_for(lambda: len(web.log()) > 4, what="the first pages")
    return process


def test_an_injected_url_is_fetched_within_one_host_delay(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=300"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *SLOW, *CONTACT)
        process = started(web, crawl)
        url = web.url("a", "/?injected")
        before = time.monotonic()
        control(crawl, "inject", url)
        wait_for(lambda: asked(web, url), what=url)
        took_s = time.monotonic() - before
        log = web.log()
        at = next(number for number, ask in enumerate(log) if ask.url == url)
        assert took_s < 4, f"{took_s:.1f} s"  # the command itself starts Python
        assert starts(log, 1, DELAY_S) == [], "the host was asked early for it"
        applied_at = next(
            row["at"]
            for row in map(json.loads, (crawl.dir / "stats.jsonl").read_text().splitlines())
            if "action" in row.get("control", {})
        )
        between = [ask for ask in log[:at] if ask.at > applied_at + 0.05]
        assert len(between) <= 1, f"{len(between)} pages went before it"
        assert "stopping" in control(crawl, "stop")
        assert process.wait(20) == 75, crawl.said()
        assert told(crawl)[0] == {"action": "inject", "url": url, "did": "queued"}


def test_a_pause_stops_releases_and_holds_over_a_restart(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=20"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), "--delay", "0.1", "--delay-factor", "0", *CONTACT)
        process = started(web, crawl)
        assert "paused" in control(crawl, "pause")
        time.sleep(0.5)
        seen = len(web.log())
        assert "was paused already" in control(crawl, "pause")
        time.sleep(1)
        assert len(web.log()) == seen and process.poll() is None
        control(crawl, "stop")
        assert process.wait(20) == 75, crawl.said()
        process = crawl.start()
        time.sleep(2)
        assert len(web.log()) == seen and process.poll() is None
        assert crawl.status()["control"]["paused"]
        control(crawl, "resume")
        assert process.wait(30) == 0, crawl.said()
        assert max(pages_asked(web.log()).values()) == 1
        assert "nothing to stop" in control(crawl, "stop")


def test_a_block_refuses_the_queue_and_its_end_brings_it_back(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=30", "b": "plain pages=10"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), web.url("b"), *SLOW, *CONTACT)
        process = started(web, crawl)
        host = web.address("a")
        control(crawl, "block", host)
        wait_for(lambda: crawl.status()["refused"].get("banned"), what="refusals")
        seen = len([ask for ask in web.log() if ask.url.startswith(web.url("a"))])
        assert process.wait(60) == 0, crawl.said()
        late = [ask for ask in web.log() if ask.url.startswith(web.url("a"))][seen:]
        assert len(late) <= 1, "only what was out comes in"
        told_why = crawl.tool("why", "--json", next(iter(refused(crawl, "banned")))).stdout
        assert json.loads(told_why)["detail"] == f"{host} (control)"
        assert "started" in control(crawl, "unblock", host)
        crawl.run()
        assert "banned" not in crawl.status()["refused"]


def refused(crawl: Crawl, reason: str) -> list[str]:
    """Give the URLs that were refused, from the database."""
    from crawltool.core.frontier import rows
    from crawltool.stores.crawldb import CrawlDb

    db = CrawlDb.look(crawl.dir / "frontier.db")
    settled = [rows.settled_of(value) for _, value in db.scan(rows.Table.SETTLED, b"", b"\xff" * 20, 1000)]
    db.close()
    return [one.entry.url for one in settled if one.reason == reason]


def state_of(crawl: Crawl, text: str) -> object:
    """Give the state of a URL."""
    from crawltool.core import urls

    url = urls.parse(text)
    assert url is not None
    told = crawl.tool("why", url.href, "--json")
    return json.loads(told.stdout)["state"]


def test_a_slow_down_holds_at_once(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=60"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), "--delay", "0.05", "--delay-factor", "0", *CONTACT)
        process = started(web, crawl)
        host = web.address("a")
        control(crawl, "slow", host, "--value", "1s")
        time.sleep(0.3)
        seen = len(web.log())
        time.sleep(2.5)
        assert 1 <= len(web.log()) - seen <= 3
        control(crawl, "slow", host, "--value", "none")
        assert process.wait(60) == 0, crawl.said()
        assert starts(web.log()[seen : seen + 2], 1, 1.0) == []


def test_what_is_forgotten_is_not_known_and_is_logged(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=8", "b": "plain pages=8"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), web.url("b"), "--delay", "0", "--delay-factor", "0", *CONTACT)
        crawl.run()
        before = crawl.status()["accepted"]
        host = web.address("a")
        control(crawl, "block", host)
        assert "started" in control(crawl, "forget", host)
        crawl.run()
        status = crawl.status()
        settled = status["done"] + sum(status["failed"].values()) + sum(status["refused"].values())
        assert 0 < status["accepted"] == settled < before, status
        states = {url: state_of(crawl, url) for url in pages_asked(web.log())}
        assert {state for url, state in states.items() if url.startswith(web.url("a"))} == {"unknown"}
        assert "unknown" not in {state for url, state in states.items() if url.startswith(web.url("b"))}
        assert [row for row in told(crawl) if row["action"] == "forget" and row.get("did") == "forgotten"]


def test_a_ban_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    bans = tmp_path / "optouts.txt"
    bans.write_text("# nobody yet\n")
    with Web(tmp_path, {"a": "plain pages=100"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *SLOW, *CONTACT, "--ban-file", str(bans))
        process = started(web, crawl)
        bans.write_text(web.address("a") + "\n")
        assert process.wait(30) == 0, crawl.said()
        assert crawl.status()["refused"]["banned"] > 3
        bans.write_text("what is this\n")
        assert f"{bans}:1:" in crawl.run(code=78)


def test_a_channel_has_a_quota_and_no_control(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=30"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), "--delay", "0.1", *CONTACT, "--channel", "feeds=2")
        process = started(web, crawl)
        lines = [json.dumps({"type": "control", "action": "pause"})]
        urls = [web.url("a", f"/?feed{number}") for number in range(5)]
        lines += [json.dumps({"type": "candidate", "url": url, "source": "seed"}) for url in urls]
        writer = SpoolWriter(crawl.dir / "inbox.d" / "feeds")  # a folder that was not there when the crawl began
        writer.publish([line.encode() + b"\n" for line in lines])
        writer.close()
        assert process.wait(60) == 0, crawl.said()
        refused_lines = crawl.status()["lines_refused"]
        assert refused_lines["control: not from the operator"] == 1
        assert refused_lines["candidate: over the quota of inbox.d/feeds"] == 3
        assert len([url for url in pages_asked(web.log()) if "?feed" in url]) == 2
        assert not crawl.status()["control"]["paused"]


def test_the_input_brings_what_accept_names(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=3"}) as web:
        crawl = Crawl(tmp_path)
        crawl.tool("init", *CONTACT)
        lines = [{"type": "control", "action": "stop"}, {"type": "candidate", "url": web.url("a")}]
        given = "".join(json.dumps(line) + "\n" for line in lines)
        crawl.tool("frontier", "--accept", "outcome", input=given, code=None)
        refused_lines = crawl.status()["lines_refused"]
        assert refused_lines == {"control: not from the operator": 1, "candidate: not from the input": 1}
        assert "--accept control" in crawl.tool("frontier", "--accept", "control", input="", code=64).stderr


def test_control_without_a_crawl_says_what_is_wrong(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, "http://127.0.0.1:1/")
    assert "no such crawl directory" in control(crawl, "pause", code=66)
    crawl.dir.mkdir()
    assert "needs a host" in control(crawl, "slow", "--value", "1", code=64)
    assert "needs --value" in control(crawl, "slow", "a.example", code=64)
    assert "takes no --value" in control(crawl, "pause", "--value", "1", code=64)
    assert "needs a URL" in control(crawl, "inject", "a.example", code=64)
    assert "no host, domain or pattern" in control(crawl, "block", "a b", code=78)
