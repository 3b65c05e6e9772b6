"""Claims about net/dns.py. The system's resolver is replaced by a function; the clock of the cache is ours."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from crawltool import limits
from crawltool.errors import Misuse
from crawltool.net.dns import NoName, Pin, Resolver, read_pin


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with trio.fail_after(5):
            await main()

    trio.run(bounded)


class Names:
    """A resolver's table that counts what it was asked."""

    def __init__(self, **table: list[str] | Exception) -> None:
        self.table = table
        self.asked: list[str] = []

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        found = self.table[host]
        if isinstance(found, Exception):
            raise found
        return found


def test_an_answer_is_used_until_it_is_too_old() -> None:
    names, now = Names(site=["192.0.2.1", "192.0.2.2"]), [1000.0]

    async def main() -> None:
        resolver = Resolver(look=names, now=lambda: now[0])
        answer = await resolver.resolve("SITE.", 80)
        assert (answer.addresses, answer.ttl_s, answer.port) == (["192.0.2.1", "192.0.2.2"], limits.ADDRESS_TTL_S, 80)
        now[0] += 200
        assert (await resolver.resolve("site", 443)).ttl_s == limits.ADDRESS_TTL_S - 200
        assert names.asked == ["site"]
        now[0] += 101
        await resolver.resolve("site", 80)
        assert names.asked == ["site", "site"]

    run(main)


def test_failures_are_final_or_temporary() -> None:
    kinds: dict[str, tuple[Exception, str]] = {
        "none": (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "no_such_name"),
        "nodata": (socket.gaierror(socket.EAI_NODATA, "No address"), "no_such_name"),
        "again": (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "temporary"),
        "fail": (socket.gaierror(socket.EAI_FAIL, "Non-recoverable"), "temporary"),
        "label": (UnicodeEncodeError("ascii", "é", 0, 1, "ordinal"), "no_such_name"),
    }
    names = Names(**{host: error for host, (error, _) in kinds.items()})

    async def main() -> None:
        resolver = Resolver(look=names)
        for host, (_, reason) in kinds.items():
            for _ in range(2):  # remembered failures are raised again without asking
                with pytest.raises(NoName) as caught:
                    await resolver.resolve(host, 80)
                assert (caught.value.reason, caught.value.final) == (reason, reason == "no_such_name")
        assert names.asked == list(kinds)

    run(main)


def test_a_temporary_failure_is_soon_asked_again() -> None:
    names, now = Names(site=socket.gaierror(socket.EAI_AGAIN, "later")), [0.0]

    async def main() -> None:
        resolver = Resolver(look=names, now=lambda: now[0])
        with pytest.raises(NoName):
            await resolver.resolve("site", 80)
        now[0] += limits.ADDRESS_RETRY_S + 1
        names.table["site"] = ["192.0.2.1"]
        assert (await resolver.resolve("site", 80)).addresses == ["192.0.2.1"]

    run(main)


def test_one_name_is_looked_up_once_at_a_time_even_when_the_asker_gives_up() -> None:
    gate = threading.Event()
    asked = []

    def look(host: str) -> list[str]:
        asked.append(host)
        gate.wait(4)
        return ["192.0.2.1"]

    async def main() -> None:
        resolver = Resolver(look=look)
        answers = []

        async def ask() -> None:
            answers.append((await resolver.resolve("site", 80)).addresses)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert asked == ["site"]
        assert answers == [["192.0.2.1"]] * 5
        gate.clear()
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(0.02):
                await resolver.resolve("other", 80)
            nursery.start_soon(resolver.resolve, "other", 80)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert asked == ["site", "other", "other"]

    run(main)


def test_a_healthy_name_never_fails_because_dead_ones_hold_all_threads() -> None:
    gate = threading.Event()

    def look(host: str) -> list[str]:
        if host.startswith("dead"):
            gate.wait(4)
        return ["192.0.2.1"]

    async def main() -> None:
        resolver = Resolver(2, look=look, timeout_s=0.05)
        reasons, healthy = [], []

        async def ask_dead(number: int) -> None:
            with pytest.raises(NoName) as caught:
                await resolver.resolve(f"dead{number}", 80)
            reasons.append(caught.value.reason)

        async def ask_healthy() -> None:
            healthy.extend((await resolver.resolve("healthy", 80)).addresses)

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(ask_dead, number)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask_healthy)
            while len(reasons) < 2:
                await trio.sleep(0.01)
            await trio.sleep(0.1)  # longer than timeout_s: waiting for a thread is not the name's own time
            assert healthy == []
            gate.set()
        assert reasons == ["temporary"] * 2
        assert healthy == ["192.0.2.1"]

    run(main)


