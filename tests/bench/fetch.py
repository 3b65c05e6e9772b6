"""What a page costs to fetch: the whole `crawltool fetch` process, targets in, outcomes out, beside other clients in one run.

    python -m tests.bench.fetch [--kb 40,138,242] [--tls] [--in-flight 500] [--number 10000] [--peers httpx,aiohttp,scrapy]
    python -m tests.bench.fetch --long 1000000        memory after a tenth of that and after all of it, pages of 1 KB

nginx answers on 127.1.0.0/16 from memory, each URL with a page of its own, on another core than the client; its CPU is not
counted. Every fetch takes a new connection, and fetch archives every page; the peers (tests/bench/fetch_peers.py) keep nothing.
Figures compare within one run.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.web.prose import prose

PIECE_BYTES = 2_000  # nginx takes no longer word in its configuration
CONF = """worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/errors crit;
events {{ worker_connections 40000; }} worker_rlimit_nofile 80000;
http {{ access_log off; default_type text/html; server {{ listen 0.0.0.0:{port} {tls} backlog=16384;
ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; location / {{ {pieces} return 200 "{page}"; }} }} }}"""
HOSTS = 500


class Cost(NamedTuple):
    """What a run took: CPU of the client's process in seconds, its peak memory in bytes."""

    good: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


@contextmanager
def nginx(options: argparse.Namespace, kb: float) -> Iterator[Path]:
    """Serve pages of kb kilobytes from a temporary folder, which holds the certificate too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
        names = "subjectAltName=DNS:*.site.test"  # peers are told to expect that name
        command += ["-addext", names, "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
        subprocess.run(command, check=True, capture_output=True)
        (folder / "conf").write_text(configuration(folder, options.port, options.tls, int(kb * 1000)))
        server = subprocess.Popen(["nginx", "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL)
        pin(server.pid, 0)
        try:
            time.sleep(0.5)
            assert server.poll() is None, (folder / "errors").read_text()
            for worker in psutil.Process(server.pid).children():
                pin(worker.pid, 0)
            yield folder
        finally:
            server.terminate()
            server.wait()


def configuration(folder: Path, port: int, tls: bool, size: int) -> str:
    """Write a page as a row of variables around the URL, so that no two pages are the same bytes."""
    count = max(1, size // PIECE_BYTES)
    length = size // count
    texts = [f"<p>{prose(str(number), length // 4)}"[: length - 5] + "</p>\n" for number in range(count)]
    pieces = "\n".join(f'set $p{number} "{text}";' for number, text in enumerate(texts))
    page = "<title>$host$request_uri</title>" + "".join(f"${{p{number}}}" for number in range(count))
    return CONF.format(folder=folder, port=port, tls="ssl" if tls else "", pieces=pieces, page=page)


def address(number: int) -> str:
    return f"127.1.{number % HOSTS // 250}.{number % 250 + 2}"


def pin(pid: int, core: int) -> None:
    """Keep a process on one core: the server must not compete with the client."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {cores[core]})


def urls(options: argparse.Namespace, number: int) -> list[str]:
    scheme = "https" if options.tls else "http"
    return [f"{scheme}://{address(one)}:{options.port}/page/{one}" for one in range(number)]


def command_of(client: str, folder: Path, options: argparse.Namespace) -> list[str]:
    """Give the command line: it reads one target or URL a line and writes an outcome or `200` a line."""
    if client != "crawltool":
        return [sys.executable, "-m", "tests.bench.fetch_peers", client, str(options.in_flight), str(folder / "cert.pem")]
    crawl = Path(tempfile.mkdtemp(dir=folder))
    return [
        sys.executable,
        "-m",
        "crawltool",
        "fetch",
        "-C",
        str(crawl),
        "--concurrency",
        str(options.in_flight),
        "--min-free",
        "0",
    ]


