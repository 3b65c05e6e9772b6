"""Claims about net/engine.py and net/handle.py, each against a real socket, in both ways of waiting."""

from __future__ import annotations

import gzip
import os
import resource
import ssl
import subprocess
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
import trio

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.net.engine import Engine, EngineSettings, Exchange, Request
from tests.net.rawserver import MODE_NAMES, MODES, Connection, Handler, always, deaf_port, page, read, serving

both_ways = pytest.mark.parametrize("settings", MODES, ids=MODE_NAMES)


def ask(settings: EngineSettings, handler: Handler, *targets: str, **fields: object) -> tuple[list[Exchange], list[bytes], int]:
    """Ask one after the other; give the exchanges, the heads the server saw and its connections."""

    async def main() -> tuple[list[Exchange], list[bytes], int]:
        async with serving(handler) as server, Engine(settings) as engine:
            made = [await engine.exchange(server.request(target, **fields)) for target in targets or ("/",)]
            assert engine.in_flight == 0
            return made, server.heads, server.connections

    with_limit = trio.run(_bounded, main)
    assert isinstance(with_limit, tuple)
    return with_limit


async def _bounded(main: object) -> object:
    with trio.fail_after(10):
        return await main()  # type: ignore[operator]


def one(settings: EngineSettings, *parts: bytes, **fields: object) -> Exchange:
    """Ask once for an answer of given bytes."""
    return ask(settings, always(*parts), **fields)[0][0]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# What is sent


@both_ways
@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("/", {}),
        ("/a/../b/./c?x=%zz&y='|\"<>^{}`\\#", {"headers": [("User-Agent", "crawltool/1"), ("Accept", "*/*"), ("From", "a@b.c")]}),
        (
            "/%2e%2e/é".encode().decode("ascii", "ignore"),
            {"headers": [("If-None-Match", '"x"'), ("X-Empty", ""), ("host", "other.test")]},
        ),
        ("//twice//", {"method": "HEAD", "host": "::1", "keep": True}),
        ("?query", {"keep": True, "headers": [("Connection", "keep-alive"), ("accept", "text/html")]}),
    ],
)
def test_the_request_bytes_are_what_the_server_saw(settings: EngineSettings, target: str, fields: dict[str, object]) -> None:
    exchanges, heads, _ = ask(settings, always(b"HTTP/1.1 204 None\r\n\r\n"), target, **fields)
    assert heads == [exchanges[0].request_bytes]
    assert exchanges[0].status == 204


def test_a_line_break_in_a_header_or_target_is_refused_and_nothing_is_sent() -> None:
    for target, headers in (("/a\r\nX: y", []), ("/", [("X", "a\nb")]), ("/", [("X\r\nY", "a")]), ("/a b", []), ("/\0", [])):
        exchanges, heads, connections = ask(MODES[0], always(page()), target, headers=headers)
        assert (exchanges[0].error, heads, connections) == ("malformed", [], 0)


def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert read(one(MODES[0], page(b"direct"))) == b"direct"


def test_an_http_proxy_gets_the_absolute_form_and_resolves_itself() -> None:
    async def main() -> None:
        async with serving(always(page(b"by proxy"))) as proxy, _through(proxy.port) as engine:
            request = Request("http", "far.test", 80, "/x?y", "8.8.8.8")
            exchange = await engine.exchange(request)
            assert read(exchange) == b"by proxy"
            assert proxy.heads == [exchange.request_bytes]
            assert exchange.request_bytes.startswith(b"GET http://far.test/x?y HTTP/1.1\r\nHost: far.test\r\n")
            inner = await engine.exchange(replace(request, address="10.0.0.1"))
            assert (inner.error, inner.reason, len(proxy.heads)) == ("blocked_address", "private", 1)

    trio.run(_bounded, main)


def test_a_proxy_that_is_down_is_not_the_hosts_fault() -> None:
    async def main() -> None:
        async with _through(1) as engine:
            exchange = await engine.exchange(Request("http", "far.test", 80, "/", "8.8.8.8"))
            assert exchange.error == "returned"
            assert exchange.reason and exchange.reason.startswith("the proxy cannot be reached")

    trio.run(_bounded, main)


