"""How far is a source of candidates trusted, and how many of its URLs are taken?

Channels, not claims, give trust: a folder NAME of inbox.d has a quota of URLs and a starting trust in priority classes; what
its lines claim moves a URL within its class only. Counts are in META rows of the turn's batch. Called by core/frontier/turn
(trust) and core/frontier/admission (quota).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from crawltool.core.frontier.book import Book
from crawltool.core.frontier.rows import Table
from crawltool.errors import BadPolicy

QUOTA = 100_000  # of a channel that no setting names
TRUST_MOST = 1
PREFIX = b"control:channel:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
OPERATOR = "inbox"  # the channel of the operator's own inbox; no other may have this name
_CLASS = 2.0  # a class of priorities is from -1 to 1; the next one begins there
_WITHIN = 0.999  # what a line may claim within its class


class Rule(NamedTuple):
    """What holds for a channel. trust: classes above or below what links have."""

    quota: int | None = QUOTA
    trust: int = 0


def read_rule(text: str) -> tuple[str, Rule]:
    """Read NAME=QUOTA[,TRUST]; quota `none` is no limit. Raises BadPolicy."""
    match = re.fullmatch(r"([^=]*)=(none|\d{1,12})(?:,([+-]?\d))?", text)
    if match is None or not NAME.fullmatch(match[1]) or match[1] == OPERATOR:
        raise BadPolicy(
            f"channel {text[:100]!r} cannot be read", remedy="write NAME=QUOTA or NAME=QUOTA,TRUST such as feeds=5000,-1"
        )
    trust = int(match[3] or 0)
    if abs(trust) > TRUST_MOST:
        raise BadPolicy(f"channel {match[1]}: trust is -1, 0 or 1")
    return match[1], Rule(None if match[2] == "none" else int(match[2]), trust)


class Channels:
    """The rules of all channels, and how many URLs each has brought."""

    def __init__(self, book: Book, rules: Mapping[str, Rule] | None = None) -> None:
        self.book, self.rules = book, dict(rules or {})
        self.accepted: dict[str, int] = {}

    def rule(self, name: str) -> Rule:
        """Give what holds for a channel."""
        return self.rules.get(name) or Rule()

    def priority(self, name: str, claimed: float) -> float:
        """Give the priority of a candidate: its channel's class, moved within it by what the line claims."""
        within = min(max(claimed, -_WITHIN), _WITHIN) if claimed == claimed else -_WITHIN
        return within + _CLASS * self.rule(name).trust

    def is_full(self, name: str) -> bool:
        """Tell whether a channel has brought all the URLs that it may."""
        quota = self.rule(name).quota
        return quota is not None and self._count(name) >= quota

    def count(self, name: str) -> None:
        """Count a URL that a channel brought."""
        self.accepted[name] = self._count(name) + 1
        self.book.put(Table.META, PREFIX + name.encode(), b"%d" % self.accepted[name])

    def _count(self, name: str) -> int:
        if name not in self.accepted:
            self.accepted[name] = int(self.book.port.get(Table.META, PREFIX + name.encode()) or b"0")
        return self.accepted[name]
