"""Walk a host breadth first without a network, and tell core/frontier/discovery about each page as the frontier does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from crawltool.core import urls
from crawltool.core.frontier.discovery import Alarm, Discovery
from crawltool.core.frontier.spaces import Fetched
from crawltool.core.pages import html, links
from tests.web import table  # fills BEHAVIOURS
from tests.web.answers import Answer, Request, Site, make

Links = Callable[[str], Iterable[str]]  # target -> targets on the same host
URL_CHARS_MAX = 2048


def walk(host: str, links_of: Links, pages: int, root: str = "/") -> Iterator[Fetched]:
    """Give what the frontier knows of each page; a URL is queued once, by the page that named it first."""
    known: dict[str, str | None] = {root: None}
    queue = deque([root])
    for number in range(1, pages + 1):
        if not queue:
            return
        target = queue.popleft()
        found = list(dict.fromkeys(link for link in links_of(target) if len(link) <= URL_CHARS_MAX))
        new = [link for link in found if link not in known]
        known |= dict.fromkeys(new, target)
        queue.extend(new)
        yield Fetched(host, target, known[target], len(found), len(new), False, number)


def alarms(host: str, links_of: Links, pages: int, discovery: Discovery | None = None) -> list[Alarm]:
    """Give the alarms of a walk."""
    watching = discovery or Discovery()
    return [alarm for page in walk(host, links_of, pages) for alarm in watching.add(page)]


def of_the_web(words: str) -> Links:
    """Read a host of the test web, by its row in tests/web/table.py, with the crawler's own reader of links."""
    site = Site("site", "127.0.0.1", 80, {name: f"http://{name}.test" for name in table.ALL})
    handler = make(site, words)

    def links_of(target: str) -> Iterator[str]:
        site.asked += 1
        answer = handler(Request("GET", target, {}, 1, site.asked, 1))
        if not isinstance(answer, Answer) or answer.status != 200:
            return
        found = links.read(html.parse(answer.body.decode(errors="replace")), f"http://site.test{target}", nofollow=False)
        for link in found.links:
            url = urls.split(link.url)
            if link.follow and url is not None and url.host == "site.test":
                yield url.target

    return links_of
