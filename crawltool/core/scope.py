"""Does a URL belong to this crawl?

Scope grows by what is added (seeds, and where a seed redirects to) and is narrowed by patterns. Names are compared label by
label, never as string suffixes. Part of law 6: what is out gets a reason that is counted. The door of publicsuffixlist.
Called by the frontier for every link and by the cli to check patterns.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from publicsuffixlist import PublicSuffixList

from crawltool import limits
from crawltool.core.urls import Url
from crawltool.errors import BadPolicy

Kind = Literal["host", "prefix", "domain", "all"]
_USUAL_PORTS = (80, 443)


@dataclass(frozen=True)
class ScopeRules:
    """What the operator asked for: how far from what was added, and patterns that narrow it."""

    kind: Kind = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Scope:
    """What is in: entries by kind, then patterns.

    Entries are `host`, `host/dir/` (kind prefix) or a registrable domain (kind domain; `=host` where there is none above a
    public suffix). Each covers http on port 80 and https on port 443, or, written `host:port`, that port only.
    """

    def __init__(self, rules: ScopeRules) -> None:
        """Compile the patterns. Raises BadPolicy on one that cannot be read."""
        self._kind = rules.kind
        self._names: set[str] = set()
        self._prefixes: dict[str, tuple[str, ...]] = {}
        self._entries: dict[str, None] = {}
        self._include = [matcher(pattern) for pattern in rules.include]
        self._exclude = [matcher(pattern) for pattern in rules.exclude]
        self._covers: Callable[[Url], bool] = {
            "host": self._covers_host,
            "prefix": self._covers_prefix,
            "domain": self._covers_domain,
            "all": lambda url: True,
        }[rules.kind]

    def add(self, url: Url) -> str | None:
        """Take a URL's host, directory or domain in; gives the new entry, None when it was in already."""
        if self._covers(url):
            return None
        entry = self._entry(url)
        self.restore([entry])
        return entry

    def restore(self, entries: Iterable[str]) -> None:
        """Take entries in that add() or entries() gave."""
        for entry in entries:
            self._entries[entry] = None
            name, slash, path = entry.partition("/")
            if slash:
                self._prefixes[name] = (*self._prefixes.get(name, ()), slash + path)
            else:
                self._names.add(entry)

    def entries(self) -> list[str]:
        """List the entries in the order they came."""
        return list(self._entries)

    def judge(self, url: Url) -> str | None:
        """Give the reason why a URL is not part of the crawl, None when it is."""
        if not self._covers(url):
            return "out_of_scope"
        for matches in self._exclude:
            if matches(url):
                return "excluded"
        for matches in self._include:
            if matches(url):
                return None
        return "not_included" if self._include else None

    def _entry(self, url: Url) -> str:
        name = _name(url)
        if self._kind == "prefix":
            path = url.target.partition("?")[0]
            return name + path[: path.rindex("/") + 1]
        if self._kind == "domain":
            host, colon, port = _host_and_port(name)
            domain = registrable_domain(host)
            return f"{domain}{colon}{port}" if domain != host or _has_domain(host) else f"={name}"
        return name

    def _covers_host(self, url: Url) -> bool:
        return _name(url) in self._names

    def _covers_prefix(self, url: Url) -> bool:
        prefixes = self._prefixes.get(_name(url))
        return prefixes is not None and url.target.startswith(prefixes)

    def _covers_domain(self, url: Url) -> bool:
        name = _name(url)
        if name in self._names or f"={name}" in self._names:
            return True
        cut = name.find(".")
        while cut >= 0 and not name.startswith("["):
            if name[cut + 1 :] in self._names:
                return True
            cut = name.find(".", cut + 1)
        return False


def registrable_domain(host: str) -> str:
    """Give the name one label below the public suffix; the host itself where there is none (addresses, public suffixes)."""
    return _private_suffix(host) or host


def matcher(pattern: str) -> Callable[[Url], bool]:
    """Compile a pattern of --include or --exclude. Raises BadPolicy when it is broken or longer than its limit.

    `re:EXPRESSION` is searched in the whole URL. Anything else is a glob (`*`, `?`, `[...]`) that must match all of the URL,
    or, without `://`, all of its path and query.
    """
    if len(pattern) > limits.PATTERN_CHARS_MAX:
        raise BadPolicy(f"pattern is longer than {limits.PATTERN_CHARS_MAX} characters: {pattern[:60]}…")
    if pattern.startswith("re:"):
        try:
            search = re.compile(pattern[3:]).search
        except (re.error, RecursionError, OverflowError) as error:
            raise BadPolicy(f"pattern {pattern!r} is no regular expression: {error}") from None
        return lambda url: search(url.href) is not None
    match = re.compile(fnmatch.translate(pattern)).match  # its groups are atomic: no pattern makes it slow
    if "://" in pattern:
        return lambda url: match(url.href) is not None
    return lambda url: match(url.target) is not None


def _name(url: Url) -> str:
    """Give the name under which a URL's host is compared: no trailing dot, the port only where it is unusual."""
    host = url.host
    if host.endswith("."):
        host = host.rstrip(".")
    return host if url.port in _USUAL_PORTS else f"{host}:{url.port}"


def _host_and_port(name: str) -> tuple[str, str, str]:
    if name.endswith("]"):
        return name, "", ""
    host, colon, port = name.rpartition(":")
    return (host, colon, port) if colon else (name, "", "")


def _has_domain(host: str) -> bool:
    return _private_suffix(host) is not None


@lru_cache(maxsize=4096)
def _private_suffix(host: str) -> str | None:
    if host.startswith("[") or host[-1:].isdigit():
        return None  # an address: the URL parser lets no name end in a digit-only label
    found: str | None = _suffixes().privatesuffix(host)
    return found


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
