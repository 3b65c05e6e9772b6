"""Each collected behaviour of bad servers that no single answer shows: its verdict through `crawltool fetch`, in bounded time.

What only a crawl can show is proved elsewhere; PROVED_BY names the test, and the two together are the whole collection.
"""

from __future__ import annotations

import importlib
import json
import socketserver
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, socket
from typing import Any

import pytest

from tests.archives import assert_clean
from tests.e2e.crawls import CONTACT, tool
from tests.paths import shared_data

pytestmark = pytest.mark.real
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
TOTAL_S = 2.0


def play(*steps: bytes | float | str, repeat: bytes = b"", every_s: float = 0.0) -> Callable[[socket], None]:
    """Send bytes, wait seconds, `reset`; then repeat bytes until the client has enough."""

    def handler(peer: socket) -> None:
        for step in steps:
            if isinstance(step, bytes):
                peer.sendall(step)
            elif isinstance(step, float):
                time.sleep(step)
            else:
                peer.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        while repeat:  # the client ends it
            peer.sendall(repeat)
            time.sleep(every_s)

    return handler


def moved(to: str) -> bytes:
    return b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % to.encode()


# What the server does (after it has read the request), and what the outcome says.
ASKED: dict[str, tuple[Callable[[socket], None], dict[str, Any]]] = {
    "accept-never-answer": (play(60.0), {"verdict": "timeout", "reason": "first_byte"}),
    "reset-after-accept": (play("reset"), {"verdict": "unreachable"}),
    "reset-mid-body": (
        play(OK + b"Content-Length: 1000\r\n\r\n" + b"x" * 300, 0.3, "reset"),
        {"verdict": "ok", "truncated": "disconnect", "body_bytes": 300},
    ),
    "close-mid-body": (
        play(OK + b"Content-Length: 1000\r\n\r\n" + b"x" * 300),
        {"verdict": "ok", "truncated": "disconnect", "body_bytes": 300},
    ),
    "drip-headers": (play(OK, repeat=b"X", every_s=0.2), {"verdict": "timeout", "reason": "total", "status": None}),
    "drip-body": (
        play(OK + b"Content-Length: 100000\r\n\r\n", repeat=b"x", every_s=0.2),
        {"verdict": "timeout", "reason": "total", "status": 200, "truncated": "time"},
    ),
    "endless-headers": (play(OK, repeat=b"X-More: and more\r\n" * 50), {"verdict": "malformed", "status": None}),
    "endless-body": (play(OK + b"\r\n", repeat=b"x" * 65_536), {"verdict": "too_large", "truncated": "length"}),
    "endless-chunks": (
        play(OK + b"Transfer-Encoding: chunked\r\n\r\n", repeat=b"1000\r\n" + b"x" * 4096 + b"\r\n"),
        {"verdict": "too_large", "truncated": "length"},
    ),
    "endless-1xx": (
        play(repeat=b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 20),
        {"verdict": "malformed", "status": None},
    ),
    "redirect-self": (play(moved("/redirect-self")), {"verdict": "redirect", "redirect": "/redirect-self"}),
    "keepalive-lie": (play(OK + b"Connection: keep-alive\r\nContent-Length: 2\r\n\r\nok"), {"verdict": "ok", "body_bytes": 2}),
    "429-retry-after-N": (
        play(b"HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"),
        {"verdict": "busy", "retry_after_s": 7.0},
    ),
    "503-forever": (play(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), {"verdict": "busy", "status": 503}),
    "big-page": (
        play(OK + b"Content-Length: 52428800\r\n\r\n", repeat=b"<" * 65_536),
        {"verdict": "too_large", "truncated": "length"},
    ),
    "deep-html": (play(OK + b"Content-Length: 500000\r\n\r\n" + b"<div>" * 100_000), {"verdict": "ok", "body_bytes": 500_000}),
}
# These read no request.
UNASKED = {"refuse": {"verdict": "unreachable", "status": None}, "slow-tls": {"verdict": "timeout", "reason": "connect"}}
PROVED_BY = {
    "redirect-pair": "test_whole_site.test_every_reachable_page_once_and_all_counts_agree",
    "redirect-chain-N": "test_whole_site.test_every_reachable_page_once_and_all_counts_agree",
    "redirect-growing": "test_endless_spaces.test_a_host_that_ends_raises_none",
    "redirect-scheme": "test_odd_answers.test_a_dead_https_port_does_not_cost_the_http_pages_of_the_host",
    "redirect-cross-host": "test_robots_ttl.test_the_rules_of_each_kind_of_host",
    "keepalive-stale": "test_no_repeat.test_a_connection_closed_by_the_server_costs_no_page_and_no_second_request",
    "robots-slow": "test_robots_ttl.test_the_rules_of_each_kind_of_host",
    "robots-html": "test_robots_ttl.test_the_rules_of_each_kind_of_host",
    "calendar-trap": "test_odd_answers.test_traps_end_by_depth_and_by_pages",
    "session-trap": "test_odd_answers.test_traps_end_by_depth_and_by_pages",
    "soft-404": "test_odd_answers.test_traps_end_by_depth_and_by_pages",
    "host-case": "test_odd_answers.test_paths_that_look_alike_are_pages_of_their_own",
}


