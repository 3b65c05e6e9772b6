"""Exchanges per CPU-second of net/engine.py alone, against an nginx on 127.0.0.0/8 that this script starts.

    python -m tests.bench.net_engine [--number 10000] [--in-flight 500] [--bytes 40960] [--hosts 500] [--keep] [--tls] [--tasks]

New connections unless --keep; --tasks waits with one task per socket. Prints one line; nginx's CPU is not counted.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from crawltool.net.engine import Engine, EngineSettings, Request

CONF = """worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/errors crit;
events {{ worker_connections 20000; }}
http {{ access_log off; default_type text/html; server {{ listen 0.0.0.0:{port} {tls} backlog=8192; root {folder}/www;
ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; add_header Cache-Control "max-age=60"; }} }}"""
FIELDS = [("User-Agent", "crawltool/0.1"), ("Accept", "text/html"), ("Accept-Encoding", "gzip"), ("From", "me@x.org")]


@contextmanager
def nginx(options: argparse.Namespace) -> Iterator[Path]:
    """Serve one page from a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "www").mkdir()
        (folder / "www" / "page.html").write_bytes(b"x" * options.bytes)
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x"]
        command += ["-addext", "subjectAltName=DNS:*.site.test", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"]
        subprocess.run(command, check=True, capture_output=True)
        (folder / "conf").write_text(CONF.format(folder=folder, port=options.port, tls="ssl" if options.tls else ""))
        server = subprocess.Popen(["nginx", "-c", f"{folder}/conf"])
        try:
            time.sleep(0.5)
            yield folder
        finally:
            server.terminate()
            server.wait()


async def measure(options: argparse.Namespace, folder: Path) -> None:
    numbers, bad = iter(range(options.number)), 0

    async def ask(engine: Engine) -> None:
        nonlocal bad
        for number in numbers:
            host = number % options.hosts
            address, scheme = f"127.1.{host // 250}.{host % 250 + 2}", "https" if options.tls else "http"
            request = Request(scheme, f"h{host}.site.test", options.port, "/page.html", address, FIELDS, typed=True)
            request.keep, request.want = options.keep, lambda status, headers: True
            exchange = await engine.exchange(request)
            bad += exchange.status != 200 or exchange.body_bytes != options.bytes
            exchange.close()

    async with Engine(EngineSettings(ca_file=str(folder / "cert.pem"), use_epoll=not options.tasks)) as engine:
        wall, cpu = time.perf_counter(), time.process_time()
        async with trio.open_nursery() as nursery:
            for _ in range(options.in_flight):
                nursery.start_soon(ask, engine)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rates = f"{options.number / cpu:.0f} per CPU-second, {options.number / wall:.0f} per second"
    print(f"{rates}, {peak} MB, {bad} bad: {vars(options)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("number", 10_000), ("in-flight", 500), ("bytes", 40_960), ("hosts", 500), ("port", 18_080)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("keep", "tls", "tasks"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    with nginx(options) as folder:
        trio.run(measure, options, folder)


if __name__ == "__main__":
    main()
