"""crawltool log says what happened, to people and to programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawltool.cli import log
from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.records import Outcome, encode
from crawltool.stores.crawllog import CrawlLog


def outcome(n: int, **facts: object) -> bytes:
    return encode(Outcome(url=f"http://h.test/{n}", lease=f"1-{n}", seq=n, **({"kind": "page", "verdict": "ok"} | facts)))  # type: ignore[arg-type]


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    writer = CrawlLog(tmp_path / "outcomes")
    writer.append([(1, outcome(1, status=200)), (2, outcome(2, verdict="dns_failure", reason="no_such_name"))], now=0.0)
    writer.close()
    return tmp_path


def test_whole_records_come_out_where_no_person_looks(crawl: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["log", "-C", str(crawl)], Voice()) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [(row["type"], row["url"], row["seq"]) for row in rows] == [
        ("outcome", "http://h.test/1", 1),
        ("outcome", "http://h.test/2", 2),
    ]


def test_a_directory_without_a_log_is_no_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "-C", str(tmp_path)], Voice()) == 66
    assert "no crawl log" in capsys.readouterr().err


def test_one_line_tells_time_verdict_status_size_and_url() -> None:
    line = outcome(1, status=200, fetched_at=1_796_040_000.0, body_bytes=12345)
    assert log.one_line(line) == b"2026-11-30 12:00:00  ok            200      12,345  http://h.test/1"
    line = outcome(2, verdict="redirect", status=301, kind="robots", redirect="http://i.test/")
    assert log.one_line(line).endswith(b"301           -  http://h.test/2 [robots] -> http://i.test/")
    assert log.one_line(outcome(3, verdict="timeout", reason="first_byte")).endswith(b"http://h.test/3 (first_byte)")


def test_the_web_cannot_steer_the_terminal() -> None:
    assert b"\x1b" not in log.one_line(outcome(1, reason="\x1b[2Jgone\n"))
    assert log.one_line(b"\x1bjunk\xff") == b"??junk\xef\xbf\xbd"
