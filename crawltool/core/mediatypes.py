"""Which media types does the operator want whole?

The words of --types and what they stand for. Called by fetch, inside libcurl's callback, with the Content-Type as received.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crawltool.errors import BadPolicy

# word -> what the essence of a type must match. `text` holds what a person reads; scripts and style sheets are neither.
_WORDS: dict[str, str] = {
    "html": r"text/html|application/xhtml\+xml",
    "xml": r"(?:text|application)/xml|[^/]+/[^/]+\+xml",
    "text": r"text/(?!css\Z|javascript\Z|ecmascript\Z).+",
    "json": r"application/json|text/json|[^/]+/[^/]+\+json|application/(?:x-)?(?:ndjson|jsonlines)",
    "feed": r"application/(?:rss|atom|rdf)\+xml|application/feed\+json",
    "pdf": r"application/(?:x-)?pdf",
}
TYPES = tuple(_WORDS)


def essence(content_type: str | None) -> str:
    """Give `type/subtype` in lower case without parameters; '' when there is none."""
    return (content_type or "").partition(";")[0].partition(",")[0].strip().lower()


class WantedTypes:
    """The types of one --types value: words of TYPES, `all`, or media types written out."""

    def __init__(self, words: Sequence[str]) -> None:
        """Compile the words. Raises BadPolicy on one that is neither a known word nor a media type."""
        parts = []
        for word in (word.strip().lower() for word in words):
            if word == "all":
                parts.append(".*")
            elif word in _WORDS:
                parts.append(_WORDS[word])
            elif "/" in word:
                parts.append(re.escape(word))
            elif word:
                raise BadPolicy(
                    f"--types {word}: not a known type", remedy=f"write some of {','.join(TYPES)}, all, or a media type"
                )
        self._match = re.compile("|".join(f"(?:{part})" for part in parts) if parts else r"(?!)").fullmatch
        self._known: dict[str, bool] = {}

    def wants(self, content_type: str | None) -> bool:
        """Tell whether a body of this Content-Type is kept whole; one without a type, or of a generic one, is looked at."""
        known = self._known.get(content_type or "")
        if known is None:
            kind = essence(content_type)
            known = not kind or "/" not in kind or kind == "application/octet-stream" or self._match(kind) is not None
            if len(self._known) < 1000:
                self._known[content_type or ""] = known
        return known
