"""stages/fetch against a loopback server, with lines in memory."""

from __future__ import annotations

import gzip
import json
import math
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from crawltool import limits
from crawltool.errors import CannotHold, DiskTrouble, Misuse
from crawltool.net.dns import Resolver
from crawltool.stages.clock import LOCK_NAME, Clock
from crawltool.stages.drain import EndedBySignal, ReaderGone, TrioDrain
from crawltool.stages.feeds import Batch
from crawltool.stages.fetch import FETCH_LOCK, FetchStage
from crawltool.stages.fetchsettings import Settings
from crawltool.stages.where import Trouble
from crawltool.stores import atomic, warcread
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warc import WarcWriter

PAGE = b"<title>Hello</title><a href=/next>next</a>"


class Server:
    """One raw answer for each path; what was asked is kept. `gate` holds back paths under /slow."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers = answers
        self.asked: list[bytes] = []
        self.gate = trio.Event()
        self.has_slow = trio.Event()

    async def __call__(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = await stream.receive_some(65_536)
            if not data:
                return
            head += data
        self.asked.append(head)
        path = head.split(b" ", 2)[1].decode()
        if path.startswith("/slow"):
            self.has_slow.set()
            await self.gate.wait()
        with suppress(trio.BrokenResourceError):  # who has enough hangs up
            await stream.send_all(self.answers.get(path, http(PAGE)))
            await stream.aclose()

    @property
    def paths(self) -> list[str]:
        return [head.split(b" ", 2)[1].decode() for head in self.asked]


def http(body: bytes = b"", status: str = "200 OK", *fields: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body) if length is None else length}", "Connection: close"]
    if not any(field.lower().startswith("content-type") for field in fields):
        lines.append("Content-Type: text/html")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Source:
    """Batches that a test hands over; ends with close()."""

    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[list[bytes]](math.inf)
        self.trouble = Trouble(lambda text: None)
        self.done = 0
        self.stopped = False

    def give(self, *records: dict[str, Any] | bytes) -> None:
        self.send.send_nowait([one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in records])

    async def next(self, timeout_s: float = math.inf) -> Batch | None:
        try:
            lines = await self.receive.receive()
        except trio.EndOfChannel:
            return None
        batch = Batch(lines)
        batch.on_done(self._note_done)
        return batch

    def _note_done(self) -> None:
        self.done += 1

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.send.close()


class Sink:
    """Keeps what was published; `broken` raises that instead."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.broken: Exception | None = None
        self.news = trio.Event()

    async def publish(self, lines: Sequence[bytes]) -> None:
        await trio.lowlevel.checkpoint()
        if self.broken is not None:
            raise self.broken
        self.lines += lines
        self.news.set()

    def outcomes(self) -> dict[str, dict[str, Any]]:
        found = [json.loads(line) for line in self.lines if line.startswith(b'{"type":"outcome"')]
        assert len({one["lease"] for one in found}) == len(found)
        return {one["lease"]: one for one in found}


class Bench:
    """One fetch stage with everything around it."""

    def __init__(self, directory: Path, port: int, server: Server, drain: TrioDrain, options: dict[str, Any]) -> None:
        self.directory, self.port, self.server, self.drain = directory, port, server, drain
        self.source, self.sink, self.said = Source(), Sink(), list[str]()
        self.digests = DigestIndex(directory / "warc" / "digests.lmdb")
        self.archive: Any = WarcWriter(directory / "warc", self.digests, {})
        self.resolver = options.pop("resolver", None)
        self.clock: Clock | None = options.pop("clock", None)
        self.settings = Settings(**{"dir": directory, "product": "crawltool/1", "min_free_bytes": 0, **options})

    def target(self, path: str, lease: str = "1-1", **fields: Any) -> dict[str, Any]:
        url = path if "://" in path else f"http://127.0.0.1:{self.port}{path}"
        return {"type": "target", "url": url, "lease": lease, "kind": "page", "address": "127.0.0.1", "typed": True, **fields}

    def stage(self) -> FetchStage:
        return FetchStage(
            self.settings,
            self.source,  # type: ignore[arg-type]
            self.sink,
            self.archive,
            self.drain,
            clock=self.clock,
            resolver=self.resolver,
            say=self.said.append,
        )

    async def fetch(self, *records: dict[str, Any] | bytes) -> dict[str, dict[str, Any]]:
        """Give all at once, then the end of input; gives outcomes by lease."""
        self.source.give(*records)
        self.source.close()
        await self.stage().run()
        self.archive.close()
        return self.sink.outcomes()


