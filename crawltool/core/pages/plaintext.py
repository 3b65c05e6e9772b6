"""What does a plain text file say? A row of core/pages/content's table: text without links, and JSON without either."""

from __future__ import annotations

from crawltool.core.pages import htmlpage
from crawltool.core.pages.reading import Reading, Sheet
from crawltool.records import Page


def read(sheet: Sheet) -> Reading:
    """Read plain text: no links, for what looks like a URL there need not be one."""
    decoded, encoding = sheet.decoded()
    page = Page(charset=encoding.lower(), robots=sheet.robots)
    htmlpage.describe(page, decoded, None)
    return Reading(page, [], decoded)


def read_nothing(sheet: Sheet) -> Reading:
    """Note that the type is known and has neither links nor text."""
    return Reading(Page(robots=sheet.robots))