def test_a_look_up_given_up_before_it_had_a_thread_leaves_no_place_taken() -> None:
    gate = threading.Event()

    def look(host: str) -> list[str]:
        gate.wait(4)
        return ["192.0.2.1"]

    async def main() -> None:
        resolver = Resolver(1, look=look)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(resolver.resolve, "first", 80)
            await trio.testing.wait_all_tasks_blocked()
            for number in range(3):
                with trio.move_on_after(0.01):
                    await resolver.resolve(f"given-up-{number}", 80)
            gate.set()
        assert (await resolver.resolve("last", 80)).addresses == ["192.0.2.1"]

    run(main)


def test_a_machine_without_descriptors_says_nothing_of_a_name() -> None:
    async def main() -> None:
        tight = Names(system=OSError(24, "Too many open files"), errno0=OSError(0, "Error"))
        resolver = Resolver(1, look=tight)
        for host in ("system", "errno0"):
            with pytest.raises(NoName) as caught:
                await resolver.resolve(host, 80)
            assert caught.value.reason == "own_trouble"
        tight.table["system"] = ["192.0.2.9"]
        assert (await resolver.resolve("system", 80)).addresses == ["192.0.2.9"], "what says nothing is not remembered"

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        held: list[int] = []

        def full(host: str) -> list[str]:  # the C library says "no such name" when it cannot open nsswitch.conf
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.dup(0))
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        try:
            with pytest.raises(NoName) as caught:
                await Resolver(1, look=full).resolve("healthy", 80)
            assert caught.value.reason == "own_trouble"
        finally:
            for one in held:
                os.close(one)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    run(main)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADDRESSES_MAX", 2)
    names = Names(a=["192.0.2.1"], b=["192.0.2.2"], c=["192.0.2.3"])

    async def main() -> None:
        resolver = Resolver(look=names)
        for host in ("a", "b", "a", "c", "a", "b"):
            await resolver.resolve(host, 80)
        assert names.asked == ["a", "b", "c", "b"]

    run(main)


def test_loopback_names_and_literal_addresses_never_leave_the_machine() -> None:
    names = Names()

    async def main() -> None:
        resolver = Resolver(look=names)
        assert (await resolver.resolve("localhost", 80)).addresses == ["127.0.0.1", "::1"]
        assert (await resolver.resolve("a.LOCALHOST.", 80)).addresses == ["127.0.0.1", "::1"]
        assert (await resolver.resolve("192.0.2.7", 80)).addresses == ["192.0.2.7"]
        assert (await resolver.resolve("[2001:DB8::1]", 80)).addresses == ["2001:db8::1"]
        assert names.asked == []

    run(main)


def test_a_pin_answers_for_its_host_and_port() -> None:
    names = Names(site=["192.0.2.9"])

    async def main() -> None:
        resolver = Resolver(look=names, pins=[read_pin("Site:80:127.0.0.5:8080"), read_pin("*:443:[::1]")])
        answer = await resolver.resolve("site", 80)
        assert (answer.addresses, answer.port, resolver.connect_port("site", 80)) == (["127.0.0.5"], 8080, 8080)
        assert (await resolver.resolve("any", 443)).addresses == ["::1"]
        assert (await resolver.resolve("site", 81)).addresses == ["192.0.2.9"]
        assert resolver.connect_port("site", 81) == 81

    run(main)


@pytest.mark.parametrize(
    ("text", "pin"),
    [
        ("h.test:80:10.0.0.1", Pin("h.test", 80, "10.0.0.1", 80)),
        ("*:80:10.0.0.1:81", Pin("*", 80, "10.0.0.1", 81)),
        ("[::1]:80:[2001:db8::2]:81", Pin("::1", 80, "2001:db8::2", 81)),
    ],
)
def test_pins_are_read(text: str, pin: Pin) -> None:
    assert read_pin(text) == pin


@pytest.mark.parametrize(
    "text", ["", "h", "h:80", "h:80:", "h:x:1.2.3.4", "h:80:name", "h:0:1.2.3.4", ":80:1.2.3.4", "h:80:1.2.3.4:99999"]
)
def test_what_cannot_be_a_pin_is_misuse(text: str) -> None:
    with pytest.raises(Misuse):
        read_pin(text)


def test_the_systems_resolver_refuses_a_name_that_cannot_exist() -> None:
    async def main() -> None:
        for host in ("x" * 64 + ".invalid", "a..b", "bad name", "\udcff"):
            with pytest.raises(NoName):
                await Resolver().resolve(host, 80)

    run(main)
