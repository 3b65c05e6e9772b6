"""The stages joined by spools: two fetch processes see one politeness, and one that dies takes nothing along."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.e2e.crawls import COMMAND, CONTACT, Crawl, environment, pages_asked, tool, wait_for
from tests.e2e.reference import reach
from tests.e2e.test_politeness import check
from tests.e2e.test_whole_site import may
from tests.web import Web

# Short leases: a target that died with its fetch comes back while the test waits.
POLICY = ["--timeout-total", "2", "--lease", "6", "--concurrency", "8", "--room", "64"]


@contextmanager
def stages(home: Path, fetches: int = 2) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start one frontier, some fetches, a parse and a dedup, joined by spools, and kill what is left at the end."""
    wiring = {"frontier": ("back", "targets"), "parse": ("outcomes", "parsed"), "dedup": ("parsed", "back")}
    wiring |= {f"fetch{number}": ("targets", "outcomes") for number in range(fetches)}
    for place in {place for pair in wiring.values() for place in pair}:
        (home / place).mkdir(exist_ok=True)
    running = {}
    try:
        for name, (source, sink) in wiring.items():
            words = [
                *COMMAND,
                name.rstrip("0123456789"),
                "-C",
                str(home / "c"),
                "-i",
                f"spool:{home / source}",
                "-o",
                f"spool:{home / sink}",
            ]
            words += ["--until-idle"] if name == "frontier" else []
            with (home / f"{name}.err").open("a") as err:
                running[name] = subprocess.Popen(words, env=environment(home), stderr=err, text=True, start_new_session=True)
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def prepare(home: Path, *seeds: str, policy: list[str]) -> Crawl:
    """Make the crawl directory, the spools and the seeds."""
    tool(home, "init", "-C", str(home / "c"), *CONTACT, *policy)
    tool(home, "seed", *seeds, "-o", f"spool:{home / 'c' / 'inbox'}")
    return Crawl(home, name="c")


def ended(home: Path, running: dict[str, subprocess.Popen[str]], timeout_s: float = 60) -> dict[str, int]:
    """Wait until all have ended, and give their codes."""
    _, alive = psutil.wait_procs([psutil.Process(p.pid) for p in running.values() if p.poll() is None], timeout=timeout_s)
    words = "\n".join((home / f"{name}.err").read_text()[-800:] for name in running)
    assert not alive, f"still running: {[n for n, p in running.items() if p.poll() is None]}\n{words}"
    return {name: process.wait() for name, process in running.items()}


def test_two_fetches_on_one_spool_are_as_polite_as_one(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "plain pages=6", "b": "plain pages=6"}) as web:
        expected = set(reach([web.url("a")], may)) | set(reach([web.url("b")], may))
        web.forget()
        prepare(tmp_path, web.url("a"), web.url("b"), policy=[*POLICY, "--delay", "0.5", "--delay-factor", "0"])
        with stages(tmp_path) as running:
            codes = ended(tmp_path, running)
        assert set(codes.values()) == {0}, codes
        check(web)
        assert set(pages_asked(web.log())) == expected
        assert max(pages_asked(web.log()).values()) == 1


def test_a_fetch_that_dies_holding_targets_costs_time_only(tmp_path: Path) -> None:
    with Web(tmp_path, {"a": "slow wait_s=0.4 pages=14", "b": "slow wait_s=0.4 pages=14"}) as web:
        expected = set(reach([web.url("a"), web.url("b")]))
        web.forget()
        crawl = prepare(tmp_path, web.url("a"), web.url("b"), policy=[*POLICY, "--delay", "0.2", "--delay-factor", "0"])
        with stages(tmp_path) as running:
            wait_for(lambda: len(web.log()) > 10, what="requests")
            running["fetch0"].kill()
            running.pop("fetch0").wait()
            codes = ended(tmp_path, running)
        assert set(codes.values()) == {0}, codes
        asked = pages_asked(web.log())
        assert set(asked) == expected
        assert sum(asked.values()) - len(asked) <= 64
        check(web, delay_s=0.2, ip_delay_s=0.04)
        tool(tmp_path, "fetch", "-C", str(crawl.dir), input="")  # the next fetch mends what the dead one left open
        crawl.check_warcs()