def _through(port: int) -> Engine:
    return Engine(EngineSettings(proxy=f"http://localhost:{port}"))


# What comes back


@both_ways
def test_a_plain_answer_is_given_whole(settings: EngineSettings) -> None:
    exchange = one(settings, page(b"hello", b"X-A: 1\r\nx-a:2\r\n"))
    assert (exchange.status, exchange.error, exchange.truncated, exchange.peer_ip) == (200, None, None, "127.0.0.1")
    assert exchange.header_bytes == b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:2\r\nContent-Length: 5\r\n\r\n"
    assert exchange.headers == [("X-A", "1"), ("x-a", "2"), ("Content-Length", "5")]
    assert exchange.wire_bytes == len(exchange.header_bytes) + 5
    assert 0 < exchange.timings["connect"] <= exchange.timings["first_byte"] <= exchange.elapsed_s
    assert read(exchange) == b"hello"


@both_ways
def test_a_body_that_ends_with_the_connection_is_whole(settings: EngineSettings) -> None:
    exchange = one(settings, b"HTTP/1.0 200 OK\n\nto the end")
    assert (exchange.status, exchange.truncated, exchange.header_bytes) == (200, None, b"HTTP/1.0 200 OK\n\n")
    assert read(exchange) == b"to the end"


@both_ways
def test_chunks_are_undone_and_trailers_are_no_headers(settings: EngineSettings) -> None:
    answers = {
        b"/1": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'5  \r\nhello\r\n3;ext="a;b"\r\n wo\r\n0\r\nX-Sum: 1\r\n\r\n',
        b"/2": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond",
    }

    async def handler(connection: Connection) -> None:
        while head := await connection.head():
            await connection.send(answers[head.split()[1]])

    exchanges, _, connections = ask(settings, handler, "/1", "/2", keep=True)
    assert exchanges[0].headers == [("Transfer-Encoding", "chunked")]
    assert [read(exchange) for exchange in exchanges] == [b"hello wo", b"second"]
    assert (connections, exchanges[0].reused, exchanges[1].reused) == (1, False, True)


@both_ways
def test_only_the_final_header_block_is_kept(settings: EngineSettings) -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\n"
    exchange = one(settings, early, page(b"final"))
    assert exchange.header_bytes == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    assert (exchange.status, read(exchange)) == (200, b"final")


def test_a_protocol_switch_that_nobody_asked_for_is_one_flagged_outcome() -> None:
    for rest in (b"", b"raw bytes", page(b"final")):
        exchange = one(
            MODES[0], b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", rest, want=lambda status, headers: True
        )
        assert exchange.error in ("malformed", "unreachable") or exchange.status == 200, exchange


def test_an_ipv6_address_is_asked_in_brackets() -> None:
    async def main() -> None:
        try:
            listeners = await trio.open_tcp_listeners(0, host="::1")
        except OSError:
            pytest.skip("no IPv6 on this machine")
        heads: list[bytes] = []

        async def answer(stream: trio.SocketStream) -> None:
            async with stream:
                await always(page(b"six"))(Connection(stream, 1, heads))

        port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as nursery, Engine() as engine:
            nursery.start_soon(trio.serve_listeners, answer, listeners)
            exchange = await engine.exchange(Request("http", "::1", port, "/", "::1", typed=True))
            assert (read(exchange), exchange.peer_ip, heads) == (b"six", "::1", [exchange.request_bytes])
            nursery.cancel_scope.cancel()

    trio.run(_bounded, main)


def test_content_coding_is_left_as_it_came() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert read(one(MODES[0], page(packed, b"Content-Encoding: gzip\r\n"), headers=[("Accept-Encoding", "gzip")])) == packed


