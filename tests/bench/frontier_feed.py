"""The web of the frontier's benchmark: URLs that are computed from their index, draws of known ones, and lines to offer them.

Nothing is kept: URL i lies at host mix(i) % hosts, and its words are picked by the same bits. An index is also a rank: what was
found first is linked to most. Called by tests/bench/frontier_driver outside the measured time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from crawltool import records

Indices = npt.NDArray[np.int64]
ADDRESSES = 200_000  # distinct ones, shared by the hosts
WORDS = (
    b"about archive article autumn basket bridge budget camera castle center circle coffee copper corner county desert dinner "
    b"doctor dragon effect energy engine family farmer figure forest future garden gentle golden guitar harbor health history "
    b"holiday island jacket journal kitchen ladder letter library lumber market meadow memory mirror museum nature needle number "
    b"office orange palace people picture planet pocket policy public quiet rabbit record river"
).split()
assert len(WORDS) == 64
ROBOTS = records.Robots(
    rules=[("disallow", "/private/", 2), ("disallow", "/*?print=", 3), ("allow", "/private/open", 4), ("disallow", "/search", 5)]
)
HEADERS = {
    "date": "Tue, 01 Dec 2026 08:00:00 GMT",
    "content-type": "text/html; charset=utf-8",
    "server": "nginx/1.24.0",
    "cache-control": "max-age=600, public",
    "etag": '"5f3c-61a8c1d2e4b80"',
    "vary": "Accept-Encoding",
    "strict-transport-security": "max-age=31536000; includeSubDomains",
    "x-content-type-options": "nosniff",
}


def mix(indices: Indices) -> npt.NDArray[np.uint64]:
    """Spread indices over 64 bits. Source: the finalizer of splitmix64."""
    bits = indices.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def urls(indices: Indices, hosts: int) -> list[bytes]:
    """Give the URLs of some indices, 60 to 70 bytes each."""
    bits = mix(indices)
    places = (bits % np.uint64(hosts)).tolist()
    words = [((bits >> np.uint64(shift)) & np.uint64(63)).tolist() for shift in (40, 46, 52)]
    return [
        b"https://www.site%07d.com/%b/%b-%b-%09d.html" % (host, WORDS[one], WORDS[two], WORDS[three], index)
        for host, one, two, three, index in zip(places, *words, indices.tolist(), strict=True)
    ]


def one_host_urls(indices: Indices) -> list[bytes]:
    """Give URLs that all lie at one host."""
    return [b"https://www.one-big-site.com/archive/some-words-%09d.html" % index for index in indices.tolist()]


def drawn(rng: np.random.Generator, first_new: int, count: int, known_share: float, *, zipf: bool) -> tuple[Indices, int]:
    """Draw `count` indices of which a share is below `first_new`; give them and the next new index.

    zipf: index i is drawn in proportion to 1 / (i + 1), else all alike.
    """
    is_known = rng.random(count) < known_share
    new = count - int(is_known.sum())
    uniform = rng.random(count - new)
    known = np.exp(uniform * np.log(first_new + 1)) - 1 if zipf else uniform * first_new
    found = np.empty(count, np.int64)
    found[is_known] = np.minimum(known.astype(np.int64), first_new - 1)
    found[~is_known] = np.arange(first_new, first_new + new)
    return found, first_new + new


def candidate_lines(found: Sequence[bytes]) -> list[bytes]:
    """Give the lines in which parse hands on links that do not fit their outcome."""
    via = found[0]
    return [b'{"type":"candidate","url":"%b","via":"%b","depth":3}\n' % (url, via) for url in found]


class Answers:
    """Plays fetch, parse and dedup: one outcome line for each target."""

    def __init__(self) -> None:
        page = records.Page(title="A page with a title of some length", lang="en", text_bytes=5231, words=810, simhash="0" * 16)
        whole = records.encode(
            records.Outcome(
                url="", lease="", kind="page", verdict="ok", status=200, headers=HEADERS, content_type="text/html",
                timings={"connect": 0.011, "tls": 0.024, "first_byte": 0.041}, body_bytes=41822, wire_bytes=9310, page=page,
                digest="sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", warc=records.Locator(file="w" * 40, offset=1 << 29, length=9900),
            )
        )  # fmt: skip
        self._page = whole[whole.index(b'"kind"') : -2].replace(b"%", b"%%")

    def line(self, target: records.Target, now: float, links: Sequence[bytes] = ()) -> bytes:
        """Give the outcome of a target, with these links if it is a page."""
        if target.kind == "page":
            head = b'{"type":"outcome","url":"%b","lease":"%b",' % (target.url.encode(), target.lease.encode())
            times = b',"fetched_at":%.3f,"elapsed_s":0.087' % now
            found = b",".join([b'{"url":"%b","text":"words of a link","place":"main"}' % link for link in links])
            return head + self._page + times + (b',"links":[%b]}\n' % found if found else b"}\n")
        told = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict="ok")
        if target.kind == "address":
            told.addresses, told.ttl_s = [address_of(target.url)], 300.0
        else:
            told.status, told.fetched_at, told.elapsed_s, told.robots = 200, now, 0.045, ROBOTS
        return records.encode(told)


def address_of(url: str) -> str:
    """Give the address of a URL's host, one of ADDRESSES."""
    digits = "".join(filter(str.isdigit, url.split("/")[2]))
    number = int(mix(np.array([int(digits or 0)]))[0]) % ADDRESSES
    return f"20.{number >> 16}.{number >> 8 & 255}.{number & 255}"