@contextmanager
def serving() -> Iterator[tuple[int, Counter[str]]]:
    """Play the behaviour that the path names."""
    asked: Counter[str] = Counter()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(1, 2) == b"\x16":  # MSG_PEEK: a TLS hello, which nobody answers
                time.sleep(60)
            head = b""
            while b"\r\n\r\n" not in head:
                more = self.request.recv(65_536)
                if not more:
                    return
                head += more
            name = head.split(b" ")[1][1:].decode()
            asked[name] += 1
            try:
                ASKED[name][0](self.request)
            except OSError:
                return  # the client had enough

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close, request_queue_size = True, False, 100

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


def test_every_bad_behaviour_ends_in_time_with_its_verdict(tmp_path: Path) -> None:
    with serving() as (port, asked), socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and deaf: refused
        urls = {name: f"http://127.0.0.1:{port}/{name}" for name in ASKED}
        urls |= {"refuse": f"http://127.0.0.1:{closed.getsockname()[1]}/", "slow-tls": f"https://127.0.0.1:{port}/"}
        shape = {"type": "target", "kind": "page", "address": "127.0.0.1", "typed": True}
        lines = [json.dumps({**shape, "url": url, "lease": name}) + "\n" for name, url in urls.items()]
        (tmp_path / "c").mkdir()
        limits = ["--timeout-connect", "1s", "--timeout-first-byte", "1s", "--timeout-total", f"{TOTAL_S}s", "--max-body", "1MiB"]
        done = tool(tmp_path, "fetch", "-C", str(tmp_path / "c"), *CONTACT, *limits, input="".join(lines), timeout_s=30)
    outcomes = {one["lease"]: one for one in map(json.loads, done.stdout.encode().splitlines())}
    said = {
        name: outcome | {"redirect": (outcome.get("redirect") or "").partition(f":{port}")[2]}
        for name, outcome in outcomes.items()
    }
    expected = {name: words for name, (_, words) in ASKED.items()} | UNASKED
    assert {name: {key: said[name].get(key) for key in words} for name, words in expected.items()} == expected
    assert max(outcome.get("elapsed_s", 0) for outcome in outcomes.values()) < TOTAL_S + 2
    assert asked == Counter(dict.fromkeys(ASKED, 1)), "each was asked once"
    assert outcomes["endless-body"]["body_bytes"] == outcomes["big-page"]["body_bytes"] == 1 << 20
    for path in (tmp_path / "c" / "warc").glob("*.warc.gz"):
        assert_clean(path)


def test_every_behaviour_of_the_collection_is_proved_somewhere() -> None:
    listed = {json.loads(line)["id"] for line in shared_data("http/server_behaviours.jsonl").read_bytes().splitlines()}
    assert listed == {*ASKED, *UNASKED, *PROVED_BY}
    for place in PROVED_BY.values():
        module, _, name = place.partition(".")
        assert callable(getattr(importlib.import_module(f"tests.e2e.{module}"), name)), place
