"""Which spaces of its host does a URL lie in, and what do many URLs have in common?

Called by core/frontier/discovery. Targets are path and query, as on the wire; each is taken as text that anybody may have
written, and only a bounded part of it is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

DIRECTORIES_MAX = 3
SHARED_MIN = 0.8  # of the samples: a word that so many share is named in the pattern
SEGMENT_CHARS_MAX = 32  # a longer segment is taken as a value
TARGET_CHARS_MAX = 160  # of a sample; longer URLs are cut
KEYS_NAMED = 8  # query keys in a pattern

_DIGIT = re.compile(r"[0-9]")


def prefixes(target: str) -> Iterator[str]:
    """Name the spaces a target lies in, from the whole host ('') down; numbers and long words are `*`."""
    path, mark, _ = target.partition("?")
    segments = path.split("/", DIRECTORIES_MAX + 2)[1:]
    leaf = segments.pop() if segments else ""
    if mark:
        segments.append(leaf + "?")
    prefix = ""
    yield prefix
    for segment in segments[:DIRECTORIES_MAX]:
        prefix += "/" + ("*" if len(segment) > SEGMENT_CHARS_MAX or _DIGIT.search(segment) else segment)
        yield prefix


def repeats(target: str) -> bool:
    """Tell whether a target names a directory twice or a query key twice."""
    path, _, query = target[:TARGET_CHARS_MAX].partition("?")
    segments = [segment for segment in path.split("/") if segment]
    if len(set(segments)) < len(segments):
        return True
    keys = [pair.partition("=")[0] for pair in query.split("&") if pair]
    return len(set(keys)) < len(keys)


def pattern_of(targets: Iterable[str]) -> str:
    """Name what most targets have in common: a segment that they share stays, another is `*`, ends of any length are `**`."""
    split = [target.partition("?") for target in targets]
    rows = [(path.split("/")[1:], query) for path, _, query in split]
    named: list[str] = []
    while rows:
        longer = [row for row in rows if len(row[0]) > len(named)]
        if len(longer) < SHARED_MIN * len(rows) or len(named) == 2 * DIRECTORIES_MAX:
            break
        words = Counter(segments[len(named)] for segments, _ in longer)
        word, count = words.most_common(1)[0]
        if count >= SHARED_MIN * len(rows):
            rows = [row for row in longer if row[0][len(named)] == word]
        else:
            rows, word = longer, "*"
        named.append(word)
    if any(len(segments) > len(named) for segments, _ in rows):
        while named and named[-1] == "*":
            named.pop()
        named.append("**")
    keys = sorted({pair.partition("=")[0] for _, query in rows for pair in query.split("&") if pair})
    return "/" + "/".join(named) + ("?" + "&".join(f"{key}=*" for key in keys[:KEYS_NAMED]) if keys else "")


def covers(pattern: str, target: str) -> bool:
    """Tell whether a target fits a pattern; of the query only whether there is one."""
    named, asks, _ = pattern.partition("?")
    path, has, _ = target.partition("?")
    words, segments = named.split("/"), path.split("/")
    if words[-1] == "**":
        words.pop()
        segments = segments[: len(words)]
    return asks == has and len(words) == len(segments) and all(w in ("*", s) for w, s in zip(words, segments, strict=True))
