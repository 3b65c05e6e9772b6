"""What does every reader of a content type take, and what does it give?

The one shape behind the table of core/pages/content, so that a new type is one file and one row. Called by the readers, by
core/pages/content and by stages/parse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from crawltool import limits
from crawltool.core.pages import charset
from crawltool.records import Link, Page


class Sheet(NamedTuple):
    """A body to be read: content coding undone, cut to what may be parsed."""

    body: bytes
    content_type: str  # without parameters, lower case; '' when there is none
    charset: str | None  # of the Content-Type header
    url: str
    robots: list[str]  # rules of X-Robots-Tag that are for us
    kind: str  # page or sitemap: what it was fetched as
    token: str  # our name in robots rules, lower case

    def decoded(self) -> tuple[str, str]:
        """Give the text and the name of its encoding."""
        return charset.decode(self.body, self.charset)


@dataclass(slots=True)
class Reading:
    """What was read: the page's own data, its links, its main text, and how to get all of its text.

    text is None when the type has none. lastmods tells when a sitemap says that a URL changed (W3C date-time, UTC).
    """

    page: Page
    links: list[Link] = field(default_factory=list)
    text: str | None = None
    whole: Callable[[], str] | None = None
    lastmods: dict[str, str] = field(default_factory=dict)


def join_troubles(*troubles: str | None) -> str | None:
    """Make one sentence of what went wrong; None when nothing did."""
    return "; ".join(filter(None, troubles))[: limits.TITLE_CHARS_MAX] or None
