"""Which URL did the page write, which host does it ask, and is it the one we already know?

Keeps law 9: the wire form is the WHATWG reading of what was written, escapes as found; the dedup key is a separate,
versioned normal form that takes only the safe steps of RFC 3986 section 6.2.2. The door of ada_url and of xxhash for keys.
Called by everybody who meets a URL: seed and parse for links, the frontier for keys, fetch for hosts and redirects.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import ada_url
import xxhash

from crawltool import limits

KEY_VERSION = 1
SPLIT_HELD = 16_384  # URLs taken apart that are remembered, about 0.7 KB each

_PORTS = {"http": 80, "https": 443}
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
# Text of this shape is its own WHATWG href, so the parser need not be asked: lower-case host whose last label starts with a
# letter (no number form of IPv4), or dotted quad; only signs that neither path nor query escape.
_PLAIN = re.compile(
    r"(https?)://"
    rf"((?:[a-z0-9_-]+\.)*[a-z][a-z0-9-]*|(?:{_OCTET}\.){{3}}{_OCTET})"
    r"(?::([1-9][0-9]{0,4}))?"
    r"(/[!$%&'()*+,\-./0-9:;=@A-Z_a-z~]*(?:\?[!$%&()*+,\-./0-9:;=?@A-Z_a-z~]*)?)"
)
# What the normal form changes: an escape that is not (upper case, of an octet that must stay escaped), a lone `%`, a raw sign
# that RFC 3986 allows in neither path nor query.
_FIXABLE = re.compile(
    r"%(?!(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]))([0-9A-Fa-f]{2})?|[^!$%&'()*+,\-./0-9:;=?@A-Z_a-z~]"
)
# A reference of this shape is put behind its base as it is: a path from the root, or a name that no scheme and no dot begins.
_PLAIN_REFERENCE = re.compile(
    r"(/(?!/)|(?=[0-9A-Z_a-z~\-][!$&'()*+,\-.0-9;=@A-Z_a-z~]*(?:[/?#]|\Z)))"
    r"([!$%&'()*+,\-./0-9:;=@A-Z_a-z~]*(?:\?[!$%&()*+,\-./0-9:;=?@A-Z_a-z~]*)?)(?:#.*)?",
    re.S,
)
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCHEME = re.compile(r"[\x00-\x20]*([A-Za-z][A-Za-z0-9+.\-]*):")


class Url(NamedTuple):
    """A usable http(s) URL, taken apart.

    href has no fragment and no userinfo. authority is always scheme://host:port with the effective port, IPv6 in brackets;
    it names one robots.txt. host is lower case, IPv6 in brackets. target is path and query: what goes on the wire.
    """

    href: str
    scheme: str
    host: str
    port: int
    authority: str
    target: str


def parse(text: str, base: str | None = None) -> Url | None:
    """Read text as a browser would, relative to base if there is one; None when it is no usable http(s) URL."""
    if base is None:
        found = _plain(text)
        if found is not None:
            return found
    href = _href(text, base)
    return None if href is None else _take_apart(href)


def split_once(href: str) -> Url | None:
    """Take an href apart that is most likely normal already; anything else is parsed."""
    return _plain(href) or parse(href)


split = lru_cache(maxsize=SPLIT_HELD)(split_once)
split.__doc__ = "Do as split_once() for a URL that is asked for again soon: one that is out as a target."


def join(base: str, reference: str) -> str | None:
    """Resolve a reference against base; an absolute href of any scheme, fragment kept, or None."""
    return _href(reference, base)


class Base:
    """The URL that a document's references are resolved against; most of them without asking the parser."""

    def __init__(self, url: Url) -> None:
        self.url = url
        self._origin = url.href[: len(url.href) - len(url.target)]
        path = url.target.partition("?")[0]
        self._folder = self._origin + path[: path.rfind("/") + 1]

    def href(self, reference: str) -> str | None:
        """Do as parse() with this base, and give the href alone."""
        match = _PLAIN_REFERENCE.fullmatch(reference)
        if match is not None and len(reference) <= limits.URL_BYTES_MAX // 2:
            slash, rest = match.groups()
            if "/." not in rest and "/%2" not in rest and rest[:1] not in (".", "%"):
                return f"{self._origin}/{rest}" if slash else f"{self._folder}{rest}"
        url = (_plain(reference) if reference[:4] == "http" else None) or parse(reference, self.url.href)
        return None if url is None else url.href