def run(
    directory: Path,
    test: Callable[[Bench], Awaitable[None]],
    answers: dict[str, bytes] | None = None,
    grace_s: float = 8.0,
    **options: Any,
) -> None:
    """Run a test on a bench inside trio, with a server on loopback."""

    async def main() -> None:
        server = Server(answers or {})
        with TrioDrain(grace_s) as drain:
            async with trio.open_nursery() as nursery:
                listeners = await nursery.start(partial(trio.serve_tcp, server, 0, host="127.0.0.1"))
                bench = Bench(directory, listeners[0].socket.getsockname()[1], server, drain, options)
                with trio.fail_after(20):
                    await test(bench)
                nursery.cancel_scope.cancel()

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        leaves = flat(group)
        raise (leaves[0] if len(leaves) == 1 else group) from None


def flat(error: BaseException) -> list[BaseException]:
    return [leaf for inner in error.exceptions for leaf in flat(inner)] if isinstance(error, BaseExceptionGroup) else [error]


def test_a_page_is_stored_before_its_outcome_names_it(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        found = await bench.fetch(bench.target("/a?b", depth=3, hops=1, tags={"x": [1]}))
        one = found["1-1"]
        assert (one["verdict"], one["status"], one["body_bytes"]) == ("ok", 200, len(PAGE))
        assert (one["depth"], one["hops"], one["tags"]) == (3, 1, {"x": [1]})
        assert one["peer_ip"] == "127.0.0.1" and one["content_type"] == "text/html"
        assert one["headers"]["content-length"] == str(len(PAGE))
        assert abs(one["fetched_at"] - bench.stage().clock.now()) < 20 and 0 < one["elapsed_s"] < 20
        locator = SimpleNamespace(**one["warc"])
        record = warcread.read(bench.directory / "warc", locator)  # type: ignore[arg-type]
        assert record.body == PAGE and record.http_status == 200
        assert bench.source.done == 1

    run(tmp_path, test)


def test_law_2_no_outcome_is_published_while_its_body_is_written(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        inner, sink = bench.archive, bench.sink
        published_during: list[int] = []

        class Archive:
            def store(self, captures: Any) -> Any:
                before = len(sink.lines)
                stored = inner.store(captures)
                published_during.append(len(sink.lines) - before)
                return stored

            def close(self) -> None:
                inner.close()

        bench.archive = Archive()
        found = await bench.fetch(*(bench.target(f"/{number}", f"1-{number}") for number in range(40)))
        assert len(found) == 40 and all(one["warc"] for one in found.values())
        assert published_during and not any(published_during)
        assert len(published_during) < 40, "answers that came together are stored together"

    run(tmp_path, test)


def test_a_disk_that_fails_ends_the_stage_and_publishes_nothing(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        def store(captures: Any) -> Any:
            raise DiskTrouble("full")

        bench.archive = SimpleNamespace(store=store, close=lambda: None)
        with pytest.raises(BaseExceptionGroup) as caught:
            await bench.fetch(bench.target("/a"))
        assert [type(leaf) for leaf in flat(caught.value)] == [DiskTrouble]
        assert bench.sink.lines == []

    run(tmp_path, test)


def test_a_disk_that_stays_full_ends_in_order_with_disk_trouble(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(DiskTrouble):
            await bench.fetch(bench.target("/a"), bench.target("http://127.0.0.1/", "1-2", kind="address"))
        found = bench.sink.outcomes()
        assert (found["1-1"]["verdict"], found["1-1"]["reason"]) == ("returned", "the disk is full")
        assert found["1-2"]["verdict"] == "ok", "what needs no room goes on"
        assert bench.server.asked == [] and len(bench.said) == 1 and "--min-free" in bench.said[0]

    run(tmp_path, test, min_free_bytes=1 << 62, max_rest_s=0.1)


def test_a_full_disk_pauses_and_goes_on_when_a_fifth_more_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 2000
    disk = SimpleNamespace(f_blocks=1 << 30, f_frsize=1)
    monkeypatch.setattr(limits, "FREE_LOOK_S", 0.01)
    monkeypatch.setattr("crawltool.stages.fetchroom.os.statvfs", lambda path: SimpleNamespace(f_bavail=free, **vars(disk)))

    async def test(bench: Bench) -> None:
        nonlocal free
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.stage().run)
            bench.source.give(bench.target("/slow"))
            await bench.server.has_slow.wait()
            free = 999
            bench.server.gate.set()
            while not bench.said:
                await trio.sleep(0.01)
            late = bench.target("/late", "1-3", expires_at=bench.stage().clock.now() + 10.3)
            bench.source.give(bench.target("/waits", "1-2"), late)
            await bench.sink.news.wait()
            assert list(bench.sink.outcomes()) == ["1-3"], "an answer is held while there is no room to store it"
            assert bench.sink.outcomes()["1-3"]["verdict"] == "returned"
            free = 1199
            await trio.sleep(0.05)
            assert len(bench.sink.lines) == 1, "the same amount is not enough to go on"
            free = 1200
            bench.source.close()
        found = bench.sink.outcomes()
        assert [found[lease]["verdict"] for lease in ("1-1", "1-2")] == ["ok", "ok"] and bench.server.paths == ["/slow", "/waits"]
        assert ["paused" in text for text in bench.said] == [True, False]

    run(tmp_path, test, min_free_bytes=1000, timeout_total_s=10.0)


def test_a_signal_stores_what_a_full_disk_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 2000
    disk = SimpleNamespace(f_blocks=1 << 30, f_frsize=1)
    monkeypatch.setattr("crawltool.stages.fetchroom.os.statvfs", lambda path: SimpleNamespace(f_bavail=free, **vars(disk)))

    async def test(bench: Bench) -> None:
        nonlocal free
        stage = bench.stage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.run)
            bench.source.give(bench.target("/slow"))
            await bench.server.has_slow.wait()
            free = 0
            bench.server.gate.set()
            while not bench.said:
                await trio.sleep(0.01)
            bench.source.give(bench.target("/waits", "1-2"))
            await trio.testing.wait_all_tasks_blocked()
            bench.drain.begin(signal.SIGTERM)
            bench.source.close()
        found = bench.sink.outcomes()
        assert [found[lease]["verdict"] for lease in ("1-1", "1-2")] == ["ok", "returned"] and found["1-1"]["warc"]

    with pytest.raises(EndedBySignal):
        run(tmp_path, test, min_free_bytes=1000)


def test_no_more_is_read_ahead_than_a_few_times_the_concurrency(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.stage().run)
            for number in range(60):
                bench.source.give(bench.target("/slow", f"1-{number}"))
            await bench.server.has_slow.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert bench.source.done <= 2 + 2 * limits.TARGETS_AHEAD + 1, (
                "the rest is left to others, and to memory that is not ours"
            )
            bench.server.gate.set()
            bench.source.close()
        assert len(bench.sink.outcomes()) == 60 and len(bench.server.asked) == 60

    run(tmp_path, test, concurrency=2)


def test_other_lines_pass_byte_for_byte_and_in_order(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        lines = [
            b'{"type":"candidate", "url":"http://x.test/" , "new":1}\n',
            b'{"url":1,"type":"mystery"}\n',
            b'{"type":"outcome","lease":"9-9"}\n',
        ]
        await bench.fetch(*lines, b"nonsense\n", b'{"type":"target","url":1}\n')
        assert bench.sink.lines == lines
        assert bench.source.trouble.total == 2
        assert any("crawltool frontier" in text for text in bench.said)

    run(tmp_path, test)


def test_candidates_beside_targets_are_no_mistake(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.fetch(b'{"type":"candidate","url":"http://x.test/"}\n', bench.target("/"))
        assert bench.said == []

    run(tmp_path, test)


WIRE = [
    "/Svc.asmx?wsdl",
    "/index.php?/topic/57-a/&do=find&a=1",
    "/s?b=2&a=1&a=0&empty=",
    "/api?title=A%26B&prop=x|y",
    "/%20%97%98",
    "/p?u=http%3A//other.test/?a=1%202",
    "/100%",
    "/a%2fb/%7euser",
    "//x/./y"[:3],
]


def test_law_9_the_wire_shows_what_the_page_wrote(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        found = await bench.fetch(*(bench.target(path, f"1-{number}") for number, path in enumerate(WIRE)))
        assert sorted(bench.server.paths) == sorted(WIRE)
        assert {one["url"].partition(str(bench.port))[2] for one in found.values()} == set(WIRE)

    run(tmp_path, test)


def test_every_request_says_who_asks(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        await bench.fetch(bench.target("/"))
        head = bench.server.asked[0].decode()
        assert "User-Agent: crawltool/1 (+me@x.org)\r\n" in head
        assert "From: me@x.org\r\n" in head
        assert "Accept-Encoding: gzip, deflate, zstd\r\n" in head

    run(tmp_path, test, contact="me@x.org")


def test_without_a_contact_only_loopback_is_asked(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(BaseExceptionGroup) as caught:
            await bench.fetch(bench.target("http://site.test/", address="192.0.2.1"))
        (error,) = flat(caught.value)
        assert isinstance(error, Misuse) and "--contact" in str(error)

    run(tmp_path, test)


def test_validators_go_back_byte_for_byte(tmp_path: Path) -> None:
    prior = {
        "etag": 'W/"a\\"b,c-gzip"',
        "last_modified": "Thu, 12 Dec 2019 21:00:57 +0100",
        "digest": "sha1:X",
        "warc_date": "2026-01-01T00:00:00Z",
    }
    answers = {"/same": http(b"", "304 Not Modified"), "/liar": http(b"", "304 Not Modified")}

    async def test(bench: Bench) -> None:
        odd = {"etag": '"é"', "last_modified": "0"}
        found = await bench.fetch(
            bench.target("/same", "1-1", prior=prior), bench.target("/liar", "1-2"), bench.target("/odd", "1-3", prior=odd)
        )
        heads = {head.split(b" ")[1]: head.decode() for head in bench.server.asked}
        assert 'If-None-Match: W/"a\\"b,c-gzip"\r\n' in heads[b"/same"]
        assert "If-Modified-Since: Thu, 12 Dec 2019 21:00:57 +0100\r\n" in heads[b"/same"]
        assert "If-None-Match" not in heads[b"/odd"] and "If-Modified-Since: 0\r\n" in heads[b"/odd"]
        assert found["1-1"]["verdict"] == "not_modified" and found["1-1"]["digest"] == "sha1:X"
        assert found["1-2"]["verdict"] == "malformed"

    run(tmp_path, test, answers)


ROBOTS = b"User-agent: crawltool\nDisallow: /x\nCrawl-delay: 2\nSitemap: http://a.test/s.xml\nUser-agent: *\nDisallow: /\n"


def test_robots_come_parsed_with_how_long_they_hold(tmp_path: Path) -> None:
    packed = gzip.compress(ROBOTS)
    answers = {
        "/robots.txt": http(ROBOTS, "200 OK", "Content-Type: text/plain", "Cache-Control: max-age=600"),
        "/gz": http(packed, "200 OK", "Content-Encoding: gzip"),
        "/br": http(b"\x01\x02", "200 OK", "Content-Encoding: br"),
        "/none": http(b"gone", "404 Not Found", "Cache-Control: max-age=60"),
        "/sick": http(b"", "500 Oops"),
        "/cut": http(ROBOTS, "200 OK", length=9999),
        "/big": http(ROBOTS + b"#" * limits.ROBOTS_BYTES_MAX),
    }

    async def test(bench: Bench) -> None:
        found = await bench.fetch(*(bench.target(path, path, kind="robots") for path in answers))
        rules = [["disallow", "/x", 2]]
        full = found["/robots.txt"]["robots"]
        assert full == {"rules": rules, "crawl_delay_s": 2.0, "sitemaps": ["http://a.test/s.xml"], "max_age_s": 600.0}
        assert found["/gz"]["robots"]["rules"] == rules
        assert found["/none"]["robots"] == {"max_age_s": 60.0} and found["/none"]["verdict"] == "client_error"
        assert (found["/br"]["verdict"], found["/sick"]["verdict"]) == ("malformed", "server_error")
        assert found["/cut"]["verdict"] == "unreachable" and found["/cut"]["truncated"] == "disconnect"
        assert found["/big"]["robots"]["cut"] and found["/big"]["robots"]["rules"] == rules
        assert all("robots" not in found[path] for path in ("/br", "/sick", "/cut"))
        assert all("warc" in one for one in found.values()), "robots are archived too"

    run(tmp_path, test, answers)


def test_redirects_are_told_not_followed(tmp_path: Path) -> None:
    locations = {
        "/rel": "../y?z#f",
        "/utf8": "/ü".encode().decode("latin-1"),
        "/port": "https://:443/",
        "/file": "file:///etc/hostname",
        "/data": "data:text/html,x",
        "/bad": "http://[::1",
        "/empty": "",
    }
    answers = {path: http(b"", "302 Found", f"Location: {to}") for path, to in locations.items()}
    answers["/missing"] = http(b"", "302 Found")

    async def test(bench: Bench) -> None:
        found = await bench.fetch(*(bench.target(path, path) for path in answers))
        base = f"http://127.0.0.1:{bench.port}"
        assert found["/rel"]["redirect"] == f"{base}/y?z"
        assert found["/utf8"]["redirect"] == f"{base}/%C3%BC"
        assert found["/empty"]["redirect"] == f"{base}/empty"
        for path in ("/port", "/file", "/data", "/bad", "/missing"):
            assert found[path]["verdict"] == "redirect" and "redirect" not in found[path]
            assert found[path]["reason"].startswith("bad_redirect: ")
        assert len(bench.server.asked) == len(answers)

    run(tmp_path, test, answers)


def test_a_busy_host_says_for_how_long(tmp_path: Path) -> None:
    answers = {
        "/s": http(b"", "429 Slow", "Retry-After: 30"),
        "/junk": http(b"", "503 Busy", "Retry-After: -5"),
        "/date": http(b"", "503 Busy", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"),
    }

    async def test(bench: Bench) -> None:
        found = await bench.fetch(*(bench.target(path, path) for path in answers))
        assert {one["verdict"] for one in found.values()} == {"busy"}
        assert [found[path].get("retry_after_s") for path in answers] == [30.0, None, 0.0]

    run(tmp_path, test, answers)


def test_an_unwanted_type_keeps_its_first_bytes(tmp_path: Path) -> None:
    answers = {
        "/v": http(b"v" * 100_000, "200 OK", "Content-Type: video/mp4"),
        "/nope": http(b"v" * 100_000, "404 Not Found", "Content-Type: image/png"),
        "/j": http(b"{}", "200 OK", "Content-Type: application/ld+json; x=y"),
    }

    async def test(bench: Bench) -> None:
        found = await bench.fetch(*(bench.target(path, path) for path in answers))
        video = found["/v"]
        assert (video["verdict"], video["reason"], video["truncated"]) == ("skipped_type", "video/mp4", "length")
        assert video["body_bytes"] <= limits.SNIFF_BYTES and video["warc"]
        assert found["/nope"]["verdict"] == "client_error" and found["/nope"]["body_bytes"] <= limits.SNIFF_BYTES
        assert found["/j"]["verdict"] == "ok"

    run(tmp_path, test, answers)


def test_a_body_over_the_limit_is_cut_and_flagged(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        found = await bench.fetch(bench.target("/big"))
        assert found["1-1"]["verdict"] == "too_large" and found["1-1"]["truncated"] == "length"
        assert found["1-1"]["body_bytes"] == 1000

    run(tmp_path, test, {"/big": http(b"x" * 5000)}, max_body_bytes=1000)


def test_a_host_that_is_not_there_is_data(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        found = await bench.fetch(
            bench.target("http://127.0.0.1:1/", "1-1"),
            bench.target("/loop", "1-2", typed=False),
            bench.target("ftp://x.test/", "1-3"),
            bench.target("http://x.test/", "1-4", address=None),
            bench.target("http://x.test/", "1-5", address="not an address"),
        )
        assert [found[f"1-{number}"]["verdict"] for number in range(1, 6)] == [
            "unreachable", "blocked_address", "malformed", "returned", "returned",
        ]  # fmt: skip
        assert "fetched_at" in found["1-1"] and not any("fetched_at" in found[f"1-{number}"] for number in range(2, 6))
        assert "warc" not in found["1-1"]

    run(tmp_path, test)


def test_kind_address_resolves_judges_and_contacts_nobody(tmp_path: Path) -> None:
    names = {"two.test": ["127.0.0.1", "192.0.2.7", "8.8.8.8"], "in.test": ["10.0.0.1"]}

    def look(host: str) -> list[str]:
        import socket

        if host == "full.test":
            raise OSError(24, "Too many open files")
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME if host == "no.test" else socket.EAI_AGAIN, "?")
        return names[host]

    async def test(bench: Bench) -> None:
        hosts = ["two.test", "in.test", "no.test", "later.test", "full.test", "[::1]:8080"]
        lines = [bench.target(f"http://{host}/", host, kind="address", address=None, typed=host[0] in "[") for host in hosts]
        found = await bench.fetch(*lines)
        assert found["two.test"]["verdict"] == "ok" and found["two.test"]["addresses"] == ["8.8.8.8"]
        assert 0 < found["two.test"]["ttl_s"] <= limits.ADDRESS_TTL_S
        assert found["in.test"]["verdict"] == "blocked_address" and "private" in found["in.test"]["reason"]
        assert found["no.test"]["reason"].startswith("no_such_name")
        assert found["later.test"]["reason"].startswith("temporary")
        assert (found["full.test"]["verdict"], found["full.test"]["reason"]) == ("returned", "this machine: Too many open files")
        assert found["[::1]:8080"]["addresses"] == ["::1"]
        assert bench.server.asked == [] and not any("fetched_at" in one for one in found.values())

    run(tmp_path, test, resolver=Resolver(look=look))


def test_a_target_too_late_for_its_lease_is_returned_unasked(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        now = bench.stage().clock.now()
        found = await bench.fetch(
            bench.target("/late", "1-1", expires_at=now + 29.0), bench.target("/good", "1-2", expires_at=now + 60.0)
        )
        assert found["1-1"]["verdict"] == "returned" and "fetched_at" not in found["1-1"]
        assert bench.server.paths == ["/good"]

    run(tmp_path, test, timeout_total_s=30.0)


def test_a_lease_of_another_run_is_returned_unasked(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        (bench.directory / LOCK_NAME).write_bytes(Clock(123.0).note(7, 1))
        bench.source.give(bench.target("/old", "6-9"), bench.target("/now", "7-1"))
        stage = bench.stage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.run)
            while len(bench.sink.lines) < 2:
                bench.sink.news = trio.Event()
                await bench.sink.news.wait()
            # The frontier is started again: its new leases are good, those of the run before no longer.
            (bench.directory / LOCK_NAME).write_bytes(Clock(123.0).note(8, 1))
            bench.source.give(bench.target("/new", "8-1"), bench.target("/stale", "7-2"))
            bench.source.close()
        found = bench.sink.outcomes()
        assert {lease: one["verdict"] for lease, one in found.items()} == {
            "6-9": "returned",
            "7-1": "ok",
            "8-1": "ok",
            "7-2": "returned",
        }
        assert sorted(bench.server.paths) == ["/new", "/now"]
        assert stage.clock.offset == 123.0, "all processes of a crawl share the frontier's clock"

    run(tmp_path, test)


def test_fetch_lock_is_shared_and_held_from_the_first_target_to_the_end(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        lock = bench.directory / FETCH_LOCK
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.stage().run)
            bench.source.give(b'{"type":"candidate","url":"http://x.test/"}\n')
            await bench.sink.news.wait()
            atomic.lock(lock).release()
            bench.source.give(bench.target("/slow"))
            await bench.server.has_slow.wait()
            atomic.lock(lock, shared=True).release()
            with pytest.raises(CannotHold):
                atomic.lock(lock)
            bench.server.gate.set()
            bench.source.close()
        atomic.lock(lock).release()

    run(tmp_path, test)


def test_a_drain_finishes_what_is_in_the_air_and_returns_the_rest(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        stage = bench.stage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.run)
            bench.source.give(bench.target("/slow", "1-1"), bench.target("/b", "1-2"))
            await bench.server.has_slow.wait()
            bench.drain.begin(signal.SIGTERM)
            await bench.drain.stopping.wait()
            bench.source.give(bench.target("/c", "1-3"))
            while len(bench.sink.lines) < 2:
                bench.sink.news = trio.Event()
                await bench.sink.news.wait()
            bench.server.gate.set()
            bench.source.close()
        found = bench.sink.outcomes()
        assert [found[f"1-{number}"]["verdict"] for number in (1, 2, 3)] == ["ok", "returned", "returned"]
        assert bench.server.paths == ["/slow"] and bench.source.stopped

    with pytest.raises(EndedBySignal):
        run(tmp_path, test, concurrency=1)


def test_an_exchange_cut_off_at_the_end_of_grace_comes_back_with_its_times(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        stage = bench.stage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.run)
            bench.source.give(bench.target("/slow", "1-1"), bench.target("/fast", "1-2"))
            await bench.server.has_slow.wait()
            bench.drain.begin(signal.SIGTERM)  # and the input never ends
        found = bench.sink.outcomes()
        assert found["1-1"]["verdict"] == "returned"
        assert found["1-1"]["elapsed_s"] > 0.05 and found["1-1"]["fetched_at"] > 0
        assert found["1-2"]["verdict"] == "ok"

    with pytest.raises(EndedBySignal):
        run(tmp_path, test, grace_s=0.1)


def test_when_the_reader_has_gone_the_archive_is_finished_and_nothing_more_is_read(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        stage = bench.stage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.run)
            bench.source.give(bench.target("/slow", "1-1"))
            await bench.server.has_slow.wait()
            bench.sink.broken = ReaderGone()
            bench.source.give(bench.target("/quick", "1-2"))
            await bench.drain.stopping.wait()
            bench.server.gate.set()
        bench.archive.close()
        found = [one for path in (bench.directory / "warc").glob("*.gz") for one in warcread.records(path)]
        urls = {one.record.headers.get("warc-target-uri") for one in found if one.record is not None} - {None}
        assert {str(url).partition(str(bench.port))[2] for url in urls} == {"/slow", "/quick"}

    with pytest.raises(ReaderGone):
        run(tmp_path, test)
