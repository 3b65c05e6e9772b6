"""Who asks, and how does every request say so?

Part of law 10: honest by default. Called by stages/fetch for requests and for what the archive tells about itself.
"""

from __future__ import annotations

from typing import NamedTuple

from crawltool.core import decoding

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class Identity(NamedTuple):
    """Who asks: product is `name/version`, contact a mail address or URL (None: only loopback is asked)."""

    product: str
    contact: str | None
    robots_token: str

    def headers(self) -> list[tuple[str, str]]:
        """Give the header fields that every request carries."""
        agent = f"{self.product} (+{self.contact})" if self.contact else self.product
        fields = [("User-Agent", agent), ("Accept", ACCEPT), ("Accept-Encoding", decoding.ACCEPTED)]
        if self.contact and "@" in self.contact and "://" not in self.contact:
            fields.insert(1, ("From", self.contact.removeprefix("mailto:")))
        return fields
