"""A machine that runs short: fetch with 64 descriptors, and fetch in a control group that is nearly full."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LONG = b"x" * 300_000  # over what stays in memory: needs a file


class _Page(asyncio.Protocol):
    """Answers every request after 50 ms, /long with a long body, and keeps the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        body = LONG if data.startswith(b"GET /long") else b"<p>page"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        asyncio.get_running_loop().call_later(0.05, self.transport.write, head + body)


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """Serve on all loopback addresses; gives the port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(_Page, "0.0.0.0", 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


def target(number: int, port: int) -> dict[str, Any]:
    address = f"127.1.{number // 250}.{number % 250 + 1}"
    path = "/long" if number % 10 == 0 else "/"
    url = f"http://{address}:{port}{path}"
    return {"type": "target", "url": url, "lease": f"1-{number}", "kind": "page", "address": address, "typed": True}


def fetch(folder: Path, shell: str, targets: list[dict[str, Any]]) -> tuple[dict[str, dict[str, Any]], str]:
    """Run a fetch under a shell's limits; gives outcomes by lease, and what it said."""
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(folder), "--min-free", "0"]
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in targets)
    done = subprocess.run(
        ["sh", "-c", f'{shell}; exec "$@"', "sh", *command], input=lines, capture_output=True, timeout=60, check=False
    )
    said = done.stderr.decode()
    assert done.returncode == 0, said
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len({one["lease"] for one in found}) == len(targets)
    return {one["lease"]: one for one in found}, said


def test_64_descriptors_carry_500_targets(tmp_path: Path) -> None:
    with serving() as port:
        found, said = fetch(tmp_path, "ulimit -n 64", [target(number, port) for number in range(500)])
    assert {one["verdict"] for one in found.values()} == {"ok"}
    assert said.count("this machine grants descriptors for --concurrency") == 1 and said.count("runs short") <= 1


def test_what_could_not_be_asked_before_its_lease_ended_is_given_back_and_moves_no_clock(tmp_path: Path) -> None:
    with serving() as port:
        soon = time.time() + 121  # a second before the whole timeout of an exchange would not fit into the lease
        targets = [{**target(number, port), "expires_at": soon} for number in range(500)]
        found, _ = fetch(tmp_path, "ulimit -n 48", targets)
    returned = [one for one in found.values() if one["verdict"] == "returned"]
    assert Counter(one["verdict"] for one in found.values()).keys() == {"ok", "returned"}
    assert not [one for one in returned if "fetched_at" in one or "elapsed_s" in one]


# Fills the group up to 20 MiB below its limit, and follows when others take or free.
HOG = """
import sys, time
held, folder = [], sys.argv[1]
while True:
    left = (400 << 20) - int(open(folder + "/memory.usage_in_bytes").read())
    if left > 20 << 20:
        held.append(bytearray(b"x") * (2 << 20))
    elif left < 12 << 20 and held:
        held.pop()
    else:
        time.sleep(0.01)
"""


def test_a_group_that_is_nearly_full_lowers_the_number_in_flight(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory") / f"crawltool-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(400 << 20))
    except OSError as error:
        pytest.skip(f"a control group for memory cannot be made here: {error}")
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(tmp_path), "--min-free", "0"]
    pipe = subprocess.PIPE
    running = [subprocess.Popen([*enter, *command], stdin=pipe, stdout=pipe, stderr=pipe)]
    try:
        assert running[0].stderr is not None
        running.append(subprocess.Popen([*enter, sys.executable, "-c", HOG, str(group)]))
        said = running[0].stderr.readline()  # there is nothing to ask yet
        assert b"runs short" in said and b"MiB of memory left" in said
        with serving() as port:
            lines = [json.dumps(target(number, port)).encode() + b"\n" for number in range(1, 40) if number % 10]
            out, _ = running[0].communicate(b"".join(lines), timeout=30)
    finally:
        for process in running:
            process.kill()
            process.wait()
        group.rmdir()
    assert [json.loads(line)["verdict"] for line in out.splitlines()] == ["ok"] * len(lines)
