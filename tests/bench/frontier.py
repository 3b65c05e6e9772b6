"""What does a frontier with millions of known URLs cost: `make bench-frontier`.

    python -m tests.bench.frontier --urls 1M,10M [--hosts 1M] [--feed candidates|outcomes] [--pin]
                                    [--keep DIR] [--json FILE] [--progress]

core/frontier/turn on a real database, all rules on. For each size: fill with new URLs (over all and in the last --chunk), URLs of
which 90 % are known (drawn Zipf(1) and uniformly), targets served over many hosts (with --met, also once the hosts' addresses
and rules are known), then a restart in a new process, as after kill -9 and with the database out of the page cache; once, one
host with a long queue and --per-host 1000 --delay 0. Each size goes on with the database of the one before; --keep DIR lets a
later command go on with it, too, also when this one was killed.

Lines are made and drawn outside the measured time. `wall` has the measured parts; `CPU` is the main thread's in these parts and
all that RocksDB's threads did during the phase and until they had no work left (in `last chunk`: during it).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from tests.bench.frontier_driver import BOUNDS, Driver, Meter, Pump, State, many_hosts, span
from tests.bench.frontier_feed import Indices, drawn, one_host_urls

KNOWN_SHARE = 0.9
MEET_STEP = 20_000  # targets
ONE_HOST = Policy(delay_s=0.0, delay_factor=0.0, per_host=1000)
Row = dict[str, Any]


def count(text: str) -> int:
    """Read 200k, 10M or 5000."""
    found = re.fullmatch(r"([\d.]+)([kM]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number: write 5000, 200k or 10M")
    return int(float(found[1]) * {"": 1, "k": 1000, "M": 1_000_000}[found[2]])


def counts(text: str) -> list[int]:
    """Read 1M,10M."""
    return [count(one) for one in text.split(",")]


class Bench:
    """The phases at one size, in one process."""

    def __init__(self, options: argparse.Namespace, urls: int) -> None:
        self.options, self.urls = options, urls
        self.state = State.load(options.keep, options.hosts)
        self.state.run += 1
        self.state.save()  # a lease id is never given twice
        self.driver = Driver(options.keep, Policy())
        self.driver.start(self.state.run, self.state.now)
        self.pump = Pump(self.driver, options.room, many_hosts(options.hosts))
        self.put: Callable[[Indices], None] = self.pump.offer if options.feed == "candidates" else self.pump.crawl
        self.rng = np.random.default_rng(options.seed + urls)

    def run(self) -> None:
        self.fill()
        for law in ("zipf", "uniform") if self.options.known else ():
            indices, after = drawn(self.rng, self.state.next, self.options.known, KNOWN_SHARE, zipf=law == "zipf")
            with self.phase(f"90 % known, {law}"):
                self.put(indices)
            self.keep(after)
        if self.options.served:
            self.serve("served")
        if self.options.met and self.meet():
            self.serve("served, hosts met")
        self.tell({"phase": "size", "known": self.state.next, **memory(), **sizes(self.state.folder)})

    def fill(self) -> None:
        """Offer new URLs up to the size, chunk by chunk."""
        if self.state.next >= self.urls:
            return
        whole, last = Meter(), Meter()
        while self.state.next < self.urls:
            end = min(self.state.next + self.options.chunk, self.urls)
            self.driver.meter = last = Meter()
            self.put(span(self.state.next, end))
            self.tell({"phase": "chunk", "known": end, **last.row(), **memory()})
            whole.add(last)
            self.keep(end)
        self.tell({"phase": "new, last chunk", **last.row()})
        whole.settle()
        self.tell({"phase": "new, all", **whole.row()})

    def serve(self, name: str) -> None:
        """Let targets leave and come back."""
        before = self.pump.kinds.copy()
        with self.phase(name) as row:
            self.pump.serve(self.options.served)
            row["kinds"] = dict(self.pump.kinds - before)
        self.keep(self.state.next)

    def meet(self) -> bool:
        """Serve, unmeasured, until most targets are pages: a crawl is in first contact for a short part of its life."""
        for _ in range(0, 4 * self.options.hosts, MEET_STEP):
            before = self.pump.kinds["page"]
            self.pump.serve(MEET_STEP)
            if self.pump.kinds["page"] - before > MEET_STEP // 2:
                return True
        return False

    def phase(self, name: str) -> Phase:
        return Phase(self, name)

    def keep(self, after: int) -> None:
        self.state.next, self.state.now = after, self.driver.now
        self.state.save()

    def tell(self, row: Row) -> None:
        tell({"urls": self.urls, "hosts": self.options.hosts, "feed": self.options.feed} | row)


class Phase:
    """Measures what is done within it, and tells."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench, self.row = bench, {"phase": name}

    def __enter__(self) -> Row:
        self.bench.driver.meter = Meter()
        return self.row

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.bench.driver.meter.settle()
            self.bench.tell(self.row | self.bench.driver.meter.row())


