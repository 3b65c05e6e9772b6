"""Which URLs may this crawl never ask for, whatever its scope says?

Lists of lines: host names, domains, URL patterns. Those of ban files hold for the crawl or for all crawls of an operator
(opt-outs); those of `crawltool control block` are one more list. Law 10. Read here as text: stores/banfiles reads the
files. Called by core/frontier/admission for what was found, by core/frontier/release for each head of a queue (a ban takes
effect at once), and by core/frontier/steering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from crawltool import limits
from crawltool.core.scope import matcher
from crawltool.core.urls import Url, key_of_form, parse
from crawltool.errors import BadPolicy

CONTROL = "control"  # the name of the list that the operator edits while the crawl runs


class Ban(NamedTuple):
    """One line, read. `kind` is host (this name), domain (names below it, and `also` the name itself) or pattern."""

    line: str
    kind: str
    name: str = ""
    also: bool = False


def read_line(text: str) -> Ban | None:
    """Read one line; None when it is blank or a comment. Raises BadPolicy when it can mean nothing.

    `example.org` is that name and every name below it, `*.example.org` only those below, `=example.org` only the name.
    A line with a slash is a glob over URLs (`example.org/private/*` stands for every scheme), `re:` a regular expression.
    """
    line = text.strip()
    if not line or line.startswith("#"):
        return None
    if line.startswith("re:") or "/" in line:
        return Ban(line, "pattern")
    sign = next((sign for sign in ("*.", ".", "=") if line.startswith(sign)), "")
    bare = line.removeprefix(sign)
    url = parse(f"http://{bare}/") if len(bare) <= limits.HOST_CHARS_MAX else None
    if url is None or url.target != "/" or url.port != 80 or set("*?@:") & set(bare.split("]")[-1]):
        remedy = "write example.org, *.example.org or a URL glob"
        raise BadPolicy(f"ban {line[:100]!r} is no host, domain or pattern", remedy=remedy)
    name = url.host.rstrip(".")
    if sign == "=":
        return Ban(f"={name}", "host", name)
    return Ban(f"*.{name}" if sign else name, "domain", name, also=not sign)


def read_lines(text: str, source: str) -> BanList:
    """Read a whole file. Raises BadPolicy with its name and the number of the line that is wrong."""
    found: list[Ban] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        try:
            ban = read_line(line)
            if ban is not None:
                _pattern_of(ban)
                found.append(ban)
        except BadPolicy as error:
            raise BadPolicy(f"{source}:{number}: {error}", remedy=error.remedy) from None
    return BanList(found)


class BanList:
    """The bans of one source."""

    def __init__(self, bans: Iterable[Ban] = ()) -> None:
        self.hosts: dict[str, str] = {}  # name -> line
        self.below: dict[str, str] = {}  # domain -> line
        self.patterns: dict[str, Callable[[Url], bool]] = {}
        self.count = 0  # lines that changed something
        for ban in bans:
            self.add(ban)

    def add(self, ban: Ban) -> bool:
        """Take a ban in; False when it was in already. Raises BadPolicy on a broken pattern."""
        before = len(self.hosts) + len(self.below) + len(self.patterns)
        if ban.kind == "pattern":
            self.patterns.setdefault(ban.line, _pattern_of(ban))
        if ban.kind == "host" or ban.also:
            self.hosts.setdefault(ban.name, ban.line)
        if ban.kind == "domain":
            self.below.setdefault(ban.name, ban.line)
        is_new = len(self.hosts) + len(self.below) + len(self.patterns) > before
        self.count += is_new
        return is_new

    def lines(self) -> list[str]:
        """Give the lines that made it, without repeats."""
        return list(dict.fromkeys([*self.hosts.values(), *self.below.values(), *self.patterns]))

    def match(self, name: str, url: Url) -> str | None:
        """Give the line that bans a URL. name: its host without a last dot."""
        line = self.hosts.get(name)
        if line is None and self.below:
            cut = name.find(".")
            while line is None and cut >= 0:
                line = self.below.get(name[cut + 1 :])
                cut = name.find(".", cut + 1)
        if line is None:
            line = next((line for line, matches in self.patterns.items() if matches(url)), None)
        return line


class Bans:
    """All lists by the name of their source. `active` is false when nothing is banned: then nobody need ask."""

    def __init__(self, lists: Mapping[str, BanList] | None = None) -> None:
        self.lists: dict[str, BanList] = {CONTROL: BanList()}
        self.active = False  # a field, because it is looked at for each URL that is found
        self.replace(lists or {})

    def replace(self, lists: Mapping[str, BanList]) -> None:
        """Put the lists of the files in place of the old ones; the operator's own stays."""
        self.lists = {CONTROL: self.lists[CONTROL], **lists}
        self._note()

    def _note(self) -> None:
        self.active = any(found.count for found in self.lists.values())

    def judge(self, url: Url) -> str | None:
        """Give the line that bans a URL and where it stands, None when none does."""
        name = url.host.rstrip(".")
        for source, found in self.lists.items():
            line = found.match(name, url)
            if line is not None:
                return f"{line} ({source})"
        return None

    def block(self, ban: Ban) -> bool:
        """Ban at the operator's word; False when that changes nothing. Raises BadPolicy on a broken pattern."""
        changed = self.lists[CONTROL].add(ban)
        self._note()
        return changed

    def unblock(self, ban: Ban) -> bool:
        """Lift a ban of the operator's own list; False when that changes nothing."""
        lines = self.lists[CONTROL].lines()
        kept = [found for line in lines if line != ban.line and (found := read_line(line)) is not None]
        self.lists[CONTROL] = BanList(kept)
        self._note()
        return len(kept) < len(lines)

    def fingerprint(self) -> bytes:
        """Give 16 bytes that change when a ban does: a start looks at what was refused only then."""
        return key_of_form("\n".join(sorted(line for found in self.lists.values() for line in found.lines())))


def _pattern_of(ban: Ban) -> Callable[[Url], bool]:
    """Compile a pattern; one that begins with a host stands for every scheme."""
    if ban.kind != "pattern":
        return lambda url: False
    is_plain = ban.line.startswith(("re:", "/", "*")) or "://" in ban.line
    return matcher(ban.line if is_plain else f"*://{ban.line}")
