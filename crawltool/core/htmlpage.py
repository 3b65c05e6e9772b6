"""What is on an HTML page: links, title, description, canonical, robots, main text, language, SimHash?

A row of core/content's table: one decoding, one tree, then each question to the module that knows it.
"""

from __future__ import annotations

from collections.abc import Callable

from crawltool.core import html, links, simhash, text
from crawltool.core.reading import Reading, Sheet
from crawltool.records import Link, Page


def read(sheet: Sheet) -> Reading:
    """Read a page; never raises, whatever it holds."""
    decoded, encoding = sheet.decoded()
    page, found, lang, markup = _structure(decoded, sheet)
    page.charset = encoding.lower()
    # The tree is gone by now: the extractor builds its own in the same memory, still warm.
    main = text.main(markup)
    describe(page, main, lang, lambda: text.whole(markup))
    return Reading(page, found, main, lambda: text.whole(markup))


def _structure(decoded: str, sheet: Sheet) -> tuple[Page, list[Link], str | None, str]:
    """Give what the tree tells: the page without its text, its links, the language it claims, and the bounded markup."""
    document = html.parse(decoded)
    head = html.head(document, sheet.token)
    robots = list(dict.fromkeys((*sheet.robots, *head.robots)))
    found = links.read(document, sheet.url, nofollow="nofollow" in robots)
    page = Page(
        title=head.title,
        description=head.description,
        canonical=found.canonical,
        robots=robots,
        links_found=len(found.links) + found.cut,
        links_cut=found.cut,
        trouble=document.trouble,
    )
    return page, found.links, head.lang, document.html


def describe(page: Page, main: str, lang: str | None, whole: Callable[[], str] | None = None) -> None:
    """Fill in what the text tells. A page without main text worth the name is known by all of its text."""
    fingerprint = simhash.fingerprint(main)
    page.text_bytes, page.words = len(main.encode()), fingerprint.words
    page.lang, page.lang_confidence = text.language(main, lang)
    if fingerprint.bits is None and whole is not None:
        fingerprint = simhash.fingerprint(whole())
    if fingerprint.bits is not None:
        page.simhash = simhash.to_hex(fingerprint.bits)
