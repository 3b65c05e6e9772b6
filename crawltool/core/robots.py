"""Which rules of a robots.txt apply to us, and what do they say about a URL?

Part of law 10. Source: RFC 9309; where it is silent, Google's published parser is followed (a group is not ended by lines
that are no rules; a missing colon may be a blank). Matching takes linear time in rule and URL (no backtracking), so a
hostile file costs no more than its length. Called by fetch (parse) and by the frontier (Rules).
"""

from __future__ import annotations

import math
import re

import msgspec

from crawltool import limits
from crawltool.core import urls
from crawltool.records import Robots

_BOM = b"\xef\xbb\xbf"
_WORDS: dict[bytes, str] = {
    b"user-agent": "agent",
    b"useragent": "agent",
    b"user agent": "agent",
    b"disallow": "disallow",
    b"dissallow": "disallow",
    b"dissalow": "disallow",
    b"disalow": "disallow",
    b"diasllow": "disallow",
    b"disallaw": "disallow",
    b"allow": "allow",
    b"crawl-delay": "delay",
    b"crawldelay": "delay",
    b"sitemap": "sitemap",
    b"site-map": "sitemap",
}
_TOKEN = re.compile(rb"[A-Za-z_-]*")  # RFC 9309 section 2.2.1; what follows is version or comment
_INDEX = re.compile(r"(.*/)index\.html?\Z")
_SECONDS = re.compile(rb"[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}")


class _Group:
    """The rules gathered for one name, in the order of the file."""

    __slots__ = ("delay_s", "rules", "seen")

    def __init__(self) -> None:
        self.seen = False
        self.rules: dict[tuple[str, str], int] = {}
        self.delay_s: float | None = None


def parse(body: bytes, token: str) -> Robots:
    """Read the group that applies to the product token, else the one for `*`; all groups of one name count as one.

    Of a body longer than limits.ROBOTS_BYTES_MAX the whole lines below the limit are read. Any bytes give an answer: what is
    no rule is skipped (RFC 9309 section 2.3.1.5).
    """
    lines, cut = _lines(body)
    wanted = token.lower().encode("utf-8", "replace")
    ours, anyone = _Group(), _Group()
    current: list[_Group] = []
    sitemaps: dict[str, None] = {}
    is_rule_seen = False
    for number, line in enumerate(lines, 1):
        word, value = _word_and_value(line)
        if word == "allow" or word == "disallow":
            is_rule_seen = True
            if value and current:
                rule = (word, _pattern(value))
                for group in current:
                    group.rules.setdefault(rule, number)
        elif word == "agent":
            if is_rule_seen:
                current, is_rule_seen = [], False
            named = _group_of(value, wanted, ours, anyone)
            if named is not None and named not in current:
                named.seen = True
                current.append(named)
        elif word == "delay":
            _take_delay(current, value)
        elif word == "sitemap" and value:
            sitemaps.setdefault(value.decode("utf-8", "replace"))
    return _answer(ours if ours.seen else anyone, sitemaps, cut)


class Rules:
    """The rules of one authority, ready to judge URLs. Rules without wildcards are looked up, not tried one by one."""

    __slots__ = ("_lengths", "_prefixes", "_wild")

    def __init__(self, robots: Robots) -> None:
        self._prefixes: dict[str, tuple[bool, str]] = {}
        self._wild: list[tuple[int, bool, list[str], bool, str]] = []
        for kind, pattern, number in robots.rules:
            allowed = kind == "allow"
            text = f"{kind}: {pattern} (line {number})"
            self._add(allowed, pattern, text)
            index = _INDEX.match(pattern) if allowed else None
            if index is not None:
                self._add(True, index[1] + "$", text)  # as Google does: who allows the index file allows its directory
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        # Longest first, allow before disallow: the first that matches decides (RFC 9309 section 2.2.2).
        self._wild.sort(key=lambda rule: (-rule[0], not rule[1]))

    def _add(self, allowed: bool, pattern: str, text: str) -> None:
        form = urls.safe_form(pattern)
        pieces, is_anchored = _pieces(form)
        if len(pieces) > 1 or is_anchored:
            self._wild.append((len(form), allowed, pieces, is_anchored, text))
        elif allowed or pieces[0] not in self._prefixes:
            self._prefixes[pieces[0]] = (allowed, text)

    def judge(self, target: str) -> tuple[bool, str]:
        """Tell whether path and query may be asked, and the line that decided; '' when none did."""
        if not self._lengths and not self._wild:
            return True, ""
        if target.partition("?")[0] == "/robots.txt":
            return True, ""  # RFC 9309 section 2.2.2: implicitly allowed
        form = _literal(urls.safe_form(target or "/"))
        length, allowed, text = self._longest_prefix(form)
        for size, kind, pieces, is_anchored, line in self._wild:
            if size < length or (size == length and (allowed or not kind)):
                break
            if _matches(form, pieces, is_anchored):
                return kind, line
        return allowed, text

    def _longest_prefix(self, form: str) -> tuple[int, bool, str]:
        for length in self._lengths:
            head = form[:length]  # of a short URL all of it: then its own length counts
            found = self._prefixes.get(head)
            if found is not None:
                return len(head), *found
        return -1, True, ""


