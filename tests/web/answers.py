"""What a host may do with a request: answer it, or follow a script of bytes, waits and hang-ups.

A behaviour is a function that gets its `Site` (and its settings) once and returns the handler of requests. The
handler returns an Answer, a Script, or None for a plain 404. Everything is a function of settings, request and the
requests before it: no randomness, no clock but `Site.age_s`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import parse_qs, unquote

REASONS = {
    200: "OK", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
    304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 410: "Gone", 429: "Too Many Requests", 500: "Internal Server Error",
    503: "Service Unavailable",
}  # fmt: skip


class End(Enum):
    """How a script may end, other than by keeping the connection."""

    CLOSE = "close"  # FIN
    RESET = "reset"  # RST
    SILENCE = "silence"  # hold the connection and say nothing more


@dataclass
class Script:
    """Steps: bytes are sent, numbers are seconds to wait, an End ends the connection. May be endless."""

    steps: Iterable[bytes | float | End]


@dataclass
class Answer:
    """One well-formed HTTP answer, with the few liberties that need no script."""

    body: bytes = b""
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    content_type: str | None = "text/html; charset=utf-8"
    wait_s: float = 0.0  # before the first byte
    hang_up: bool = False  # close afterwards, without having said so
    idle_close_s: float | None = None  # close when nothing was asked for so long

    def head(self) -> bytes:
        """Give the header block as sent."""
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Odd')}"]
        if self.content_type is not None:
            lines.append(f"Content-Type: {self.content_type}")
        if self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body)}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@dataclass
class Request:
    """One request as the server read it."""

    method: str
    target: str  # as on the wire
    headers: dict[str, str]  # names in lower case; the last of two wins
    connection: int  # number of the connection, over the whole web
    number: int  # number of the request on that connection, from 1
    nth: int  # how often this host was asked for this target, from 1

    @property
    def path(self) -> str:
        """The path of the target, escapes undone."""
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> dict[str, str]:
        """The query of the target, the last of two values."""
        return {name: values[-1] for name, values in parse_qs(self.target.partition("?")[2]).items()}

    @property
    def host(self) -> str:
        """The Host header without its port."""
        return self.headers.get("host", "").partition(":")[0]


@dataclass
class Site:
    """One host of the web, as its behaviour sees it."""

    name: str
    address: str
    port: int
    origins: dict[str, str]  # name of every host of this web -> http://ADDRESS:PORT
    asked: int = 0  # requests so far
    started: float = field(default_factory=time.monotonic)

    @property
    def origin(self) -> str:
        """http://ADDRESS:PORT of this host."""
        return f"http://{self.address}:{self.port}"

    @property
    def age_s(self) -> float:
        """Seconds since the web was started."""
        return time.monotonic() - self.started

    def elsewhere(self, name: str, path: str = "/") -> str:
        """Give a URL on another host of this web; on the own host when there is no such host."""
        return self.origins.get(name, self.origin) + path


Handler = Callable[[Request], "Answer | Script | None"]
Factory = Callable[..., Handler]
BEHAVIOURS: dict[str, Factory] = {}


def behaviour(factory: Factory) -> Factory:
    """Register a behaviour under its function's name."""
    BEHAVIOURS[factory.__name__] = factory
    return factory


def make(site: Site, words: str) -> Handler:
    """Make the handler for a row such as `plain pages=20`. Raises SystemExit with the known names or settings."""
    name, *settings = words.split()
    if name not in BEHAVIOURS:
        raise SystemExit(f"tests.web: no behaviour {name!r}; known: {' '.join(sorted(BEHAVIOURS))}")
    known = {p.name: p.default for p in inspect.signature(BEHAVIOURS[name]).parameters.values() if p.name != "site"}
    chosen = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in known:
            raise SystemExit(f"tests.web: {name} has no setting {key!r}; known: {' '.join(known)}")
        chosen[key] = type(known[key])(value)
    return BEHAVIOURS[name](site, **chosen)


def redirect(location: str, status: int = 302) -> Answer:
    """Answer with a Location."""
    return Answer(b"moved\n", status, [("Location", location)], "text/plain")


def text(body: str | bytes, content_type: str = "text/plain; charset=utf-8", **more: object) -> Answer:
    """Answer with plain text, such as a robots.txt."""
    return Answer(body if isinstance(body, bytes) else body.encode(), content_type=content_type, **more)  # type: ignore[arg-type]
