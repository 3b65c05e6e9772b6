"""A frontier as a process: while all hosts rest no loop spins, and what is typed about politeness is heard."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from crawltool import records
from crawltool.stores.spool import SpoolWriter

MEASURED_S = 5.0
NAMES = ["a.example.org", "b.example.org", "c.example.org"]
COMMAND = [sys.executable, "-m", "crawltool"]


def start(folder: Path, urls: list[str], *options: str) -> subprocess.Popen[bytes]:
    """Start a frontier that knows these URLs; its input is ours, and its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLTOOL_")}
    crawl = ["-C", str(folder / "c")]
    subprocess.run([*COMMAND, "init", *crawl, "--contact", "t@crawltool.test"], check=True, capture_output=True, env=environment)
    inbox = SpoolWriter(folder / "c" / "inbox")
    inbox.publish([records.encode(records.Candidate(url=url, source="seed")) for url in urls])
    inbox.close()
    return subprocess.Popen(
        [*COMMAND, "frontier", *crawl, "--until-idle", *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip


def tired(line: bytes) -> bytes:
    """Answer a target as a server does that asks for a minute of rest."""
    target = records.decode(line)
    assert isinstance(target, records.Target) and target.kind == "robots"
    outcome = records.Outcome(
        url=target.url, lease=target.lease, kind=target.kind, verdict="busy", status=429, retry_after_s=60.0,
        fetched_at=time.time(), elapsed_s=0.001,
    )  # fmt: skip
    return records.encode(outcome)


@pytest.mark.parametrize("hosts", [1, 3000])
def test_only_resting_hosts_take_less_than_a_percent_of_a_core(tmp_path: Path, hosts: int) -> None:
    urls = [f"http://10.{n >> 16}.{n >> 8 & 255}.{n & 255}/" for n in range(hosts)]
    frontier = start(tmp_path, urls, "--room", str(hosts))
    assert frontier.stdin is not None and frontier.stdout is not None
    try:
        lines = [frontier.stdout.readline() for _ in range(hosts)]
        frontier.stdin.write(b"".join(tired(line) for line in lines))
        frontier.stdin.flush()
        time.sleep(2.0)
        process = psutil.Process(frontier.pid)
        before = process.cpu_times()
        time.sleep(MEASURED_S)
        after = process.cpu_times()
        spent_s = after.user - before.user + after.system - before.system
        assert frontier.poll() is None
        assert spent_s < 0.01 * MEASURED_S, f"{spent_s:.3f} s of {MEASURED_S:g}"
    finally:
        frontier.kill()
        frontier.wait()


def test_per_domain_is_heard(tmp_path: Path) -> None:
    frontier = start(tmp_path, [f"http://{name}/" for name in NAMES], "--per-domain", "1", "--delay", "0.5")
    assert frontier.stdin is not None and frontier.stdout is not None
    try:
        asked: list[tuple[str, float]] = []
        while len(asked) < len(NAMES):
            target = records.decode(frontier.stdout.readline())
            assert isinstance(target, records.Target)
            now = time.time()
            outcome = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="ok")
            if target.kind == "address":
                outcome.addresses = [f"192.0.2.{NAMES.index(target.url.split('/')[2])}"]
            else:
                asked.append((target.url.split("/")[2], now))
                outcome.verdict, outcome.status, outcome.fetched_at, outcome.elapsed_s = "client_error", 404, now, 0.0
            frontier.stdin.write(records.encode(outcome))
            frontier.stdin.flush()
        times = [at for name, at in asked if name.endswith("example.org")]
        assert {name for name, _ in asked[: len(NAMES)]} == set(NAMES)
        assert all(later - at >= 0.49 for at, later in pairwise(times)), times
    finally:
        frontier.kill()
        frontier.wait()
