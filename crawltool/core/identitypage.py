"""What does a crawler tell about itself to those it visits?

The page that whoever finds the crawler in a log looks for (who, why, how fast, how to be left alone), and the list of its
addresses in the shape that the large crawlers publish theirs. All of it is the operator's own words and is escaped. Called
by cli/fetchidentity.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from ipaddress import ip_address
from typing import NamedTuple

import msgspec


class About(NamedTuple):
    """What the page tells. agent: the User-Agent as sent; per_host requests at once, with delay_s between them."""

    product: str
    agent: str
    contact: str
    robots_token: str
    per_host: int
    delay_s: float


def page(about: About) -> str:
    """Write bot.html: one file, no scripts, nothing loaded from elsewhere."""
    token = escape(about.robots_token)
    sections = [
        ("Who asks", f"<p>{token} is a web crawler. It says who it is in every request:</p>\n<pre>{escape(about.agent)}</pre>"),
        ("Who answers for it", f"<p>{_contact(about.contact)}</p>"),
        ("How to keep it out", _OPT_OUT.format(token=token, contact=_contact(about.contact))),
        ("How fast it goes", _PACE.format(number=_requests(about.per_host), delay=f"{about.delay_s:g}")),
        ("How to know it", _KNOW),
    ]
    body = "\n".join(f"<h2>{title}</h2>\n{text}" for title, text in sections)
    return _PAGE.format(name=token, body=body)


def ranges(addresses: Sequence[str], created: str) -> bytes:
    """Write ip-ranges.json: one prefix for each address. created: ISO 8601, UTC."""
    parsed = sorted({ip_address(one) for one in addresses}, key=lambda one: (one.version, int(one)))
    prefixes = [{f"ipv{one.version}Prefix": f"{one}/{one.max_prefixlen}"} for one in parsed]
    return msgspec.json.format(msgspec.json.encode({"creationTime": created, "prefixes": prefixes}), indent=2) + b"\n"


def _contact(contact: str) -> str:
    """Link a mail address or a web address; anything else stays text."""
    plain = contact.removeprefix("mailto:")
    if contact.startswith(("http://", "https://")):
        return f'<a href="{escape(contact)}">{escape(contact)}</a>'
    if "@" in plain and ":" not in plain:
        return f'<a href="mailto:{escape(plain)}">{escape(plain)}</a>'
    return escape(contact)


def _requests(per_host: int) -> str:
    return "one request" if per_host == 1 else f"{per_host} requests"


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}: about this crawler</title></head>
<body>
<h1>{name}</h1>
{body}
</body>
</html>
"""
_OPT_OUT = """<p>It reads robots.txt (RFC 9309) before the first page of a site, and again every few hours. To keep it out of
all of a site, write:</p>
<pre>User-agent: {token}
Disallow: /</pre>
<p>To keep it out of a part, and to slow it down:</p>
<pre>User-agent: {token}
Disallow: /calendar/
Crawl-delay: 10</pre>
<p>It follows no link marked <code>nofollow</code>, and rests when a server answers 429 or 503, for as long as
Retry-After says. To be left out altogether, or when it does harm, write to {contact}; please name the host.</p>"""
_PACE = """<p>It makes {number} at a time to a host, and lets {delay} seconds pass between the end of one and the start of the
next, and more where robots.txt asks for more.</p>"""
_KNOW = """<p>Anybody can send its name. Its requests come from the addresses in
<a href="ip-ranges.json">ip-ranges.json</a>; the name that an address has (its PTR record) leads back to the same address.</p>"""
