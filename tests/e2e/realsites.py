"""Crawl eight documentation sites that others wrote, and compare with what a plain reference crawler reaches.

    python -m tests.e2e.realsites [--small] [--truth FILE] [--keep DIR] [-- OPTIONS OF CRAWL]

Not part of `make test`: it serves 31,000 pages and takes minutes. The server and the reference crawler are a program of
others beside the project (../shared/bench/realsites; CRAWLTOOL_REALSITES names another); it ends with 0 without it.
Differences that are right are listed in realsites_differences.json with the clause of the URL standard behind each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.e2e.crawls import CONTACT, Crawl, family, kill_group
from tests.paths import SHARED

PROGRAM = Path(os.environ.get("CRAWLTOOL_REALSITES", SHARED / "bench" / "realsites"))
LISTED = Path(__file__).with_name("realsites_differences.json")
LISTED_MAX = 20
OPTIONS = [
    "--delay",
    "0",
    "--delay-factor",
    "0",
    "--per-host",
    "4",
    "--per-ip",
    "4",
    "--max-depth",
    "none",
    "--max-pages-host",
    "none",
]


@dataclass
class Comparison:
    """What differs, as `path on its site`: (status here, status in the truth file); 0 is never asked."""

    differences: dict[str, tuple[int, int]] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)

    def unexplained(self) -> dict[str, tuple[int, int]]:
        """Give the differences that are not in the checked-in list."""
        listed = {entry["url"] for entry in json.loads(LISTED.read_text())}
        return {url: pair for url, pair in self.differences.items() if url not in listed}


def no_port(url: str) -> str:
    """Drop the port: the truth may have been made on another one."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.partition(':')[0]}{slash}{path}"


def compare(crawl: Crawl, truth: Path) -> Comparison:
    """Hold the crawl log against the truth file; robots.txt and sitemaps are nobody's pages."""
    ours: dict[str, int] = {}
    times: Counter[str] = Counter()
    for record in crawl.outcomes("page"):
        if record.get("status"):
            url = no_port(record["url"])
            ours[url] = record["status"]
            times[url] += 1
    theirs: dict[str, int] = {}
    hosts = {url.split("/")[2] for url in ours}
    for line in truth.read_text().splitlines():
        row = json.loads(line)
        if no_port(row["url"]).split("/")[2] not in hosts:
            continue
        theirs[no_port(row["final"])] = row["status"]
        if row["final"] != row["url"]:
            theirs[no_port(row["url"])] = 300
    found = Comparison(repeated=[url for url, count in times.items() if count > 1])
    for url in ours.keys() | theirs.keys():
        here, there = ours.get(url, 0), theirs.get(url, 0)
        same = here == there or (there == 300 and here // 100 == 3)
        if not same:
            found.differences[url] = (here, there)
    return found


def make_truth(file: Path, small: bool, port: int) -> None:
    """Let the reference crawler make the truth file; it needs lxml, which we do not, so it gets a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([f"{folder}/bin/pip", "install", "-q", "lxml"], check=True)
        words = [f"{folder}/bin/python", str(PROGRAM), *(["--small"] if small else []), "--port", str(port), "truth", str(file)]
        subprocess.run(words, check=True)


class Peak(threading.Thread):
    """Watches the memory of a process and its descendants, five times a second."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.process, self.peak_bytes, self.cpu_s = process, 0, {"": 0.0}

    def run(self) -> None:
        """Watch until the process ends."""
        while self.process.poll() is None:
            total = 0
            for member in family(self.process):
                try:
                    total += member.memory_info().rss
                    used = member.cpu_times()
                    name = next((word for word in member.cmdline()[2:5] if word.isalpha() and word != "crawltool"), "crawl")
                    self.cpu_s[f"{name} {member.pid}"] = used.user + used.system
                except psutil.Error:
                    continue
            self.peak_bytes = max(self.peak_bytes, total)
            time.sleep(0.2)


def crawl_all(crawl: Crawl, more: list[str]) -> None:
    """Run the crawl and say what it took."""
    began = time.monotonic()
    process = crawl.start(*more)
    watch = Peak(process)
    watch.start()
    code = process.wait()
    took_s = time.monotonic() - began
    print(crawl.said()[-2500:])
    cpu = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(watch.cpu_s.items()) if seconds > 0.5)
    print(f"code {code} after {took_s:.0f} s; peak memory {watch.peak_bytes / 1e6:.0f} MB; CPU seconds: {cpu}")
    assert code == 0, code


def main() -> int:
    """Serve, crawl, compare; 0 when nothing differs that the list does not explain."""
    ask = argparse.ArgumentParser(prog="python -m tests.e2e.realsites", description=(__doc__ or "").split("\n\n")[0])
    ask.add_argument("--small", action="store_true", help="three sites, about 3,000 pages")
    ask.add_argument("--port", type=int, default=8097)
    ask.add_argument("--truth", type=Path, help="a finished truth file; made when it does not exist")
    ask.add_argument("--keep", type=Path, help="the crawl directory goes below this folder and stays")
    ask.add_argument("more", nargs="*", help="options handed to crawltool crawl")
    choice = ask.parse_args()
    if not PROGRAM.exists():
        print(f"no {PROGRAM}: the real sites are not here")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = choice.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        truth = choice.truth or folder / "truth.jsonl"
        if not truth.exists():
            make_truth(truth, choice.small, choice.port)
        words = [sys.executable, str(PROGRAM), *(["--small"] if choice.small else []), "--port", str(choice.port), "serve"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            assert server.stdout is not None
            seeds = [server.stdout.readline().strip() for _ in range(3 if choice.small else 8)]
            crawl = Crawl(folder, *seeds, *OPTIONS, *CONTACT, *choice.more, name="realsites.crawl")
            crawl_all(crawl, [])
        finally:
            kill_group(server)
        return report(crawl, compare(crawl, truth))


def report(crawl: Crawl, found: Comparison) -> int:
    """Print what differs and what does not add up."""
    unexplained = found.unexplained()
    print(f"{len(found.differences)} differences, {len(unexplained)} unexplained; {len(found.repeated)} URLs asked for twice")
    for url, (here, there) in sorted(unexplained.items())[:60]:
        print(f"  {url}  here {here or 'never asked'}, truth {there or 'never asked'}")
    crawl.check_warcs()
    crawl.check_counts()
    alarms = json.loads((crawl.dir / "stats.jsonl").read_text().splitlines()[-1])["discovery"]["alarms"]
    assert alarms == 0, f"{alarms} spaces of honest sites are called endless"
    print("archives are clean; log, archives and pages/ agree")
    return 0 if not unexplained and not found.repeated and len(found.differences) <= LISTED_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
