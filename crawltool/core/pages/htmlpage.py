"""What is on an HTML page: links, title, description, canonical, robots, main text, language, SimHash?

A row of core/pages/content's table: one decoding, one tree, then each question to the module that knows it.
"""

from __future__ import annotations

from collections.abc import Callable

from crawltool.core.pages import html, links, maintext, simhash, text
from crawltool.core.pages.reading import Reading, Sheet
from crawltool.records import Link, Page


def read(sheet: Sheet) -> Reading:
    """Read a page; never raises, whatever it holds."""
    decoded, encoding = sheet.decoded()
    document = html.parse(decoded)
    page, found, lang = _structure(document, sheet)
    page.charset = encoding.lower()
    markup = document.html
    main = maintext.read(document)  # last: it uses the tree up
    describe(page, main, lang, lambda: text.whole(markup))
    return Reading(page, found, main, lambda: text.whole(markup))


def _structure(document: html.Document, sheet: Sheet) -> tuple[Page, list[Link], str | None]:
    """Give what the tree tells: the page without its text, its links, and the language it claims."""
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
    return page, found.links, head.lang


def describe(page: Page, main: str, lang: str | None, whole: Callable[[], str] | None = None) -> None:
    """Fill in what the text tells. A page without main text worth the name is known by all of its text."""
    fingerprint = simhash.fingerprint(main)
    page.text_bytes, page.words = len(main.encode()), fingerprint.words
    page.lang, page.lang_confidence = text.language(main, lang)
    if fingerprint.bits is None and whole is not None:
        fingerprint = simhash.fingerprint(whole())
    if fingerprint.bits is not None:
        page.simhash = simhash.to_hex(fingerprint.bits)