def one_host(options: argparse.Namespace) -> None:
    """Serve a long queue of one host that allows everything."""
    with tempfile.TemporaryDirectory(dir=options.keep) as name:
        driver = Driver(Path(name), ONE_HOST, Bounds(max_pages=BOUNDS.max_pages, max_bytes=BOUNDS.max_bytes, max_pages_host=None))
        driver.start(1, 1e9)
        pump = Pump(driver, options.room, one_host_urls)
        pump.offer(span(0, options.one_host))
        driver.meter.settle()
        driver.meter = Meter()
        pump.serve(options.one_host + 2)  # its address and its robots.txt
        driver.meter.settle()
        tell({"urls": options.one_host, "hosts": 1, "phase": "served, one host", **driver.meter.row(), "kinds": dict(pump.kinds)})


def restart(options: argparse.Namespace) -> None:
    """Open a database that was left as kill -9 leaves it, out of the page cache; measure until the first turn is durable."""
    state = State.load(options.keep, options.hosts)
    state.run += 1
    state.save()
    for path in filter(Path.is_file, options.keep.rglob("*")):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    began, cpu = time.perf_counter(), time.process_time()
    driver = Driver(options.keep, Policy())
    driver.start(state.run, state.now)
    turn = driver.turn([], options.room)
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    assert turn.targets or turn.idle or turn.wakeup > driver.now, turn
    told = {"phase": "restart", "wall_s": round(took_s, 3), "cpu_s": round(cpu_s, 3), "targets": len(turn.targets)}
    tell({"urls": options.only_urls, "hosts": options.hosts, **told, **memory()})


