"""Names by the ten thousand: a real `crawltool fetch`, the system's getaddrinfo, and a name server that is slow or silent.

    python -m tests.bench.dns [--names 100000] [--silent 100] [--delay 0.05] [--port 80]

One in SILENT names is never answered, the others after DELAY seconds. Each name is asked for twice (two authorities share
it), then one page is fetched from the address that fetch told. Runs in a network of its own: needs root. Prints fetches per
second, look-ups per name by the server's log, the most threads that fetch had, and how many healthy names failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.net.nameserver import AAAA, A, NameServer
from tests.net.privatenet import in_private_net

ROOM = 1000  # targets out at most, as the frontier does it
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" + b"<p>page\n" * 125


class Load(NamedTuple):
    """How many names, one in how many is silent, and how slow the server is (seconds)."""

    names: int
    silent: int = 100
    delay_s: float = 0.05
    port: int = 80
    resolv_conf: str = "nameserver 127.0.0.1\n"

    def answer(self, name: str) -> list[str] | None:
        number = int(name.partition(".")[0][1:])
        return None if self.is_silent(number) else [f"127.{number >> 16}.{number >> 8 & 255}.{number & 255 or 1}"]

    def is_silent(self, number: int) -> bool:
        return number % self.silent == self.silent - 1


class Found(NamedTuple):
    """What a run showed."""

    pages: int
    wall_s: float
    slowest_s: float  # pages a second in the slowest ten seconds of the middle
    threads: int
    asked: Counter[tuple[str, int]]
    verdicts: Counter[str]  # of healthy names
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.pages / self.wall_s


class Feeder:
    """Feeds a fetch: two address targets a name, a page target when the first is answered; ROOM out at most."""

    def __init__(self, load: Load, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.load, self.process = load, process
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.room = threading.Semaphore(ROOM)
        self.lock = threading.Lock()
        self.verdicts: Counter[str] = Counter()
        self.ended: list[float] = []  # when pages came back
        self.threads = 0
        self.left = 0
        self.all_back = threading.Event()

    def write(self, *targets: dict[str, Any]) -> None:
        with self.lock:
            self.stdin.write(b"".join(json.dumps({"type": "target", "typed": True, **one}).encode() + b"\n" for one in targets))
            self.stdin.flush()

    def feed(self) -> None:
        for number in range(self.load.names):
            for turn in (1, 2):
                self.room.acquire()
                name = f"h{number}.web.test"
                url = f"http://{name}:{self.load.port}/" if turn == 1 else f"https://{name}/"
                self.write({"url": url, "lease": f"1-{number}.{turn}", "kind": "address"})

    def read(self) -> None:
        """Take outcomes; of a healthy name's first address comes a page target, in the same room."""
        self.left = 2 * self.load.names
        for line in self.stdout:
            one = json.loads(line)
            number, _, turn = one["lease"].partition("-")[2].partition(".")
            if not self.load.is_silent(int(number)):
                self.verdicts[f"{one['kind']} {one['verdict']} {one.get('reason') or ''}".strip()] += 1
            if one["kind"] == "page":
                self.ended.append(time.monotonic())
            elif turn == "1" and one["verdict"] == "ok":
                page = {"url": one["url"], "lease": f"1-{number}.3", "kind": "page", "address": one["addresses"][0], "rest_s": 1}
                self.write(page)
                continue
            self.room.release()
            self.left -= 1
            if not self.left:
                self.all_back.set()

    def watch(self) -> None:
        """Sample how many threads the process has."""
        status = Path(f"/proc/{self.process.pid}/status")
        while not self.all_back.wait(0.1):
            count = next((line for line in status.read_text().splitlines() if line.startswith("Threads:")), "Threads: 0")
            self.threads = max(self.threads, int(count.split()[1]))


def run(load: Load, folder: Path) -> Found:
    """Carry the load through a fetch in `folder`; called in a private network."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.dns", "--serve", "--port", str(load.port)], stdout=subprocess.PIPE
    )
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(folder), "--min-free", "0", "--quiet"]
    try:
        assert server.stdout is not None and server.stdout.readline()
        with NameServer(load.answer, load.delay_s) as names:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            feeder = Feeder(load, process)
            tasks = [threading.Thread(target=task, daemon=True) for task in (feeder.read, feeder.watch)]
            begun = time.monotonic()
            for task in tasks:
                task.start()
            feeder.feed()
            if not feeder.all_back.wait(120):
                process.kill()
                raise AssertionError(f"{feeder.left} targets did not come back; fetch ended with {process.poll()}")
            user, system = (int(text) for text in Path(f"/proc/{process.pid}/stat").read_text().split()[13:15])
            feeder.stdin.close()
            assert process.wait(30) == 0
            return Found(
                len(feeder.ended), feeder.ended[-1] - begun, _slowest(feeder.ended), feeder.threads, names.asked,
                feeder.verdicts, (user + system) / 100,
            )  # fmt: skip
    finally:
        server.terminate()
        server.wait()


def _slowest(ended: list[float]) -> float:
    """Give pages a second of the slowest ten seconds, without the first five and the last."""
    counts = Counter(int(at - ended[0] - 5) // 10 for at in ended if at - ended[0] > 5)
    whole = [count for part, count in counts.items() if part < max(counts)]
    return min(whole, default=0) / 10


def more_than_once(load: Load, asked: Counter[tuple[str, int]]) -> int:
    """Count healthy names that were not looked up exactly once (one question for IPv4 and one for IPv6)."""
    healthy = [number for number in range(load.names) if not load.is_silent(number)]
    return sum((asked[f"h{number}.web.test", A], asked[f"h{number}.web.test", AAAA]) != (1, 1) for number in healthy)


class _Page(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(ANSWER)
        self.transport.close()


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Page, "0.0.0.0", port, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dns", description=__doc__)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--silent", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.serve:
        return asyncio.run(_serve(given.port))
    load = Load(given.names, given.silent, given.delay, given.port)

    def inside() -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = run(load, Path(folder))
        print(f"{found.pages} pages in {found.wall_s:.1f} s: {found.rate:.0f}/s, {found.slowest_s:.0f}/s in the slowest 10 s")
        print(f"{found.cpu_s:.1f} CPU-seconds of fetch, at most {found.threads} threads")
        print(f"{more_than_once(load, found.asked)} healthy names were not looked up exactly once")
        for verdict, count in found.verdicts.most_common():
            print(f"{count:9,} {verdict}")

    with tempfile.NamedTemporaryFile("w") as conf:
        conf.write(load.resolv_conf)
        conf.flush()
        return in_private_net(inside, Path(conf.name))


if __name__ == "__main__":
    main()