def test_a_redirect_is_not_followed() -> None:
    exchanges, heads, _ = ask(MODES[0], always(b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"))
    assert (exchanges[0].status, len(heads)) == (302, 1)


def test_folded_and_nameless_header_lines_are_bytes_as_received() -> None:
    exchange = one(MODES[0], b'HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\n"X-Q: 0"\r\nContent-Length: 0\r\n\r\n')
    assert exchange.headers == [("X-Long", "a b"), ('"X-Q', '0"'), ("Content-Length", "0")]
    assert b'"X-Q: 0"\r\n' in exchange.header_bytes


# Limits


@both_ways
def test_a_body_over_its_limit_is_cut_there(settings: EngineSettings) -> None:
    exchange = one(settings, page(b"x" * 5000), max_body_bytes=1000)
    assert (exchange.status, exchange.error, exchange.truncated, exchange.body_bytes) == (200, "too_large", "length", 1000)
    assert len(read(exchange)) == 1000


def test_a_body_of_exactly_its_limit_is_whole() -> None:
    exchange = one(MODES[0], page(b"x" * 1000), max_body_bytes=1000)
    assert (exchange.error, exchange.truncated, exchange.body_bytes) == (None, None, 1000)


@both_ways
def test_an_unwanted_body_is_sniffed_only(settings: EngineSettings) -> None:
    seen = []

    def want(status: int, headers: list[tuple[str, str]]) -> bool:
        seen.append((status, dict(headers)["Content-Type"]))
        return False

    exchange = one(settings, page(b"x" * 100_000, b"Content-Type: video/mp4\r\n"), want=want)
    assert seen == [(200, "video/mp4")]
    assert (exchange.wanted, exchange.error, exchange.truncated) == (False, None, "length")
    assert exchange.body_bytes == limits.SNIFF_BYTES


def test_an_unwanted_short_or_empty_body_is_not_truncated() -> None:
    for body in (b"", b"short"):
        exchange = one(MODES[0], page(body), want=lambda status, headers: False)
        assert (exchange.wanted, exchange.truncated, exchange.body_bytes) == (False, None, len(body))


def test_what_want_raises_is_raised_by_exchange() -> None:
    def want(status: int, headers: list[tuple[str, str]]) -> bool:
        raise LookupError("a mistake in the caller")

    for body in (b"", b"some"):
        with pytest.RaisesGroup(LookupError, flatten_subgroups=True, allow_unwrapped=True):
            one(MODES[0], page(body), want=want)


@both_ways
@pytest.mark.parametrize(
    "line", [b"X-Pad: " + b"y" * 1000 + b"\r\n", b"HTTP/1.1 103 Hints\r\nLink: </%s>\r\n\r\n" % (b"y" * 990)]
)
def test_endless_headers_are_bounded(settings: EngineSettings, line: bytes) -> None:
    sent = []

    async def handler(connection: Connection) -> None:
        await connection.head()
        await connection.send(b"HTTP/1.1 200 OK\r\n" if line.startswith(b"X") else b"")
        while True:
            await connection.send(line)
            sent.append(len(line))

    exchange = ask(settings, handler)[0][0]
    assert (exchange.error, exchange.status) == ("malformed", None)
    assert exchange.wire_bytes < limits.HEADER_BYTES_MAX + 100 * limits.KIB


@both_ways
def test_a_silent_server_is_a_first_byte_timeout(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        await connection.head()
        await trio.sleep_forever()

    exchange = ask(settings, handler, timeout_first_byte_s=0.1)[0][0]
    assert (exchange.error, exchange.reason, exchange.status, exchange.truncated) == ("timeout", "first_byte", None, None)
    assert 0.1 <= exchange.elapsed_s < 1


@both_ways
def test_a_drip_is_a_total_timeout_that_keeps_what_came(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        await connection.head()
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await connection.send(b"x")
            await trio.sleep(0.02)

    exchange = ask(settings, handler, timeout_total_s=0.2, timeout_first_byte_s=0.1)[0][0]
    assert (exchange.error, exchange.reason, exchange.status, exchange.truncated) == ("timeout", "total", 200, "time")
    assert 0 < len(read(exchange)) < 100


@both_ways
def test_a_port_that_never_accepts_is_a_connect_timeout(settings: EngineSettings) -> None:
    async def main() -> None:
        with deaf_port() as port:
            async with Engine(settings) as engine:
                request = Request("http", "deaf.test", port, "/", "127.0.0.1", typed=True, timeout_connect_s=0.1)
                exchange = await engine.exchange(request)
                assert (exchange.error, exchange.reason, exchange.peer_ip) == ("timeout", "connect", None)

    trio.run(_bounded, main)


# Broken exchanges


@both_ways
def test_a_body_that_breaks_off_is_kept_and_flagged(settings: EngineSettings) -> None:
    exchange = one(settings, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    assert (exchange.status, exchange.error, exchange.truncated) == (200, None, "disconnect")
    assert read(exchange) == b"half"


@both_ways
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-"])
def test_a_connection_closed_before_an_answer_is_unreachable(settings: EngineSettings, sent: bytes) -> None:
    exchange = one(settings, sent)
    assert (exchange.error, exchange.status, exchange.truncated) == ("unreachable", None, None)
    assert exchange.reason and "\n" not in exchange.reason


def test_what_is_not_http_is_malformed() -> None:
    for sent in (b"SSH-2.0-OpenSSH_9.2\r\n", b"<html>no headers</html>", b"HTTP/9 hello\r\n\r\n", b"\x16\x03\x01\x00\x02"):
        exchange = one(MODES[0], sent)
        assert (exchange.error, exchange.status) == ("malformed", None), sent


@both_ways
def test_a_refused_connection_is_unreachable(settings: EngineSettings) -> None:
    async def main() -> None:
        async with Engine(settings) as engine:
            exchange = await engine.exchange(Request("http", "closed.test", 1, "/", "127.0.0.1", typed=True))
            assert (exchange.error, exchange.reason) == ("unreachable", "connection refused")

    trio.run(_bounded, main)


# Kept connections (law 5: libcurl never repeats a request by itself)


@both_ways
def test_a_connection_closed_while_idle_is_replaced_and_no_request_is_sent_twice(settings: EngineSettings) -> None:
    async def main() -> None:
        async with serving(always(page())) as server, Engine(settings) as engine:
            for number in range(1, 4):
                exchange = await engine.exchange(server.request(keep=True))
                assert (exchange.status, exchange.reused) == (200, False)
                while server.ended < number:
                    await trio.sleep(0.001)
            assert (len(server.heads), server.connections) == (3, 3)

    trio.run(_bounded, main)


@both_ways
def test_a_kept_connection_that_dies_under_a_request_is_not_asked_again(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        await connection.head()
        await connection.send(page())
        await connection.head()  # read the second request and hang up: libcurl alone would send it again

    exchanges, heads, connections = ask(settings, handler, "/1", "/2", keep=True)
    assert [exchange.error for exchange in exchanges] == [None, "returned"]
    assert exchanges[1].reason == "the kept connection was closed before an answer"
    assert ([head.split()[1] for head in heads], connections) == ([b"/1", b"/2"], 1)


@both_ways
def test_without_keep_every_exchange_has_its_own_connection(settings: EngineSettings) -> None:
    exchanges, heads, connections = ask(settings, always(page(), then_close=False), "/1", "/2")
    assert (connections, exchanges[1].reused) == (2, False)
    assert all(b"\r\nConnection: close\r\n" in head for head in heads)


def test_an_answer_nobody_asked_for_makes_a_kept_connection_unusable() -> None:
    async def handler(connection: Connection) -> None:
        while await connection.head():
            await connection.send(page(b"own"))
            await trio.sleep(0.01)
            await connection.send(page(b"foreign"))

    async def main() -> None:
        async with serving(handler) as server, Engine() as engine:
            for _ in range(3):
                assert read(await engine.exchange(server.request(keep=True))) == b"own"
                await trio.sleep(0.03)
            assert (len(server.heads), server.connections) == (3, 3)

    trio.run(_bounded, main)


# Addresses


@both_ways
def test_the_guard_refuses_before_a_connection_is_made(settings: EngineSettings) -> None:
    exchanges, _, connections = ask(settings, always(page()), typed=False)
    assert (exchanges[0].error, exchanges[0].reason, connections) == ("blocked_address", "loopback", 0)


def test_an_allowed_net_opens_the_guard() -> None:
    assert one(EngineSettings(allow_nets=(ip_network("127.0.0.0/8"),)), page(), typed=False).status == 200


def test_out_of_descriptors_is_this_machines_trouble_not_the_hosts() -> None:
    async def main() -> Exchange:
        async with serving(always(page())) as server, Engine() as engine:
            await engine.exchange(server.request())
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
            held = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest)]
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, hard))
                return await engine.exchange(server.request())
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for number in held:
                    os.close(number)

    exchange = trio.run(_bounded, main)
    assert isinstance(exchange, Exchange)
    assert (exchange.error, exchange.reason) == ("returned", "this machine: Too many open files")


# Memory


@both_ways
def test_large_bodies_go_to_a_file_and_memory_is_given_back(settings: EngineSettings) -> None:
    body = os.urandom(limits.BODY_IN_MEMORY_BYTES + 70_000)

    async def main() -> None:
        async with serving(always(page(body))) as server, Engine(settings) as engine:
            exchange = await engine.exchange(server.request())
            assert exchange.body is not None
            assert exchange.body.in_file
            assert b"".join(exchange.body.chunks()) == body == exchange.body.read()
            exchange.close()
            assert engine.memory.used == 0

    trio.run(_bounded, main)


def test_bodies_share_one_budget() -> None:
    async def main() -> None:
        settings = EngineSettings(body_memory_bytes=1500)
        async with serving(always(page(b"x" * 1000))) as server, Engine(settings) as engine:
            first = await engine.exchange(server.request())
            second = await engine.exchange(server.request())
            assert first.body is not None and second.body is not None
            assert (first.body.in_file, second.body.in_file, engine.memory.used) == (False, True, 1000)
            first.close()
            third = await engine.exchange(server.request())
            assert third.body is not None and not third.body.in_file
            del third, second
            assert engine.memory.used == 0

    trio.run(_bounded, main)


def test_a_body_file_that_cannot_be_written_is_disk_trouble() -> None:
    with pytest.RaisesGroup(DiskTrouble, flatten_subgroups=True, allow_unwrapped=True):
        one(EngineSettings(body_memory_bytes=0, body_dir="/nowhere"), page(b"x"))


# Cancelling (HTTP-06: cancelled requests give their place back)


@both_ways
def test_cancelled_exchanges_give_everything_back(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        head = await connection.head()
        if b"/well" in head:
            await connection.send(page(b"well"))
            return
        if b"/half" in head:
            await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x" * 500)
        await connection.head()  # wait until the client has gone

    async def impatient(engine: Engine, request: Request) -> None:
        with trio.move_on_after(0.1), trio.move_on_after(0.1):
            await engine.exchange(request)
            raise AssertionError("an answer?")

    async def main() -> None:
        with deaf_port() as deaf:
            async with serving(handler) as server, Engine(settings) as engine:
                await engine.exchange(server.request("/well"))
                before = descriptors()
                async with trio.open_nursery() as nursery:
                    for number in range(48):
                        request = server.request(("/silent", "/half")[number % 2], keep=number % 4 < 2)
                        nursery.start_soon(impatient, engine, request if number % 3 else replace(request, port=deaf))
                assert engine.in_flight == 0
                exchange = await engine.exchange(server.request("/well"))
                assert read(exchange) == b"well"
                with trio.fail_after(1):
                    while descriptors() > before:  # the server's side of the connections ends when it notices
                        await trio.sleep(0.01)
                assert engine.memory.used == 0

    trio.run(_bounded, main)


@both_ways
def test_cancelling_from_inside_the_want_hook_is_safe(settings: EngineSettings) -> None:
    async def main() -> None:
        async with serving(always(page(b"x" * 200_000))) as server, Engine(settings) as engine:
            with trio.CancelScope() as scope:
                await engine.exchange(server.request(want=lambda status, headers: scope.cancel() or True))  # type: ignore[func-returns-value]
            assert scope.cancelled_caught
            assert engine.in_flight == 0
            assert (await engine.exchange(server.request())).body_bytes == 200_000

    trio.run(_bounded, main)


@both_ways
def test_closing_the_engine_ends_exchanges_in_flight(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        await connection.head()
        await trio.sleep_forever()

    ended = []

    async def main() -> None:
        async def asking() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await engine.exchange(server.request())
            ended.append(True)

        async with serving(handler) as server, trio.open_nursery() as nursery, Engine(settings) as engine:
            nursery.start_soon(asking)
            while not server.heads:
                await trio.sleep(0.01)

    before = descriptors()
    trio.run(_bounded, main)
    assert ended == [True]
    assert descriptors() == before


@both_ways
def test_many_exchanges_at_once_are_not_mixed_up(settings: EngineSettings) -> None:
    async def handler(connection: Connection) -> None:
        while head := await connection.head():
            await connection.send(page(head.split()[1] * 2000))

    async def main() -> None:
        async with serving(handler) as server, Engine(settings) as engine:

            async def asking(number: int) -> None:
                for turn in range(5):
                    target = f"/{number}/{turn}"
                    exchange = await engine.exchange(server.request(target, keep=number % 2 == 0))
                    assert read(exchange) == target.encode() * 2000

            async with trio.open_nursery() as nursery:
                for number in range(40):
                    nursery.start_soon(asking, number)
            assert len(server.heads) == 200

    trio.run(_bounded, main)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder: Path = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key]
    command += ["-out", cert, "-days", "2", "-subj", "/CN=site.test", "-addext", "subjectAltName=DNS:site.test"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command: no certificate to test with")
    return cert, key


def test_https_through_a_proxy_keeps_only_the_hosts_own_header_block(certificate: tuple[str, str]) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def main() -> None:
        async def tunnel(connection: Connection) -> None:
            await connection.head()
            await connection.send(b"HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n")
            inner = trio.SSLStream(connection.stream, context, server_side=True)
            await always(page(b"secret"))(Connection(inner, 1, heads))

        heads: list[bytes] = []
        async with serving(tunnel) as proxy:
            settings = EngineSettings(proxy=f"http://127.0.0.1:{proxy.port}", ca_file=cert)
            async with Engine(settings) as engine:
                request = Request("https", "site.test", 443, "/x", "8.8.8.8", [("From", "me@x.org")])
                exchange = await engine.exchange(request)
                assert read(exchange) == b"secret"
                assert exchange.header_bytes == b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
                assert heads == [exchange.request_bytes]
                assert proxy.heads[0].startswith(b"CONNECT site.test:443 HTTP/1.1\r\n")
                assert b"me@x.org" not in proxy.heads[0]

    trio.run(_bounded, main)


def test_tls_is_verified_against_the_bundle_and_the_name(certificate: tuple[str, str]) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def handler(connection: Connection) -> None:
        try:
            await always(page(b"secret"))(connection)
        except ssl.SSLError:
            return

    async def main() -> None:
        async with serving(handler, context) as server:
            async with Engine(EngineSettings(ca_file=cert)) as engine:
                exchange = await engine.exchange(server.request())
                assert read(exchange) == b"secret"
                assert exchange.timings["connect"] < exchange.timings["tls"] <= exchange.timings["first_byte"]
                dotted = await engine.exchange(server.request(host="site.test."))
                assert read(dotted) == b"secret"
                other = await engine.exchange(server.request(host="other.test"))
                assert (other.error, other.status) == ("tls_error", None)
            async with Engine() as engine:
                assert (await engine.exchange(server.request())).error == "tls_error"

    trio.run(_bounded, main)
