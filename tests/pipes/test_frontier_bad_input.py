"""A frontier as a process, fed with what it should not be: each line is refused and counted, or applied within bounds."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from crawltool import limits, records
from crawltool.core.frontier.rows import Table
from crawltool.stores.crawldb import CrawlDb
from crawltool.stores.spool import SpoolWriter

COMMAND = [sys.executable, "-m", "crawltool"]
HOST = "http://192.0.2.1"
NO_RECORDS = [
    b"nonsense",
    b"{",
    b"[]",
    b"null",
    b"\x00\x01\xff\xfe",
    b'{"type":"candidate","url":"\xff"}',
    b"[" * 100_000,
    b'{"type":"candidate"}',
    b'{"type":"candidate","url":7}',
    b'{"type":"visit","url":"http://192.0.2.1/"}',
    b'{"url":"http://192.0.2.1/"}',
    b'{"type":"candidate","url":"http://192.0.2.1/x","depth":"deep"}',
    b'{"type":"candidate","url":"http://192.0.2.1/x","priority":NaN}',
    b'{"type":"candidate","url":"http://192.0.2.1/x","priority":Infinity}',
    b'{"type":"candidate","url":"http://192.0.2.1/x","kind":"door"}',
    b'{"type":"outcome","url":"http://192.0.2.1/","lease":"1-1","kind":"page","verdict":"splendid"}',
    b'{"type":"candidate","url":"http://192.0.2.1/' + b"x" * limits.RECORD_BYTES_MAX + b'"}',
]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("CRAWLTOOL_")}


def tool(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments, "-C", str(folder / "c")]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)


class Fed:
    """A frontier that knows one URL, and waits for what it is fed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        tool(folder, "init", "--contact", "t@crawltool.test")
        inbox = SpoolWriter(folder / "c" / "inbox")
        inbox.publish([records.encode(records.Candidate(url=f"{HOST}/a", source="seed"))])
        inbox.close()
        self.process = subprocess.Popen(
            [*COMMAND, "frontier", "-C", str(folder / "c"), "--delay", "0", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), bufsize=0,
        )  # fmt: skip

    def target(self) -> records.Target:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 20)[0], "no target came"
        target = records.decode(self.process.stdout.readline())
        assert isinstance(target, records.Target)
        return target

    def tell(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line.rstrip(b"\n") + b"\n" for line in lines))
        self.process.stdin.flush()

    def answer(self, verdict: str, **facts: Any) -> records.Target:
        target = self.target()
        self.tell(records.encode(outcome(target.url, target.lease, target.kind, verdict, **facts)))
        return target

    def end(self) -> tuple[int, str, dict[str, Any]]:
        """Close the input; gives exit code, what was said, and the last status."""
        try:
            _, said = self.process.communicate(timeout=30)
        finally:
            self.process.kill()
        status: dict[str, Any] = json.loads((self.folder / "c" / "status.json").read_text())
        parts = status["queued"] + status["leased"] + status["done"]
        assert status["accepted"] == parts + sum(status["failed"].values()) + sum(status["refused"].values())
        assert b"Traceback" not in said, said.decode()
        return self.process.returncode, said.decode(), status


def outcome(url: str, lease: str, kind: str, verdict: str, **facts: Any) -> records.Outcome:
    return records.Outcome(url=url, lease=lease, kind=kind, verdict=verdict, **facts)  # type: ignore[arg-type]


