"""Does fetching a host still find new URLs, and is one of its spaces without an end?

Called by core/frontier/turn once per page outcome, and for each line of stats.jsonl. It reports and blocks nothing. Memory is
bounded whatever hosts do: of small hosts only the rates of the latest are kept; at most HOSTS_MAX larger ones are watched, each
with at most SPACES_MAX spaces of 6 KB, and a place among them is given away only when its host has been idle. Nothing is
durable: after a restart the windows begin again; alarms that were raised before are given as `already`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import itemgetter

import msgspec

from crawltool.core.frontier.patterns import covers, pattern_of, prefixes, repeats
from crawltool.core.frontier.spaces import Fetched, Space

HOSTS_MAX = 2000  # watched; each may take 100 KB when it is hostile, and takes 10 KB as a rule
IDLE = 100_000  # fetches of other hosts after which a host loses its place
SMALL = 100  # pages of a host before it is watched: most hosts have fewer
SPACES_MAX = 16  # of a host, the most recently active
COVERED_MIN = 0.5  # of the samples: an earlier pattern that fits so many has said it all
ALARMED_HOSTS_MAX = 1000  # remembered, so that no alarm is raised twice
ALARMS_OF_A_HOST_MAX = 10
HOSTS_LISTED = 20
HOST_MEMORY = 0.99  # a page of a host weighs this much of the next: about the last 100 count
OVERALL_MEMORY = 0.999


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A space that looks endless: `/day/*` of calendar.test."""

    host: str
    pattern: str
    fetches: int  # of the space so far
    host_fetches: int
    new_per_page: float  # over the windows that led to the alarm
    why: list[str]

    def __str__(self) -> str:
        return (
            f"{self.host} {self.pattern} looks endless: {self.fetches:,} fetched, still {self.new_per_page:.1f} new URLs a page; "
            + ", ".join(self.why)
        )


class Rate:
    """New URLs per page and share of copies, the latest pages weighing most."""

    __slots__ = ("copies", "memory", "new", "weight")

    def __init__(self, memory: float) -> None:
        self.memory = memory
        self.weight = self.new = self.copies = 0.0

    def add(self, new: int, copy: bool) -> None:
        """Count one page."""
        self.weight = self.weight * self.memory + 1.0
        self.new = self.new * self.memory + new
        self.copies = self.copies * self.memory + copy

    def line(self) -> dict[str, float]:
        """Give the two rates as they stand in stats.jsonl."""
        weight = self.weight or 1.0
        return {"new_per_page": round(self.new / weight, 3), "copies": round(self.copies / weight, 3)}


class Spaces:
    """One host: its rates and, once it is watched, its spaces."""

    __slots__ = ("fetches", "rate", "recent", "seen", "spaces")

    def __init__(self) -> None:
        self.fetches = 0
        self.recent = 0  # since the last line of statistics
        self.seen = 0  # number of the latest fetch, counted over all hosts
        self.rate = Rate(HOST_MEMORY)
        self.spaces: OrderedDict[str, Space] = OrderedDict()

    def count(self, page: Fetched, seen: int) -> None:
        """Count one page in the host's rates."""
        self.fetches += 1
        self.recent += 1
        self.seen = seen
        self.rate.add(page.new, page.copy)

    def watch(self, page: Fetched) -> Iterator[tuple[Space, list[str]]]:
        """Count one page in the host's spaces, from the host as a whole down; give those that call for an alarm."""
        source = frozenset(prefixes(page.via)) if page.via is not None else frozenset()
        mine, repeated = list(prefixes(page.target)), repeats(page.target)
        for prefix in source.difference(mine):
            if (space := self.spaces.get(prefix)) is not None:
                space.window.left += 1
        for prefix in mine:
            space = self._space(prefix)
            why = space.add(page, prefix in source, repeated)
            if why is not None:
                yield space, why

    def _space(self, prefix: str) -> Space:
        space = self.spaces.get(prefix)
        if space is None:
            space = self.spaces[prefix] = Space()
            if len(self.spaces) > SPACES_MAX:
                self.spaces.popitem(last=False)
        self.spaces.move_to_end(prefix)
        return space


class Discovery:
    """The rates of all hosts, and the alarms of this crawl."""

    def __init__(self, already: Iterable[tuple[str, str]] = ()) -> None:
        self.small: OrderedDict[str, Spaces] = OrderedDict()
        self.watched: OrderedDict[str, Spaces] = OrderedDict()
        self.overall = Rate(OVERALL_MEMORY)
        self.fetches = 0
        self.unwatched = 0  # fetches of hosts without a place, since the last line
        self.raised: OrderedDict[str, list[str]] = OrderedDict()  # patterns of a host
        for name, pattern in already:
            self._remember(name, pattern)

    def add(self, page: Fetched) -> list[Alarm]:
        """Count one page outcome; the result is the alarms to report now, each (host, pattern) once."""
        self.fetches += 1
        self.overall.add(page.new, page.copy)
        host = self._place(page)
        if host is None:
            self.unwatched += 1
            return []
        host.count(page, self.fetches)
        if page.pages <= SMALL:
            return []
        alarms = [self._alarm(page, space, why) for space, why in host.watch(page)]
        return [alarm for alarm in alarms if alarm is not None]

    def _place(self, page: Fetched) -> Spaces | None:
        """Find or make the host's place; None when all are taken by hosts that are busy."""
        table = self.small if page.pages <= SMALL else self.watched
        host = table.get(page.host)
        if host is not None:
            table.move_to_end(page.host)
            return host
        if len(table) >= HOSTS_MAX:
            if table is self.watched and next(iter(table.values())).seen > self.fetches - IDLE:
                return None
            table.popitem(last=False)
        host = table[page.host] = self.small.pop(page.host) if page.host in self.small else Spaces()
        return host

    def _alarm(self, page: Fetched, space: Space, why: list[str]) -> Alarm | None:
        name = page.host
        said = self.raised.get(name, [])
        samples = list(space.samples)
        for pattern in said:
            if sum(covers(pattern, target) for target in samples) >= COVERED_MIN * len(samples):
                return None
        if len(said) >= ALARMS_OF_A_HOST_MAX:
            return None
        pattern = pattern_of(samples)
        self._remember(name, pattern)
        return Alarm(
            host=name,
            pattern=pattern,
            fetches=space.fetches,
            host_fetches=page.pages,
            new_per_page=round(space.new_per_page(), 2),
            why=why,
        )

    def _remember(self, name: str, pattern: str) -> None:
        self.raised.setdefault(name, []).append(pattern)
        if len(self.raised) > ALARMED_HOSTS_MAX:
            self.raised.popitem(last=False)

    def alarmed(self) -> list[tuple[str, str]]:
        """Give each (host, pattern) that was said, for the next run's `already`."""
        return [(name, pattern) for name, patterns in self.raised.items() for pattern in patterns]

    def line(self) -> dict[str, object]:
        """Give `discovery` of one line of stats.jsonl: overall, and the hosts that were fetched most since the last line."""
        both = [*self.small.items(), *self.watched.items()]
        active = [(host.recent, name, host) for name, host in both if host.recent]
        listed = {}
        for recent, name, host in nlargest(HOSTS_LISTED, active, key=itemgetter(0)):
            listed[name] = {"fetches": recent, **host.rate.line()}
        for _, _, host in active:
            host.recent = 0
        unwatched, self.unwatched = self.unwatched, 0
        alarms = sum(map(len, self.raised.values()))
        return {**self.overall.line(), "hosts": listed, "unwatched": unwatched, "alarms": alarms}