def why_not(text: str) -> str:
    """Name the reason why parse() refused text: too_long, scheme or not_a_url."""
    if _too_long(text):
        return "too_long"
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() not in _PORTS and not scheme[1].count("."):
        return "scheme"
    return "not_a_url"


def key_form(url: Url) -> str:
    """Give the normal form that is compared, never fetched; applying it again changes nothing.

    Escapes of unreserved octets are undone, the others get upper-case digits, signs that no URI may hold raw are escaped, and
    so is a `%` that starts no escape. Source: RFC 3986 sections 2.1, 2.3, 6.2.2.1 and 6.2.2.2; dot segments, case of scheme
    and host and the default port are the parser's. Reserved signs and their escapes stay apart (section 2.2).
    """
    href, target = url.href, url.target
    if _FIXABLE.search(target) is None:
        return href
    return href[: len(href) - len(target)] + _FIXABLE.sub(_fixed, target)


def safe_form(target: str) -> str:
    """Give the normal form of a path and query alone; robots rules are compared in it."""
    return target if _FIXABLE.search(target) is None else _FIXABLE.sub(_fixed, target)


def key(url: Url) -> bytes:
    """Give the 16 bytes under which a URL is known (of KEY_VERSION)."""
    return xxhash.xxh3_128_digest(key_form(url).encode())


def key_of_form(form: str) -> bytes:
    """Give the key of a normal form that was made before."""
    return xxhash.xxh3_128_digest(form.encode())


def surt(url: Url) -> str:
    """Give the form that sorts by domain: labels reversed, scheme dropped, `com,example,www:8080)/path?query`."""
    host = url.host
    if not host.startswith("[") and not host[-1:].isdigit():
        host = ",".join(reversed(host.rstrip(".").split(".")))
    port = "" if url.port == _PORTS[url.scheme] else f":{url.port}"
    return f"{host}{port}){url.target}"


def _plain(text: str) -> Url | None:
    """Take apart text that is certainly its own href; None when the parser must be asked."""
    match = _PLAIN.fullmatch(text)
    if match is None or len(text) > limits.URL_BYTES_MAX:
        return None
    scheme, host, digits, target = match.groups()
    if "/." in target or "/%2" in target or "xn--" in host:
        return None  # dot segments, also escaped ones, and labels whose punycode must be checked
    if digits is None:
        port = 443 if scheme == "https" else 80
    else:
        port = int(digits)
        if port > 65535 or port == _PORTS[scheme]:
            return None
    return tuple.__new__(Url, (text, scheme, host, port, f"{scheme}://{host}:{port}", target))


def _href(text: str, base: str | None) -> str | None:
    if _too_long(text):
        return None
    try:
        href: str = ada_url.normalize_url(text) if base is None else ada_url.join_url(base, text)
    except ValueError:
        # The URL standard reads scalar values: a lone surrogate (JSON can hold one) is U+FFFD.
        scalar = _SURROGATE.sub("\ufffd", text)
        return None if scalar == text else _href(scalar, base)
    return None if _too_long(href) else href


def _take_apart(href: str) -> Url | None:
    """Take a WHATWG href apart; its authority ends at the first slash and holds `@` only after userinfo."""
    scheme, _, rest = href.partition("://")
    if scheme not in _PORTS:
        return None
    rest = rest.partition("#")[0]
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, port = authority, _PORTS[scheme]
    if not authority.endswith("]"):
        name, colon, digits = authority.rpartition(":")
        if colon:
            host, port = name, int(digits)
    if not host.strip("."):
        return None  # the standard lets `http://./` pass; no resolver does
    target = slash + path
    return Url(f"{scheme}://{authority}{target}", scheme, host, port, f"{scheme}://{host}:{port}", target)


def _too_long(text: str) -> bool:
    return len(text) > limits.URL_BYTES_MAX or (
        not text.isascii() and len(text.encode("utf-8", "replace")) > limits.URL_BYTES_MAX
    )


def _fixed(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is not None:
        octet = int(digits, 16)
        return chr(octet) if octet in _UNRESERVED else f"%{octet:02X}"
    return "".join(f"%{octet:02X}" for octet in match[0].encode("utf-8", "replace"))
