"""What does a line of a seed list mean?

A URL, a bare host as people type it (`example.com`, `localhost:8000/x`), nothing (blank, comment), or a reason why it is
no seed. Law 9: the URL is what the line says, read as a browser would; nothing is guessed beyond the scheme. Called by
stages/seed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crawltool.core import urls
from crawltool.core.urls import Url
from crawltool.records import Candidate

BOM = b"\xef\xbb\xbf"
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+-]*:(?!\d{1,5}(?:[/?#\\]|$))")  # `localhost:8000/x` has a port, not a scheme
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AUTHORITY = re.compile(r"[^/?#\\]*")
_QUAD = re.compile(r"\d+(\.\d+){3}")
# What a person reads, for the reason words of core/urls.why_not.
REASONS = {"not_a_url": "not a URL", "scheme": "not an http or https URL", "too_long": "URL too long"}


class Seed(NamedTuple):
    """A usable line: the URL, and what is queued when that one is unreachable."""

    url: Url
    else_url: str | None = None


class NoSeed(NamedTuple):
    """Why a line is none, in a person's words."""

    reason: str


def read(line: bytes, *, first: bool = False) -> Seed | NoSeed | None:
    """Read a line, with or without its newline; None when it is blank or a comment. first: it may begin with a BOM."""
    if first:
        line = line.removeprefix(BOM)
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        return NoSeed("not UTF-8")
    if not text or text.startswith("#"):
        return None
    if _CONTROL.search(text):
        # A browser drops tabs and line ends inside a URL; in a list they are more likely columns, or damage.
        return NoSeed("control character")
    if _HAS_SCHEME.match(text):
        url = urls.parse(text)
        return Seed(url) if url else _refusal(text)
    return _bare(text.removeprefix("//"))


def _refusal(text: str) -> NoSeed:
    word = urls.why_not(text)
    return NoSeed(REASONS.get(word, word))


def _bare(text: str) -> Seed | NoSeed:
    """Read a host without a scheme: https first, then http; http alone on this machine and for port 80."""
    url = urls.parse(f"https://{text}")
    if url is None or not _is_host(_authority(text), url):
        return _refusal(text) if url is None and urls.why_not(text) == "too_long" else NoSeed(REASONS["not_a_url"])
    plain = urls.parse(f"http://{text}")
    assert plain is not None, text
    if is_loopback(url.host) or url.port == 80:
        return Seed(plain)
    return Seed(url, None if _authority(text).endswith(":443") else plain.href)


def _authority(text: str) -> str:
    match = _AUTHORITY.match(text)
    assert match is not None
    return match[0]


def _is_host(authority: str, url: Url) -> bool:
    """Tell whether a person would call this a host: a word alone, a mail address or a number is none."""
    name = re.sub(r":\d*$", "", authority)
    if "@" in authority or not name:
        return False
    if _QUAD.fullmatch(url.host):  # `12345` is an IPv4 address to a browser, but a number to a person
        return name == url.host
    return name != authority or "." in url.host.rstrip(".") or url.host.startswith("[") or is_loopback(url.host)


def is_loopback(host: str) -> bool:
    """Tell whether a host, as Url has it, names this machine by itself."""
    if _QUAD.fullmatch(host):
        return host.startswith("127.")
    return host in ("localhost", "[::1]") or host.endswith(".localhost")


def candidate(seed: Seed) -> Candidate:
    """Give what is queued for a seed."""
    return Candidate(url=seed.url.href, source="seed", else_url=seed.else_url)


def sitemap(seed: Seed) -> Candidate:
    """Give the candidate for the sitemap of a seed's host, at the place where most sites have it (sitemaps.org)."""
    at = urls.join(seed.url.href, "/sitemap.xml")
    other = urls.join(seed.else_url, "/sitemap.xml") if seed.else_url else None
    assert at is not None, seed
    return Candidate(url=at, kind="sitemap", source="seed", else_url=other)
