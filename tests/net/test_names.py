"""A slow name server with silent names, the system's getaddrinfo and a real fetch: the small form of tests/bench/dns."""

from __future__ import annotations

from pathlib import Path

from tests.bench.dns import Load, more_than_once, run
from tests.net.privatenet import in_private_net


def test_names_are_looked_up_once_in_few_threads_and_silent_ones_harm_nobody(tmp_path: Path) -> None:
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:2\n")
    load = Load(2000, silent=20)

    def test() -> None:
        found = run(load, tmp_path)
        assert found.verdicts == {"address ok": 2 * 1900, "page ok": 1900}, "a healthy name failed"
        assert more_than_once(load, found.asked) == 0
        assert found.threads <= 100
        assert found.rate > 100, "look-ups one after the other would give 20 a second"

    in_private_net(test, conf)
