"""core/frontier/discovery: endless spaces raise one alarm each, honest sites of any size none, and memory stays bounded."""

from __future__ import annotations

import datetime
import random
import tracemalloc
from bisect import bisect
from collections.abc import Iterable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.core.frontier import discovery, spaces
from crawltool.core.frontier.discovery import Discovery
from crawltool.core.frontier.patterns import covers, pattern_of, prefixes, repeats
from crawltool.core.frontier.spaces import Fetched
from tests.walks import Links, alarms, walk

TARGETS = st.text("/ab1?=&.*", max_size=60).map(lambda text: "/" + text)


def wiki(pages: int, per_page: int, menu: int) -> Links:
    """A wiki: popular pages are linked most, each page has a menu."""
    weights = list(accumulate(1 / (rank + 1) for rank in range(pages)))
    names = list(range(pages))
    random.Random(5).shuffle(names)

    def links_of(target: str) -> list[str]:
        dice = random.Random(target)
        drawn = [names[min(bisect(weights, dice.random() * weights[-1]), pages - 1)] for _ in range(per_page)]
        return [f"/wiki/Page_{n}" for n in (*range(menu), *drawn)]

    return links_of


def blog(lists: int, posts: int) -> Links:
    """A blog whose list pages are linked one after the other."""

    def links_of(target: str) -> Iterable[str]:
        section, _, number = target[1:].partition("/")
        if section != "page":
            return ["/", "/page/1"]
        n = int(number)
        return ["/", *(f"/post/{n * posts + k}-words" for k in range(posts)), *([f"/page/{n + 1}"] if n < lists else [])]

    return links_of


def newspaper(target: str) -> Iterable[str]:
    """Twenty years of days, each linked to the next and the last, with its articles."""
    first, last = datetime.date(2005, 1, 1), datetime.date(2025, 12, 31)
    if target == "/":
        return [f"/archive/{last}"]
    if not target.startswith("/archive/"):
        return ["/"]
    day = datetime.date.fromisoformat(target[9:])
    days = [day + datetime.timedelta(days=n) for n in (-1, 1)]
    return ["/", *(f"/archive/{d}" for d in days if first <= d <= last), *(f"/news/{day}/{n}" for n in range(15))]


def shop(target: str) -> Iterable[str]:
    """40,000 things in paged categories; things name others at random."""
    path, _, query = target.partition("?")
    if target == "/":
        return [f"/cat/c{n}" for n in range(50)]
    if path.startswith("/cat/"):
        n = int(query[5:] or 1)
        things = [f"/item/{path[5:]}-{n}-{k}" for k in range(20)]
        return ["/", *things, *([f"{path}?page={n + 1}"] if n < 40 else [])]
    dice = random.Random(target)
    return ["/", *(f"/item/c{dice.randrange(50)}-{dice.randrange(1, 41)}-{dice.randrange(20)}" for _ in range(8))]


def comic(strips: int) -> Links:
    """Strips that are linked to first, last, next and newest."""

    def links_of(target: str) -> Iterable[str]:
        n = int(target[1:] or strips)
        return ["/", *(f"/{k}" for k in (1, n - 1, n + 1) if 1 <= k <= strips)]

    return links_of


def relative(target: str) -> Iterable[str]:
    """Links without a leading slash, on a server that answers to anything."""
    folder = target.rpartition("/")[0]
    return ["/", f"{folder}/a/index.html", f"{folder}/b/index.html"]


def beside_a_menu(target: str) -> Iterable[str]:
    """A maze on pages with a menu of twenty."""
    menu = [f"/menu{n}" for n in range(20)]
    return menu if target.startswith("/menu") else [*menu, *(f"{'/m' if target == '/' else target}/{way}" for way in "abc")]


def pages_without_end(target: str) -> Iterable[str]:
    """A list whose last page names one more."""
    number = target.rpartition("page=")[2]
    return ["/", "/about", f"/list?page={int(number) + 1 if number.isdigit() else 1}"]


@pytest.mark.parametrize(
    ("links_of", "pattern"), [(relative, "/**"), (beside_a_menu, "/m/**"), (pages_without_end, "/list?page=*")]
)
def test_more_endless_spaces_raise_one_alarm_within_2000_fetches(links_of: Links, pattern: str) -> None:
    found = alarms("trap.test", links_of, 2000)
    assert [alarm.pattern for alarm in found] == [pattern]
    assert str(found[0]).startswith(f"trap.test {pattern} looks endless: ")


@pytest.mark.parametrize(
    "links_of",
    [
        wiki(300_000, 60, 20),
        wiki(300_000, 30, 0),
        wiki(100_000, 10, 5),
        blog(1000, 10),
        blog(3000, 1),
        newspaper,
        shop,
        comic(1500),
    ],
    ids=["wiki", "wiki without a menu", "wiki of few links", "blog", "blog of one post a page", "newspaper", "shop", "comic"],
)
def test_a_big_honest_site_raises_none(links_of: Links) -> None:
    assert alarms("honest.test", links_of, 4000) == []


def test_an_endless_space_inside_an_honest_site_is_named() -> None:
    def links_of(target: str) -> Iterable[str]:
        if target == "/":
            return ["/cal/2026/1", *(f"/docs/p{n}" for n in range(300))]
        if not target.startswith("/cal/"):
            return ["/"]
        year, month = map(int, target[5:].split("/"))
        return ["/", f"/cal/{year + month // 12}/{month % 12 + 1}"]

    assert [alarm.pattern for alarm in alarms("site.test", links_of, 2000)] == ["/cal/*/*"]


