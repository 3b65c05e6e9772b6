"""A whole crawl of fixed work, at the page sizes of the day, beside the peers that are installed: what `make bench` runs.

    python -m tests.bench [--hosts 20] [--pages 50] [--kb 40,138,242] [--peers wget,wget2] [--port 18090]

nginx serves HOSTS addresses with PAGES pages of KB kilobytes and 50 links each; its CPU is not counted. CPU and memory are
those of a client's whole process tree. Figures compare within one run; they do not carry from one machine to another.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.web.prose import prose

NET, LINKS = "127.0.6", 50
CONF = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors crit; events {{ worker_connections 8000; }}
http {{ access_log off; keepalive_requests 100000; types {{ text/html html; }}
server {{ listen 0.0.0.0:{port} backlog=8192; root {folder}/$server_addr; }} }}"""


class Cost(NamedTuple):
    """What a run took. stages: CPU seconds of each crawltool process, by name."""

    pages: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    stages: dict[str, float]


def page(number: int, host: int, kb: int, hosts: int, pages: int, port: int) -> str:
    """Write a page of about kb kilobytes with LINKS links, to its own host and to others; the same for the same numbers."""
    chance = random.Random(number * 1009 + host)
    targets = [f"/p{(number + 1) % pages}.html", *(f"/p{chance.randrange(pages)}.html" for _ in range(LINKS * 3 // 5))]
    while len(targets) < LINKS:
        targets.append(f"http://{NET}.{chance.randrange(hosts) + 1}:{port}/p{chance.randrange(pages)}.html")
    block = (kb * 1000 - LINKS * 160) // LINKS
    body = "\n".join(
        f'<div class="row"><h2>{prose(target, 3)}</h2><p>{prose(f"{host} {number} {place}", block // 6)[:block]}</p>'
        f'<p><a href="{target}">{prose(target, 4)}</a></p></div>'
        for place, target in enumerate(targets)
    )
    title = f"page {number} of {host}"
    return f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>{body}</body></html>'


@contextmanager
def web(hosts: int, pages: int, kb: int, port: int) -> Iterator[list[str]]:
    """Serve the web from a temporary folder; give the seeds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for host in range(hosts):
            root = folder / f"{NET}.{host + 1}"
            root.mkdir()
            (root / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
            for number in range(pages):
                (root / f"p{number}.html").write_text(page(number, host, kb, hosts, pages, port))
        (folder / "conf").write_text(CONF.format(folder=folder, port=port))
        server = subprocess.Popen(["nginx", "-c", str(folder / "conf")], stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            assert server.poll() is None, (folder / "errors").read_text()
            yield [f"http://{NET}.{host + 1}:{port}/p0.html" for host in range(hosts)]
        finally:
            server.terminate()
            server.wait()


def measure(command: Sequence[str], folder: Path) -> tuple[float, float, float, dict[str, float]]:
    """Run a command to its end; give wall and CPU seconds, peak memory of the tree in MB, and CPU by stage."""
    began, peak, stages = time.monotonic(), 0.0, defaultdict[str, float](float)
    process = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        pid, _, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return time.monotonic() - began, usage.ru_utime + usage.ru_stime, peak, dict(stages)
        used = 0.0
        try:
            for one in [process, *process.children()]:
                used += one.memory_info().rss / 1e6
                spent, words = one.cpu_times(), one.cmdline()
                if one.pid != process.pid and "crawltool" in words:
                    stages[words[words.index("crawltool") + 1]] = spent.user + spent.system
        except psutil.Error:  # it ended while we looked
            continue
        peak = max(peak, used)
        time.sleep(0.1)


def crawltool(seeds: list[str], folder: Path) -> Cost:
    """Crawl with everything on: durable frontier, WARC, text, SimHash."""
    flags = ["--delay", "0", "--delay-factor", "0", "--per-host", "4", "--per-ip", "4", "-C", "c"]
    wall_s, cpu_s, peak, stages = measure([sys.executable, "-m", "crawltool", "crawl", *seeds, *flags], folder)
    done = subprocess.run(
        [sys.executable, "-m", "crawltool", "log", "-C", "c", "--json"], cwd=folder, capture_output=True, check=True
    )
    pages = sum(b'"kind":"page"' in line and b'"status":200' in line for line in done.stdout.splitlines())
    return Cost(pages, wall_s, cpu_s, peak, stages)


def mirror(tool: str, seeds: list[str], folder: Path) -> Cost:
    """Mirror each host with wget or wget2, which keep files and no state."""
    command = [tool, "-q", "-r", "-l", "inf", *(["--max-threads=20"] if tool == "wget2" else []), *seeds]
    wall_s, cpu_s, peak, _ = measure(command, folder)
    return Cost(len(list(folder.rglob("p*.html"))), wall_s, cpu_s, peak, {})


def main() -> int:
    """Print a row for each size and client."""
    ask = argparse.ArgumentParser(prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("hosts", 20), ("pages", 50), ("port", 18_090)):
        ask.add_argument(f"--{name}", type=int, default=default)
    ask.add_argument("--kb", default="40,138,242")
    ask.add_argument("--peers", default="wget,wget2")
    given = ask.parse_args()
    if not shutil.which("nginx"):
        print("bench: nginx is missing (Debian package nginx)")
        return 1
    clients = ["crawltool", *(peer for peer in given.peers.split(",") if shutil.which(peer))]
    print("   KB  client      pages   wall s  CPU ms/page  pages/CPU s  peak MB  of which")
    for kb in map(int, given.kb.split(",")):
        with web(given.hosts, given.pages, kb, given.port) as seeds:
            for client in clients:
                with tempfile.TemporaryDirectory() as name:
                    cost = crawltool(seeds, Path(name)) if client == "crawltool" else mirror(client, seeds, Path(name))
                each = cost.cpu_s / max(cost.pages, 1)
                parts = ", ".join(f"{stage} {spent / max(cost.pages, 1) * 1000:.2f}" for stage, spent in cost.stages.items())
                row = f"{kb:5}  {client:10}{cost.pages:7}{cost.wall_s:9.1f}{each * 1000:13.2f}{1 / max(each, 1e-9):13.0f}"
                print(f"{row}{cost.peak_mb:9.0f}  {parts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
