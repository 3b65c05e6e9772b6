"""How do the URLs a person names become candidates?

Reads arguments or a list (a file, stdin), publishes candidates, counts and shows what is no URL, and contacts no host: a
sitemap is a candidate, too. What a line means is core/seeds' to decide. Run by cli/seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from crawltool import records
from crawltool.core import seeds
from crawltool.stages.lines import Sink, Source, Trouble, open_sink, open_source

HOSTS_REMEMBERED = 100_000  # one sitemap candidate a host; a list of more hosts repeats some, which the frontier knows


@dataclass(frozen=True)
class Settings:
    """What the operator decided. input is None when only `urls` count."""

    urls: tuple[str, ...] = ()
    input: str | None = "-"
    output: str = "-"
    sitemaps: bool = False
    strict: bool = False


@dataclass
class Tally:
    """What was published."""

    seeds: int = 0
    sitemaps: int = 0


class Sower:
    """Turns lines into candidate lines."""

    def __init__(self, sink: Sink, trouble: Trouble, *, sitemaps: bool) -> None:
        self.sink, self.trouble, self.sitemaps = sink, trouble, sitemaps
        self.tally = Tally()
        self._hosts: set[str] = set()

    def sow(self, lines: list[bytes], origin: str, first: int) -> None:
        """Publish the candidates of lines that are numbered from `first`."""
        out: list[bytes] = []
        for number, line in enumerate(lines, first):
            seed = seeds.read(line, first=number == 1)
            if isinstance(seed, seeds.Seed):
                out += self._candidates(seed)
            elif seed is not None:
                self.trouble.refuse(origin, number, seed.reason, line)
        self.sink.publish(out)

    def _candidates(self, seed: seeds.Seed) -> Iterator[bytes]:
        self.tally.seeds += 1
        yield records.encode(seeds.candidate(seed))
        if self.sitemaps and seed.url.authority not in self._hosts:
            if len(self._hosts) >= HOSTS_REMEMBERED:
                self._hosts.clear()
            self._hosts.add(seed.url.authority)
            self.tally.sitemaps += 1
            yield records.encode(seeds.sitemap(seed))


def run(settings: Settings, say: Callable[[str], object] | None = None) -> tuple[Tally, Trouble]:
    """Sow all seeds. Raises BadRecord with strict, after the good ones are published; NoInput, Misuse, DiskTrouble."""
    trouble = Trouble(say)
    source: Source | None = open_source(settings.input, trouble=trouble, keep_blank=True) if settings.input else None
    sink = open_sink(settings.output, depth_max=None)  # an inbox must take what a person puts there
    sower = Sower(sink, trouble, sitemaps=settings.sitemaps)
    for position, url in enumerate(settings.urls, 1):
        sower.sow([url.encode(errors="surrogateescape")], "argument", position)
    for batch in source or ():
        sower.sow(batch.lines, batch.origin, batch.first)
        batch.done()
    sink.close()
    trouble.check(settings.strict)
    return sower.tally, trouble
