"""Which hosts there are: a row is a name, a behaviour of tests/web/behaviours and its settings.

Addresses are given in the order of the rows, from NET.1 on. A corner is a set of rows with its own net.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

from tests.web import behaviours

for found in pkgutil.iter_modules(behaviours.__path__):
    importlib.import_module(f"tests.web.behaviours.{found.name}")

REFUSED = "refused"  # the one behaviour without a socket: nobody listens


@dataclass(frozen=True)
class Corner:
    """A part of the web that is served together."""

    net: str
    rows: dict[str, str]


DEMO = {
    "shop": "shop",
    "blog": "blog",
    "library": "library",
    "calendar": "calendar robots=1",
    "letters": "charsets",
    "old-shop": "moved to=shop",
    "private": "robots_all",
}

ALL = {
    "plain": "plain",
    "many": "many",
    "redirects": "redirects",
    "moved": "moved to=plain",
    "sitemap": "sitemaps",
    "bigmap": "bigmap",
    "calendar": "calendar",
    "facets": "facets",
    "sessions": "sessions",
    "soft404": "soft404",
    "maze": "maze",
    "hidden": "hidden",
    "duplicates": "duplicates",
    "hostcase": "hostcase",
    "charsets": "charsets",
    "slow": "slow",
    "silent": "silent",
    "drip-body": "drip_body",
    "drip-headers": "drip_headers",
    "endless-headers": "endless_headers",
    "endless-body": "endless_body",
    "endless-chunks": "endless_chunks",
    "endless-1xx": "endless_1xx",
    "bombs": "bombs",
    "big": "big",
    "deep": "deep",
    "refused": REFUSED,
    "reset": "reset",
    "cut": "cut",
    "hang-up": "hang_up",
    "idle-close": "idle_close",
    "drop": "drop",
    "busy": "busy",
    "busy-seconds": "busy retry=seconds",
    "busy-date": "busy retry=date",
    "busy-then-well": "busy retry=seconds for_n=3 retry_s=1",
    "unavailable": "busy status=503",
    "flaky": "flaky",
    "chunked": "chunked",
    "encodings": "encodings",
    "headers": "odd_headers",
    "validators": "validators",
    "robots-bom": "robots_bom",
    "robots-503": "robots_status status=503",
    "robots-404": "robots_status status=404",
    "robots-403": "robots_status status=403",
    "robots-429": "robots_status status=429",
    "robots-moved": "robots_moved to=robots-delay",
    "robots-loop": "robots_loop",
    "robots-html": "robots_html",
    "robots-huge": "robots_huge",
    "robots-changing": "robots_changing",
    "robots-delay": "robots_delay",
    "robots-sections": "robots_sections",
    "robots-slow": "robots_slow",
    "robots-all": "robots_all",
}

CORNERS = {"all": Corner("127.0.8", ALL), "demo": Corner("127.0.4", DEMO)}