def memory() -> Row:
    """Give this process's memory in MB, now and at its peak."""
    found = dict(re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", Path("/proc/self/status").read_text()))
    return {"rss_mb": int(found["VmRSS"]) // 1024, "peak_mb": int(found["VmHWM"]) // 1024}


def sizes(folder: Path) -> Row:
    """Give the bytes on disk: of the database with its sieve, and of the crawl log."""
    found = {path: path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()}
    log = sum(size for path, size in found.items() if path.parent.name == "outcomes")
    return {"db_mb": (sum(found.values()) - log) // 1_000_000, "log_mb": log // 1_000_000}


def tell(row: Row) -> None:
    """Say a result to the parent process."""
    print(json.dumps(row), flush=True)


# --- the parent process ---


def child(part: str, options: argparse.Namespace, urls: int = 0) -> Iterator[Row]:
    """Run one part in a process of its own, and give its rows."""
    told = [
        f"--{name}={getattr(options, name)}" for name in ("hosts", "feed", "chunk", "known", "served", "room", "seed", "keep")
    ]
    told += [f"--one-host={options.one_host}", f"--part={part}", f"--only-urls={urls}"]
    told += ["--met"] if options.met else []
    told += [f"--pin={options.pin}"] if options.pin is not None else []
    with subprocess.Popen([sys.executable, "-m", "tests.bench.frontier", *told], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"the process for {part} ended with {process.returncode}")


def part(options: argparse.Namespace) -> None:
    """Be such a process. A filled database is left as kill -9 leaves it."""
    if options.pin is not None:
        os.sched_setaffinity(0, {options.pin})
    if options.part == "fill":
        Bench(options, options.only_urls).run()
        os._exit(0)
    {"restart": restart, "one_host": one_host}[options.part](options)


def rates(row: Row) -> str:
    """Give one line of the table of rates."""
    number = row["count"]
    by = [f"{number / max(row[name], 1e-9):,.0f}" for name in ("wall_s", "cpu_s", "main_s")]
    each = " · ".join(f"{name} {spent:g}" for name, spent in row["us_each"].items())
    kinds = f" ({', '.join(f'{n} {kind}' for kind, n in row['kinds'].items())})" if "kinds" in row else ""
    return f"| {row['urls']:,} | {row['phase']}{kinds} | {number:,} | {' | '.join(by)} | {each} |"


def footprint(size: Row, start: Row) -> str:
    """Give one line of the table of sizes."""
    each = size["db_mb"] * 1e6 / size["known"]
    cells = (f"{size['urls']:,}", size["peak_mb"], f"{size['db_mb']:,}", f"{each:.0f}", size["log_mb"], start["wall_s"])
    return "| " + " | ".join(map(str, (*cells, start["rss_mb"], start["peak_mb"]))) + " |"


def run(options: argparse.Namespace) -> None:
    """Run all sizes; print the tables."""
    file = options.json.open("a") if options.json else None

    def rows(name: str, urls: int = 0) -> Iterator[Row]:
        for row in child(name, options, urls):
            if file is not None:
                file.write(json.dumps(row | {"at": round(time.time(), 1)}) + "\n")
                file.flush()
            yield row

    feet = []
    print("| known URLs | phase | number | a second | a CPU-second | a CPU-second of the main thread | µs each |")
    print("|---:|---|---:|---:|---:|---:|---|")
    for urls in options.urls:
        size: Row = {}
        for row in rows("fill", urls):
            if row["phase"] == "size":
                size = row
            elif row["phase"] != "chunk":
                print(rates(row), flush=True)
            elif options.progress:
                rate = row["count"] / row["cpu_s"]
                print(f"  {row['known']:,} known, {rate:,.0f} a CPU-second, {row['rss_mb']} MB", file=sys.stderr, flush=True)
        feet.append(footprint(size, *rows("restart", urls)))
    for row in rows("one_host") if options.one_host else ():
        print(rates(row))
    print("\n| known URLs | peak RSS MB | database MB | bytes a URL | log MB | restart s | RSS MB after it | peak MB of it |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|", *feet, sep="\n", flush=True)


def main() -> None:
    """Read the options; be the parent or a part."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument(
        "--urls", default="1M,10M", type=lambda text: [count(one) for one in text.split(",")], help="sizes, ascending"
    )
    ask.add_argument("--hosts", default=1_000_000, type=count)
    ask.add_argument("--feed", default="candidates", choices=("candidates", "outcomes"), help="outcomes: 50 links to a page")
    ask.add_argument("--chunk", default=500_000, type=count)
    ask.add_argument("--known", default=500_000, type=count, help="URLs of each phase with known ones; 0: none")
    ask.add_argument("--served", default=200_000, type=count, help="targets; 0: none")
    ask.add_argument("--met", action="store_true", help="also serve when all hosts have been met (two more targets a host)")
    ask.add_argument("--one-host", default=100_000, type=count, help="its queue; 0: none")
    ask.add_argument("--room", default=2000, type=int)
    ask.add_argument("--seed", default=1, type=int)
    ask.add_argument("--pin", nargs="?", type=int, const=os.cpu_count() - 1, metavar="CPU", help="run on one core (the last)")
    ask.add_argument("--keep", type=Path, metavar="DIR", help="where the database is kept for a larger size")
    ask.add_argument("--json", type=Path, metavar="FILE", help="append every result as a JSON line")
    ask.add_argument("--progress", action="store_true", help="a line on stderr for each chunk")
    ask.add_argument("--part", help=argparse.SUPPRESS)
    ask.add_argument("--only-urls", default=0, type=int, help=argparse.SUPPRESS)
    options = ask.parse_args()
    if options.part:
        part(options)
        return
    with tempfile.TemporaryDirectory(prefix="bench-frontier-") as spare:
        options.keep = options.keep or Path(spare)
        options.keep.mkdir(parents=True, exist_ok=True)
        run(options)


if __name__ == "__main__":
    main()