def test_lines_that_are_no_records_are_counted_and_the_rest_is_heard(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.tell(*NO_RECORDS)
    fed.answer("client_error", status=404, fetched_at=time.time())
    fed.tell(*NO_RECORDS, b"")
    fed.answer("ok", status=200, fetched_at=time.time())
    _, _, status = fed.end()
    assert status["done"] == 1 and status["accepted"] == 1
    assert status["bad_lines"] == status["lines_refused"]["not a record"] == 2 * len(NO_RECORDS)


def test_with_strict_the_first_such_line_ends_with_65_and_is_shown(tmp_path: Path) -> None:
    fed = Fed(tmp_path, "--strict")
    fed.tell(b"non\x1b[31msense")
    code, said, _ = fed.end()
    assert code == 65 and "sense" in said and "\x1b" not in said


def test_forged_and_foreign_leases_settle_nothing(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.answer("client_error", status=404, fetched_at=time.time())
    page = fed.target()
    facts: dict[str, Any] = {"status": 200, "fetched_at": time.time(), "links": [records.Link(url=f"{HOST}/found")]}
    forged = [
        outcome(f"{HOST}/never", page.lease, "page", "ok", **facts),  # the lease of another URL
        outcome(f"{HOST}/never", "9-9", "page", "ok", **facts),
        outcome("http://192.0.2.9/robots.txt", "1-1", "robots", "ok", robots=records.Robots(rules=[("disallow", "/", 1)])),
        outcome(page.url, "7-7", "address", "ok", addresses=["127.0.0.1"]),
        outcome("no url", "1-1", "page", "ok", **facts),
    ]
    control = records.Control(action="block", host="192.0.2.1")
    target = records.Target(url=f"{HOST}/x", lease="1-1", kind="page")
    fed.tell(*(records.encode(one) for one in (*forged, control, target)))
    fed.tell(records.encode(outcome(page.url, page.lease, "page", "ok", **facts)))
    fed.tell(records.encode(outcome(page.url, page.lease, "page", "server_error", status=500, fetched_at=time.time())))
    assert fed.target().url == f"{HOST}/found"
    _, _, status = fed.end()
    assert (status["accepted"], status["done"]) == (2, 1)
    assert status["lines_refused"]["outcome: never leased"] == 3 and status["lines_refused"]["outcome: no such lease"] == 2
    assert sum(count for why, count in status["lines_refused"].items() if why.startswith(("control", "target"))) == 2


@pytest.mark.parametrize("far_s", [1e9, 1e15, 1e300, -1e9, -1e300])
def test_times_far_away_move_no_clock_beyond_its_limit(tmp_path: Path, far_s: float) -> None:
    fed = Fed(tmp_path, "--backoff", "0.1", "--delay-factor", "0")
    fed.answer(
        "ok", status=200, fetched_at=far_s, elapsed_s=far_s, robots=records.Robots(crawl_delay_s=-abs(far_s), max_age_s=far_s)
    )
    for n in range(3):
        found = records.Candidate(url=f"{HOST}/{n}", due_at=far_s, priority=far_s, depth=n, importance=far_s)
        fed.tell(records.encode(found))
    fed.answer("ok", status=200, fetched_at=time.time() + far_s, elapsed_s=0.0)
    fed.answer("busy", status=429, fetched_at=far_s, elapsed_s=-far_s, retry_after_s=min(far_s, 0.0))
    fed.answer("ok", status=200, fetched_at=-far_s)
    fed.end()
    now = time.time()
    told = json.loads(tool(tmp_path, "why", "--json", f"{HOST}/a").stdout)
    assert told["state"] != "unknown"
    assert (told["host"].get("next_at") or 0.0) < now + 60
    assert told["robots"]["expires_at"] < now + 86_400
    assert tool(tmp_path, "dump", "--count").returncode == 0


def test_counts_below_zero_and_urls_of_100_kb_are_refused_or_bounded(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.answer("client_error", status=404, fetched_at=time.time())
    long, longer = f"{HOST}/{'x' * 60_000}", f"{HOST}/{'x' * 100_000}"
    links = [records.Link(url=long), records.Link(url=longer), records.Link(url=f"{HOST}/ok", hops=-3, priority=1e308)]
    fed.answer("ok", status=200, fetched_at=time.time(), links=links, depth=-7, hops=-7, body_bytes=-(1 << 62))
    fed.tell(records.encode(records.Candidate(url=longer)), records.encode(records.Candidate(url=f"{HOST}/neg", depth=-5)))
    fed.tell(records.encode(outcome(longer, "1-1", "page", "ok", status=200)))
    fed.answer("ok", status=200, fetched_at=time.time())
    _, _, status = fed.end()
    assert status["refused"] == {"url_too_long": 1} and status["lines_refused"]["candidate: too_long"] == 2
    assert status["bytes"] >= 0
    rows = [json.loads(line) for line in tool(tmp_path, "dump").stdout.splitlines()]
    assert {row["url"] for row in rows} == {f"{HOST}/a", f"{HOST}/ok", f"{HOST}/neg", long}
    assert all(row["depth"] >= 0 for row in rows if row["state"] != "done"), rows


# --- the database ---


def made(folder: Path) -> Path:
    """Leave a crawl directory with one URL that is done."""
    fed = Fed(folder)
    fed.answer("client_error", status=404, fetched_at=time.time())
    fed.answer("ok", status=200, fetched_at=time.time())
    fed.end()
    return folder / "c" / "frontier.db"


READERS = [("frontier",), ("why", f"{HOST}/a"), ("dump",)]


@pytest.mark.parametrize("reader", READERS, ids=lambda words: words[0])
def test_a_database_of_a_newer_version_is_refused_with_78(tmp_path: Path, reader: tuple[str, ...]) -> None:
    path = made(tmp_path)
    db = CrawlDb(path)
    db.commit([(Table.META, b"version", b"999")])
    db.close()
    done = tool(tmp_path, *reader)
    assert done.returncode == 78 and "another version" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("reader", READERS, ids=lambda words: words[0])
@pytest.mark.parametrize("harm", ["current", "manifest", "journal and tables"])
def test_a_damaged_database_is_told_with_74_and_left_as_it_is(tmp_path: Path, reader: tuple[str, ...], harm: str) -> None:
    path = made(tmp_path)
    db = CrawlDb(path)  # once more, so that there are tables
    db.close()
    for file in path.iterdir():
        if harm in file.name.lower() or (harm.startswith("journal") and file.suffix in (".sst", ".log")):
            file.write_bytes(b"\xde\xad" * (file.stat().st_size // 2 + 1))
    before = {
        file.name: file.read_bytes() for file in path.iterdir() if file.name not in ("LOCK", "LOG") and "LOG.old" not in file.name
    }
    done = tool(tmp_path, *reader)
    assert done.returncode == 74, (done.returncode, done.stderr)
    assert "frontier.db" in done.stderr and "Traceback" not in done.stderr
    assert all((path / name).read_bytes() == data for name, data in before.items() if (path / name).exists())
