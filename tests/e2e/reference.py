"""What can be reached: a plain crawler of its own, in the standard library, to hold crawltool against."""

from __future__ import annotations

import http.client
from collections import deque
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("a", "area"):
            self.found += [value for name, value in attrs if name == "href" and value is not None]


def ask(url: str) -> tuple[int, dict[str, str], bytes]:
    """Ask for a URL once, following nothing."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=10)
    connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def reach(seeds: list[str], allowed: Callable[[str], bool] = lambda target: True, pages_max: int = 5000) -> dict[str, int]:
    """Give every URL on the hosts of the seeds (and what the seeds redirect to) that is reachable, with its status."""
    hosts = {urlsplit(seed).netloc for seed in seeds}
    known, todo = set(seeds), deque(seeds)
    statuses: dict[str, int] = {}

    def found(link: str, base: str) -> None:
        url = urldefrag(urljoin(base, link))[0]
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if base in seeds and statuses[base] // 100 == 3:
            hosts.add(parts.netloc)
        if parts.scheme == "http" and parts.netloc in hosts and url not in known and allowed(target):
            known.add(url)
            todo.append(url)

    while todo and len(statuses) < pages_max:
        url = todo.popleft()
        status, headers, body = ask(url)
        statuses[url] = status
        if status // 100 == 3 and "location" in headers:
            found(headers["location"], url)
        elif status == 200 and headers.get("content-type", "").startswith("text/html"):
            links = _Links()
            links.feed(body.decode("utf-8", "replace"))
            for link in links.found:
                found(link, url)
    return statuses