def test_copies_are_evidence() -> None:
    watching, found = Discovery(), []
    for page in walk("site.test", lambda t: ["/", f"/n/{int(t[3:] or 0) + 1}"], 1000):
        found += watching.add(page._replace(copy=True))
    assert found[0].why == ["100% of its pages are copies"] and found[0].host_fetches < 1000


def test_an_alarm_is_raised_once_even_after_a_restart() -> None:
    again = Discovery(already=[("trap.test", "/list?page=*")])
    assert alarms("trap.test", pages_without_end, 4000, again) == []
    assert len(alarms("other.test", pages_without_end, 4000, again)) == 1


def test_the_line_tells_rates_overall_and_of_the_busiest_hosts_since_the_last_line() -> None:
    watching = Discovery()
    for n in range(500):
        watching.add(Fetched("big.test", f"/{n}", "/", 10, 2, n % 2 == 0, n + 1))
    watching.add(Fetched("small.test", "/", None, 3, 0, False, 1))
    line = watching.line()
    hosts = line["hosts"]
    assert isinstance(hosts, dict) and list(hosts) == ["big.test", "small.test"]
    assert hosts["big.test"] == {"fetches": 500, "new_per_page": 2.0, "copies": pytest.approx(0.5, abs=0.01)}
    assert line["new_per_page"] == pytest.approx(2.0, abs=0.02)
    assert watching.line()["hosts"] == {}


def test_rates_are_told_before_the_first_page() -> None:
    assert Discovery().line() == {"new_per_page": 0.0, "copies": 0.0, "hosts": {}, "unwatched": 0, "alarms": 0}


def test_a_busy_host_keeps_its_place_and_an_idle_one_gives_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "HOSTS_MAX", 3)
    monkeypatch.setattr(discovery, "IDLE", 50)
    watching = Discovery()
    for name in "abcd":
        watching.add(Fetched(name, "/", None, 0, 0, False, 1000))
    assert list(watching.watched) == ["a", "b", "c"] and watching.line()["unwatched"] == 1
    for _ in range(60):
        watching.add(Fetched("a", "/", None, 0, 0, False, 1000))
    watching.add(Fetched("d", "/", None, 0, 0, False, 1000))
    assert list(watching.watched) == ["c", "a", "d"]


def test_a_hostile_host_takes_at_most_128_kib() -> None:
    """It fills every space with long URLs which all seem to find more."""
    padding = "x" * 300
    watching = Discovery()
    tracemalloc.start()
    try:
        for n in range(13_000):
            target = f"/{'abcdefghijklmn'[n % 14]}/{padding}{n}"
            watching.add(Fetched("h.test", target, target, 50, 50, False, 1000 + n))
        assert tracemalloc.get_traced_memory()[0] < 128 * 1024
    finally:
        tracemalloc.stop()
    assert 1 <= len(watching.raised["h.test"]) <= discovery.ALARMS_OF_A_HOST_MAX


def test_the_spaces_of_a_host_are_bounded() -> None:
    watching = Discovery()
    for n in range(5000):
        watching.add(Fetched("site.test", f"/{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}/x", None, 0, 0, False, 1000))
    assert len(watching.watched["site.test"].spaces) == discovery.SPACES_MAX


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/", [""]),
        ("/day/2026-09-01", ["", "/day"]),
        ("/a/7/b/c/d/e.html", ["", "/a", "/a/*", "/a/*/b"]),
        ("/list?f=1", ["", "/list?"]),
        (f"/{'x' * 40}/y", ["", "/*"]),
        ("", [""]),
    ],
)
def test_a_target_lies_in_its_first_directories(target: str, expected: list[str]) -> None:
    assert list(prefixes(target)) == expected


@pytest.mark.parametrize(
    ("targets", "pattern"),
    [
        (["/day/1", "/day/2", "/day/3"], "/day/*"),
        (["/a/1/x", "/b/2/x", "/c/3/x"], "/*/*/x"),
        (["/m/a", "/m/a/b/c", "/m/b/c", "/m/a/d/e/f"], "/m/**"),
        (["/s?b=1&a=2", "/s?a=3"], "/s?a=*&b=*"),
        ([f"/{c}?q=1" for c in "abc"], "/*?q=*"),
        (["/", "/"], "/"),
        ([], "/"),
    ],
)
def test_a_pattern_is_what_most_targets_share(targets: list[str], pattern: str) -> None:
    assert pattern_of(targets) == pattern


@given(st.lists(TARGETS, min_size=1, max_size=16))
def test_a_pattern_covers_a_target_it_was_made_of_and_any_target_can_be_read(targets: list[str]) -> None:
    pattern = pattern_of(targets)
    assert all(isinstance(covers(pattern, target), bool) and isinstance(repeats(target), bool) for target in targets)
    assert all(len(list(prefixes(target))) <= 4 for target in targets)
    assert covers(pattern_of(targets[:1]), targets[0]) or targets[0].partition("?")[0].count("/") > 6 or "?" in targets[0]


def test_a_repeat_is_a_directory_or_a_query_key_named_twice() -> None:
    assert repeats("/a/b/a/") and repeats("/l?f=1&g=2&f=3")
    assert not repeats("/a/b/c") and not repeats("/l?f=1&g=1") and not repeats("//")


def test_the_thresholds_leave_room_for_2000_fetches() -> None:
    assert discovery.SMALL + (spaces.LONG + 1) * spaces.WINDOW < 2000