def lines_of(client: str, given: Sequence[str]) -> Iterator[bytes]:
    for number, url in enumerate(given):
        if client == "crawltool":
            host = url.split("/")[2].partition(":")[0]
            target = {
                "type": "target",
                "url": url,
                "lease": f"1-{number}",
                "kind": "page",
                "address": host,
                "rest_s": 1,
                "typed": True,
            }
            yield json.dumps(target).encode() + b"\n"
        else:
            yield url.encode() + b"\n"


def measure(client: str, folder: Path, options: argparse.Namespace, given: Sequence[str]) -> Cost:
    """Run a client over all URLs."""
    source, words, out = folder / "targets", folder / "words", folder / "outcomes"
    source.write_bytes(b"".join(lines_of(client, given)))
    environment = os.environ | {"SSL_CERT_FILE": str(folder / "cert.pem")}
    began = time.monotonic()
    with source.open("rb") as stdin, out.open("wb") as stdout, words.open("wb") as stderr:
        process = subprocess.Popen(
            command_of(client, folder, options), stdin=stdin, stdout=stdout, stderr=stderr, env=environment
        )
        pin(process.pid, -1)
        _, status, used = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began
    if status:
        print(words.read_text()[-2000:])
    with out.open("rb") as lines:
        good = sum(b'"status":200' in line or line == b"200\n" for line in lines)
    return Cost(good, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def table(options: argparse.Namespace) -> None:
    """Print a row for each size and client."""
    print("   KB  client     in flight    good   wall s  CPU ms/page  pages/CPU s  peak MB")
    for kb in map(float, options.kb.split(",")):
        with nginx(options, kb) as folder:
            for client in ["crawltool", *filter(None, options.peers.split(","))]:
                number = options.number if client == "crawltool" else min(options.number, options.peer_number)
                cost = measure(client, folder, options, urls(options, number))
                each = cost.cpu_s / max(cost.good, 1)
                row = f"{kb:5g}  {client:10}{options.in_flight:10}{cost.good:8}{cost.wall_s:9.1f}{each * 1000:13.2f}"
                print(f"{row}{1 / max(each, 1e-9):13.0f}{cost.peak_bytes / 1e6:9.0f}", flush=True)


def long(options: argparse.Namespace) -> None:
    """Print the memory of one fetch process after a tenth of its work and after all of it."""
    number, options.tls = options.long, False
    with nginx(options, 1) as folder:
        process = subprocess.Popen(command_of("crawltool", folder, options), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pin(process.pid, -1)
        assert process.stdin is not None and process.stdout is not None
        feeder = threading.Thread(target=feed, args=(process, urls(options, number)))
        feeder.start()
        seen, marks = 0, {number * step // 10 for step in range(1, 11)}
        for line in process.stdout:
            seen += b'"status":200' in line
            if seen in marks:
                marks.discard(seen)
                print(f"{seen} fetched, {memory(process.pid)}", flush=True)
        feeder.join()
        print(f"ended with {process.wait()}")


def memory(pid: int) -> str:
    """Tell what a process has of its own and what it has mapped of files (the digest index, which the system may drop)."""
    words = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    own, mapped = (int(words[name].split()[0]) / 1000 for name in ("RssAnon", "RssFile"))
    return f"{own:.1f} MB of its own, {mapped:.1f} MB mapped files"


def feed(process: subprocess.Popen[bytes], given: Sequence[str]) -> None:
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.writelines(lines_of("crawltool", given))


def main() -> None:
    """Read the command line and run."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("number", 10_000), ("peer-number", 3_000), ("in-flight", 500), ("port", 18_080), ("long", 0)):
        ask.add_argument(f"--{name}", type=int, default=default)
    ask.add_argument("--kb", default="40,138,242")
    ask.add_argument("--peers", default="httpx,aiohttp,scrapy")
    ask.add_argument("--tls", action="store_true")
    given = ask.parse_args()
    if given.long:
        long(given)
    else:
        table(given)


if __name__ == "__main__":
    main()
