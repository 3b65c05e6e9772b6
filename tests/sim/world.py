"""A simulated web: seeded hosts, pages, rules, moods and latencies, a pure function of its seed and of the time.

Hosts differ in mood; `SURE` are those on which every allowed page must be fetched in the end, whatever the fetchers lose.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from crawltool import records

SURE = ("well", "busy_first", "flaky", "robots_moved", "robots_crossed", "half_down", "moving", "robots_once", "no_robots")
UNSURE = (
    *("down", "robots_503", "no_name", "robots_nowhere", "robots_loop", "robots_bad", "storm", "changing", "slow", "blocked"),
    *("crowd", "crowd", "crowd", "dying", "swinging"),
)
RULES_CHANGE_AT_S = 30.0  # after the start, on hosts of mood `changing`
CROWD_IP = "10.0.2.1"  # all hosts of mood `crowd` are here, and it is too much for the machine
CROWDED_S, CALM_S = 40.0, 60.0  # for so long it complains, then not
DEAD_S, ALIVE_S = 20.0, 40.0  # hosts of mood `dying`


@dataclass
class SimHost:
    """One host: its pages link to each other; some are disallowed, moved, broken or elsewhere."""

    name: str
    ips: list[str]
    pages: int
    mood: str = "well"
    crawl_delay_s: float | None = None
    latency_s: float = 0.1
    robots_at: str | None = None  # where its rules were moved to

    @property
    def authority(self) -> str:
        return f"http://{self.name}:80"


@dataclass
class World:
    """The whole web of one seed."""

    seed: int
    hosts: dict[str, SimHost] = field(default_factory=dict)

    @classmethod
    def make(cls, seed: int, *, sure: bool = False) -> World:
        rng = random.Random(seed)
        world = cls(seed)
        count = rng.choice([1, 2, 5, 12, 12])
        for n in range(count):
            name = f"h{n}.test" if rng.random() < 0.5 or not n else rng.choice([f"h{n}.d{n % 2}.test", f"10.9.0.{n}"])
            moods = ["well"] * 4 + list(SURE) + ([] if sure else [*UNSURE, "storm", "storm"])
            mood = rng.choice(moods) if n else "well"
            ips = [f"10.0.0.{rng.randrange(max(count // 2, 1))}", f"10.0.1.{n}"]
            if mood == "crowd":
                ips[0] = CROWD_IP
            if name[0] == "1":
                ips = [name]
                mood = "well" if mood in ("half_down", "moving", "no_name", "crowd") else mood
            pages, delay = rng.choice([1, 3, 10, 40]), rng.choice([None, None, None, 3.0])
            world.hosts[name] = SimHost(name, ips, pages, mood, delay, rng.choice([0.01, 0.1, 2.0]))
        names = list(world.hosts)
        for n, host in enumerate(world.hosts.values()):
            crossed = names[(n + 1) % count]
            host.robots_at = {
                "robots_moved": "http://h0.test/robots.txt",
                "robots_crossed": f"http://{crossed}/robots.txt",
                "robots_nowhere": "http://nowhere.test/robots.txt",
                "robots_loop": f"http://{host.name}/robots.txt",
            }.get(host.mood)
        return world

    def url(self, host: SimHost, page: int) -> str:
        return f"http://{host.name}/{'private/' if page % 7 == 5 else ''}p{page}"

    def moved(self, host: SimHost, page: int) -> str | None:
        """Where a page redirects to."""
        return self.url(host, page + 1) if page % 9 == 4 and page + 1 < host.pages else None

    def links(self, host: SimHost, page: int) -> list[str]:
        rng = random.Random(f"{self.seed} {host.name} {page}")
        found = [self.url(host, (page * 2 + k) % host.pages) for k in (1, 2)] + [self.url(host, (page + 1) % host.pages)]
        other = self.hosts[rng.choice(list(self.hosts))]
        return [*found, self.url(other, rng.randrange(other.pages))]

    def found_on(self, url: str) -> list[str]:
        """What an answer to a page's URL leads to."""
        host, page = self.place(url)
        moved = self.moved(host, page)
        return self.links(host, page) if moved is None else [moved]

    def place(self, url: str) -> tuple[SimHost, int]:
        name, _, path = url[7:].partition("/")
        return self.hosts[name], int(path.rsplit("p", 1)[1])

    def reachable(self) -> set[str]:
        """Every page that a crawl must fetch: allowed, on sure hosts, led to by such pages."""
        first = self.url(self.hosts["h0.test"], 0)
        seen, todo = {first}, [first]
        while todo:
            for link in self.found_on(todo.pop()):
                if link not in seen and "/private/" not in link and self.is_sure(self.place(link)[0]):
                    seen.add(link)
                    todo.append(link)
        return seen

    def is_sure(self, host: SimHost) -> bool:
        """Tell whether all allowed pages of a host are fetched in the end; its rules may lie at another host."""
        other = self.hosts.get(host.robots_at.split("/")[2]) if host.robots_at else host
        return host.mood in SURE and other is not None and other.mood in SURE

    # --- answers ---

    def rules(self, host: SimHost, age_s: float) -> list[tuple[str, str, int]]:
        """A host's rules, so many seconds after the start."""
        if host.mood == "no_robots":
            return []
        late = [("disallow", "/p2", 3)] if host.mood == "changing" and age_s > RULES_CHANGE_AT_S else []
        return [("disallow", "/private/", 2), *late]

    def addresses(self, host: SimHost, age_s: float) -> list[str]:
        if host.mood == "moving":
            return [host.ips[int(age_s / 40) % 2]]
        return host.ips if host.mood == "half_down" else host.ips[:1]

    def latency(self, host: SimHost, age_s: float) -> float:
        """How long an exchange takes that begins now."""
        is_slow = host.mood == "swinging" and age_s % 60.0 < 30.0
        return min(host.latency_s * 10, 9.0) if is_slow else host.latency_s  # fetchers wait for 10 s at most

    def answer(self, target: records.Target, age_s: float, tries: int) -> dict[str, object]:
        """The fields of the outcome of an exchange that begins now; `tries` counts those of this URL, with this one."""
        host = self.hosts.get(target.url.split("/")[2])
        if host is None or host.mood == "down" or (host.mood == "half_down" and target.address == host.ips[0]):
            return {"verdict": "unreachable", "reason": "refused"}
        if host.mood == "blocked":
            return {"verdict": "blocked_address"}
        if host.mood == "dying" and age_s % (DEAD_S + ALIVE_S) < DEAD_S:
            return {"verdict": "unreachable", "reason": "refused"} if tries % 2 else {"verdict": "server_error", "status": 502}
        if host.mood == "crowd" and target.address == CROWD_IP and age_s % (CROWDED_S + CALM_S) < CROWDED_S:
            return {"verdict": "busy", "status": 503, "retry_after_s": 7.0 if (tries + len(target.url)) % 2 else None}
        if host.mood == "storm" and (tries + len(target.url)) % 3:
            return {"verdict": "busy", "status": 429, "retry_after_s": 4.0 if tries % 2 else None}
        if target.kind == "robots":
            return self._robots_answer(target, host, age_s, tries)
        _, page = self.place(target.url)
        if host.mood == "busy_first" and tries == 1 and page % 10 == 3:
            return {"verdict": "busy", "status": 429, "retry_after_s": 2.0}
        if host.mood == "flaky" and tries < 3 and page % 10 == 2:
            return {"verdict": "server_error", "status": 500}
        if host.mood == "slow" and page % 2:
            return {"verdict": "timeout", "reason": "first_byte"}
        moved = self.moved(host, page)
        if moved is not None:
            return {"verdict": "redirect", "status": 301, "redirect": moved}
        links = [records.Link(url=link) for link in self.links(host, page)]
        return {"verdict": "ok", "status": 200, "body_bytes": 100, "links": links}

    def _robots_answer(self, target: records.Target, host: SimHost, age_s: float, tries: int) -> dict[str, object]:
        if host.mood == "robots_503" or (host.mood == "robots_once" and tries == 1):
            return {"verdict": "server_error" if tries % 2 else "busy", "status": 500 if tries % 2 else 503}
        if host.mood == "robots_bad":
            return {"verdict": "redirect", "status": 301, "reason": "bad_redirect: no Location"}
        if host.robots_at is not None and (target.hops == 0 or host.mood == "robots_loop"):
            return {"verdict": "redirect", "status": 301, "redirect": host.robots_at}
        if host.mood == "no_robots":
            return {"verdict": "client_error", "status": 404}
        rules = records.Robots(rules=self.rules(host, age_s), crawl_delay_s=host.crawl_delay_s if target.hops == 0 else None)
        return {"verdict": "ok", "status": 200, "robots": rules}
