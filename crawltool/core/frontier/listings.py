"""Which URLs may a sitemap list, and how far is it believed?

A sitemap lists URLs of its own host; those of another host only where that host's robots.txt named it, or the operator did
(sitemaps.org, "Sitemaps & Cross Submits"). The more of what a host's sitemaps listed is gone, the later the rest goes.
Called by core/frontier/lessons for what a sitemap's outcome found, and by core/frontier/turn for lists that went ahead of
it as candidates.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawltool.core.frontier.ledger import Ledger
from crawltool.core.frontier.reputation import Conduct
from crawltool.core.frontier.rows import Entry
from crawltool.core.urls import split, split_once

PRIOR_LISTED = 10  # good URLs every host's sitemaps are credited with
DISTRUST_POINTS = 2.0  # what a sitemap that lists nothing but ruins costs its URLs: they go to the lowest class
NOT_ITS_OWN = "sitemap_of_another_host"


def trust(conduct: Conduct) -> float:
    """Tell how far a host's sitemaps are believed: 1 - gone / (listed + 10)."""
    return 1.0 - conduct.listed_gone / (conduct.listed + PRIOR_LISTED)


def weigh(found: Iterable[Entry], sitemap: Entry, conduct: Conduct, ledger: Ledger) -> list[Entry]:
    """Keep what a sitemap may list, at the priority it is believed; the others are counted by host."""
    own = {url.host for url in (split(sitemap.url), split(sitemap.for_) if sitemap.for_ else None) if url is not None}
    believed, kept = trust(conduct), []
    for entry in found:
        url = split_once(entry.url)
        leads_on = entry.kind == "sitemap" and entry.hops > sitemap.hops  # where the sitemap itself has moved to
        if url is not None and url.host not in own and not sitemap.seed and not leads_on:
            ledger.out(NOT_ITS_OWN, url.host)
            continue
        if entry.kind == "sitemap":
            entry.for_ = sitemap.for_
        else:
            entry.listed = True
            entry.priority = entry.priority * believed - DISTRUST_POINTS * (1.0 - believed)
        kept.append(entry)
    return kept
