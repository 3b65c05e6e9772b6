"""The loop of pipes never stands still: 4 KiB pipes, much room, lines up to the record limit, a 50,000-URL sitemap."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.e2e.crawls import COMMAND, CONTACT, FAST, Crawl, environment, pages_asked, tool
from tests.e2e.reference import reach
from tests.e2e.test_whole_site import may
from tests.web import Web

# A filter of the user's between fetch and parse: adds a field nobody knows, so that some lines near the record limit go round.
FATTEN = """
import sys
for number, line in enumerate(sys.stdin.buffer):
    if line.startswith(b'{"type":"outcome"'):
        line = line.rstrip()[:-1] + b',"ballast":"' + b"x" * (0, 3000, 70_000, 250_000)[number % 4] + b'"}\\n'
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
F_SETPIPE_SZ = 1031


def small_pipe() -> tuple[int, int]:
    """Make a pipe that holds 4 KiB."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    return reader, writer


def run_loop(home: Path, timeout_s: float, fetch_limits: str = "true") -> dict[str, int]:
    """Join the stages to a ring of small pipes, wait until all have ended, and give their codes.

    fetch_limits is a shell command before fetch, such as ulimit.
    """
    ring: dict[str, list[str]] = {
        "frontier": [*COMMAND, "frontier", "-C", "c", "--until-idle"],
        "fetch": ["sh", "-c", f'{fetch_limits}; exec "$@"', "sh", *COMMAND, "fetch", "-C", "c"],
        "fatten": [sys.executable, "-c", FATTEN],
        "parse": [*COMMAND, "parse", "-C", "c"],
        "dedup": [*COMMAND, "dedup", "-C", "c"],
    }
    pipes = [small_pipe() for _ in ring]
    running = {}
    for number, (name, words) in enumerate(ring.items()):
        with (home / f"{name}.err").open("w") as err:
            running[name] = subprocess.Popen(
                words, stdin=pipes[number - 1][0], stdout=pipes[number][1], stderr=err, env=environment(home), cwd=home
            )  # fmt: skip
    for reader, writer in pipes:
        os.close(reader)
        os.close(writer)
    _, alive = psutil.wait_procs([psutil.Process(p.pid) for p in running.values() if p.poll() is None], timeout=timeout_s)
    for process in running.values():
        process.kill()
    words_said = "\n".join((home / f"{name}.err").read_text()[-600:] for name in ring)
    assert not alive, (
        f"the loop stands still: {[name for name, p in running.items() if p.pid in {a.pid for a in alive}]}\n{words_said}"
    )
    return {name: process.wait() for name, process in running.items()}


def test_small_pipes_and_long_lines_do_not_stop_the_loop(tmp_path: Path) -> None:
    hosts = {f"s{number}": "plain pages=60" for number in range(12)}
    with Web(tmp_path, hosts) as web:
        expected = {url for name in hosts for url in reach([web.url(name)], may)}
        web.forget()
        tool(tmp_path, "init", "-C", "c", *CONTACT, *FAST, "--room", "2000", "--per-host", "50", "--per-ip", "50", cwd=tmp_path)
        tool(tmp_path, "seed", *(web.url(name) for name in hosts), "-o", "spool:c/inbox", cwd=tmp_path)
        codes = run_loop(tmp_path, 90)
        assert set(codes.values()) == {0}, codes
        asked = pages_asked(web.log())
        assert set(asked) == expected and max(asked.values()) == 1
        crawl = Crawl(tmp_path, name="c")
        crawl.check_warcs()
        crawl.check_counts()


def test_a_sitemap_of_50_000_urls_goes_round(tmp_path: Path) -> None:
    with Web(tmp_path, {"big": "bigmap"}) as web:
        tool(
            tmp_path,
            "init",
            "-C",
            "c",
            *CONTACT,
            *FAST,
            "--room",
            "2000",
            "--per-host",
            "50",
            "--per-ip",
            "50",
            "--max-pages",
            "400",
            cwd=tmp_path,
        )
        tool(tmp_path, "seed", web.url("big"), "-o", "spool:c/inbox", cwd=tmp_path)
        codes = run_loop(tmp_path, 90)
        assert set(codes.values()) == {0}, codes
        status = Crawl(tmp_path, name="c").status()
        assert status["pages"] == 400
        assert status["accepted"] >= 50_001


def test_a_fetch_with_48_descriptors_loses_no_page_and_asks_none_twice(tmp_path: Path) -> None:
    hosts = {f"s{number}": "plain pages=20" for number in range(12)}
    with Web(tmp_path, hosts) as web:
        expected = {url for name in hosts for url in reach([web.url(name)], may)}
        web.forget()
        tool(tmp_path, "init", "-C", "c", *CONTACT, *FAST, "--room", "2000", "--per-host", "50", "--per-ip", "50", cwd=tmp_path)
        tool(tmp_path, "seed", *(web.url(name) for name in hosts), "-o", "spool:c/inbox", cwd=tmp_path)
        codes = run_loop(tmp_path, 90, "ulimit -n 48")
        assert set(codes.values()) == {0}, codes
        asked = pages_asked(web.log())
        assert set(asked) == expected and max(asked.values()) == 1
        crawl = Crawl(tmp_path, name="c")
        assert {one["verdict"] for one in crawl.outcomes("page")} <= {"ok", "redirect", "client_error"}
        crawl.check_counts()
