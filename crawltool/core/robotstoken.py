"""By what name does the owner of a site speak of us in his robots.txt?

Source: RFC 9309 section 2.2.1. Called by the cli for --robots-token.
"""

from __future__ import annotations

import re

TOKEN = "crawltool"
_TOKEN = re.compile(r"[A-Za-z_-]+")


def is_token(text: str) -> bool:
    """Tell whether a text may be the name of a group."""
    return _TOKEN.fullmatch(text) is not None


def token_of(product: str) -> str:
    """Give the name that an owner who sees `product` in his log would write."""
    found = _TOKEN.match(product)
    return found[0].strip("-") or TOKEN if found is not None else TOKEN
