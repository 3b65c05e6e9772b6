"""A crawl ends, whatever hosts do, with the documented code, and names who was the trouble (law 11)."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.crawls import COMMAND, CONTACT, FAST, Crawl, environment, pages_asked, tool, wait_for
from tests.e2e.reference import reach
from tests.web import Web

SHORT = ["--timeout-connect", "1", "--timeout-first-byte", "0.5", "--timeout-total", "2"]
GOOD = "plain pages=12"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("silent", True),
        ("silent robots=404", True),
        ("busy", True),
        ("busy retry=seconds", True),
        ("busy status=503", True),
        ("robots_status status=503", True),
        ("robots_status status=429", True),
        ("refused", True),
        ("reset", True),
        ("drip_body", False),
        ("drip_headers", True),
        ("endless_headers", True),
        ("endless_body", False),
        ("endless_chunks", False),
        ("endless_1xx", True),
    ],
)
def test_a_bad_host_beside_a_good_one_is_named_and_does_not_hold_the_crawl(tmp_path: Path, words: str, names: bool) -> None:
    with Web(tmp_path, {"bad": words, "good": GOOD}) as web:
        crawl = Crawl(tmp_path, web.url("bad"), web.url("good"), *FAST, *SHORT, "--max-body", "300k")
        said = crawl.run(timeout_s=60)
        assert len({ask.target for ask in web.log("good") if ask.target.startswith("/p")}) >= 11
        assert not names or web.address("bad") in said, f"the bad host is not named:\n{said}"


def test_bad_hosts_alone_end_with_69_and_reasons(tmp_path: Path) -> None:
    rows = {"busy": "busy", "refused": "refused", "down": "robots_status status=503", "shut": "robots_all"}
    with Web(tmp_path, rows) as web:
        crawl = Crawl(
            tmp_path,
            *(web.url(name) for name in rows),
            "http://no-such-name.invalid/",
            "http://10.1.2.3/",
            *FAST,
            *SHORT,
            *CONTACT,
        )
        said = crawl.run(code=69)
        for name in rows:
            assert web.address(name) in said, f"{name} is not named:\n{said}"
        assert "no-such-name.invalid" in said and "10.1.2.3" in said
        assert {ask.target for ask in web.log("shut")} == {"/robots.txt"}


def test_a_name_that_does_not_exist_is_final(tmp_path: Path) -> None:
    began = time.monotonic()
    said = Crawl(tmp_path, "http://no-such-name.invalid/", *CONTACT).run(code=69, timeout_s=40)
    assert "no-such-name.invalid" in said
    assert time.monotonic() - began < 30


def test_without_a_contact_nothing_is_asked(tmp_path: Path) -> None:
    said = Crawl(tmp_path, "http://crawltool.test/").run(code=64)
    assert "--contact" in said


def test_a_second_crawl_on_the_directory_ends_with_73(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "slow wait_s=0.3 pages=30"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        first = crawl.start()
        wait_for(lambda: len(web.log()) > 2, what="requests of the first crawl")
        tool(tmp_path, "frontier", "-C", str(crawl.dir), code=73)
        second = Crawl(tmp_path, web.url("a"), *FAST)
        second.run(code=73, timeout_s=20)
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        first.wait(20)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_mid_crawl_ends_soon_and_the_next_run_finishes(tmp_path: Path, number: signal.Signals) -> None:
    with Web(tmp_path, {"a": "slow wait_s=0.2 pages=20"}) as web:
        expected = set(reach([web.url("a")]))
        web.forget()
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        for _ in range(2):
            process, seen = crawl.start(), len(web.log())
            wait_for(lambda seen=seen: len(web.log()) > seen + 4, what="requests")
            began = time.monotonic()
            os.killpg(process.pid, number)  # as a terminal does
            assert process.wait(15) == -number, crawl.said()
            assert time.monotonic() - began < 10
        crawl.run()
        asked = pages_asked(web.log())
        assert set(asked) == expected
        assert max(asked.values()) == 1, "a page that was in the air was asked for again"


def test_ctrl_c_on_a_terminal_stops_and_the_next_run_finishes(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "slow wait_s=0.2 pages=20"}) as web:
        expected = set(reach([web.url("a")]))
        web.forget()
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        child, terminal = pty.fork()
        if child == 0:
            os.execve(sys.executable, crawl.command(), environment(tmp_path))
        reader = threading.Thread(target=drain, args=(terminal,), daemon=True)  # a terminal that nobody reads blocks who writes
        reader.start()
        wait_for(lambda: len(web.log()) > 5, what="requests")
        os.write(terminal, b"\x03")
        began = time.monotonic()
        _, status = os.waitpid(child, 0)
        assert time.monotonic() - began < 10
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT
        os.close(terminal)
        crawl.run()
        asked = pages_asked(web.log())
        assert set(asked) == expected
        assert max(asked.values()) == 1, "a page that was in the air was asked for again"


def drain(terminal: int) -> None:
    """Read a terminal to its end."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass


def test_a_signal_at_once_leaves_a_directory_that_resumes(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=20"}) as web:
        crawl = Crawl(tmp_path, web.url("a"), *FAST)
        for wait_s in (0.0, 0.2, 0.5, 0.9):
            process = crawl.start()
            time.sleep(wait_s)
            os.killpg(process.pid, signal.SIGINT)
            process.wait(15)
        crawl.run()
        assert len({ask.target for ask in web.log() if ask.target.startswith("/p") and ask.target.endswith(".html")}) >= 20


def test_bad_seed_lines_are_counted_and_the_rest_is_crawled(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": GOOD}) as web:
        seeds = tmp_path / "seeds.txt"
        bad = [
            b"no url at all \x00",
            b"mailto:me@site.test",
            b"ftp://site.test/",
            b"\xff\xfe\xfd",
            b"http://x/" + b"y" * 3_000_000,
            b"",
        ]
        seeds.write_bytes(b"\n".join([*bad, web.url("a").encode()]) + b"\n")
        crawl = Crawl(tmp_path, "--seeds", str(seeds), *FAST)
        said = crawl.run()
        assert len(web.log()) > 10
        assert "line 1" in said or ":1" in said, said
        strict = Crawl(tmp_path, "--seeds", str(seeds), *FAST, "--strict", name="strict")
        strict.run(code=65)


def test_a_reader_that_goes_away_ends_a_stage_by_sigpipe(tmp_path: Path) -> None:
    lines = "".join(f"http://site{number}.test/\n" for number in range(200_000))
    process = subprocess.Popen(
        [*COMMAND, "seed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(tmp_path), cwd=tmp_path, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdin is not None
    process.stdout.close()
    try:
        process.stdin.write(lines)
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.wait(20) in (-signal.SIGPIPE, 128 + signal.SIGPIPE)


def test_the_command_answers_a_wrong_option_with_64(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crawltool", "crawl", "--no-such"], capture_output=True, env=environment(tmp_path), check=False
    )
    assert done.returncode == 64