def _lines(body: bytes) -> tuple[list[bytes], bool]:
    """Split a file into lines; a line cut by the limit is dropped whole, it would be a wider rule than what was written."""
    cut = len(body) > limits.ROBOTS_BYTES_MAX
    if cut:
        last = max(body.rfind(b"\n", 0, limits.ROBOTS_BYTES_MAX), body.rfind(b"\r", 0, limits.ROBOTS_BYTES_MAX))
        body = body[: last + 1]
    for size in (3, 2, 1):
        if body.startswith(_BOM[:size]):  # also one that lost its tail
            body = body[size:]
            break
    return body.splitlines(), cut  # bytes.splitlines knows CR, LF and CRLF only


def _word_and_value(line: bytes) -> tuple[str | None, bytes]:
    if len(line) > limits.ROBOTS_LINE_BYTES_MAX:
        line = line[: limits.ROBOTS_LINE_BYTES_MAX]
    if b"#" in line:
        line = line[: line.index(b"#")]
    name, colon, value = line.partition(b":")
    if not colon:
        words = line.split()
        if len(words) != 2:
            return None, b""
        name, value = words
    return _WORDS.get(name.strip(b" \t\0\x0b\x0c").lower()), value.strip(b" \t\0\x0b\x0c")


def _group_of(value: bytes, wanted: bytes, ours: _Group, anyone: _Group) -> _Group | None:
    if value[:1] == b"*" and not value[1:2].strip():
        return anyone
    name = _TOKEN.match(value)
    return ours if name is not None and name[0] and name[0].lower() == wanted else None


def _pattern(value: bytes) -> str:
    """Give a rule's pattern in ASCII: octets above it are compared in escaped form (RFC 9309 section 2.2.2)."""
    if value.isascii():
        return value.decode("ascii")
    return "".join(chr(octet) if octet < 0x80 else f"%{octet:02X}" for octet in value)


def _take_delay(groups: list[_Group], value: bytes) -> None:
    if not groups or not _SECONDS.fullmatch(value):
        return
    seconds = float(value)
    assert math.isfinite(seconds)
    for group in groups:
        group.delay_s = seconds if group.delay_s is None else max(seconds, group.delay_s)


def _answer(group: _Group, sitemaps: dict[str, None], cut: bool) -> Robots:
    """Make the record; it crosses a pipe, so rules and sitemaps stay within their share of a line."""
    rules: list[tuple[str, str, int]] = []
    room = limits.ROBOTS_RULES_BYTES_MAX
    for (kind, pattern), number in group.rules.items():
        room -= len(msgspec.json.encode((kind, pattern, number))) + 1
        if room < 0:
            cut = True
            break
        rules.append((kind, pattern, number))
    named: list[str] = []
    room = limits.ROBOTS_SITEMAPS_BYTES_MAX
    for sitemap in sitemaps:
        room -= len(msgspec.json.encode(sitemap)) + 1
        if room < 0 or len(named) == limits.SITEMAPS_MAX:
            break
        named.append(sitemap)
    return Robots(rules=rules, crawl_delay_s=group.delay_s, sitemaps=named, cut=cut)


def _pieces(form: str) -> tuple[list[str], bool]:
    """Cut a pattern at its wildcards; a `$` at its end anchors it, elsewhere it is that sign."""
    is_anchored = form.endswith("$")
    return [piece.replace("$", "%24") for piece in form.removesuffix("$").split("*")], is_anchored


def _literal(form: str) -> str:
    """Escape the two signs that mean something in rules: `%2A` and `%24` there stand for them (RFC 9309 section 2.2.3)."""
    if "*" in form or "$" in form:
        return form.replace("*", "%2A").replace("$", "%24")
    return form


def _matches(form: str, pieces: list[str], is_anchored: bool) -> bool:
    """Match by taking each piece at its first place: nothing is tried twice, so the time is linear."""
    if not form.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    if len(pieces) == 1:
        return not is_anchored or at == len(form)
    last = pieces[-1]
    for piece in pieces[1:-1]:
        at = form.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    if is_anchored:
        return len(form) - len(last) >= at and form.endswith(last)
    return form.find(last, at) >= 0
