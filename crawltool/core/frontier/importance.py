"""How much is a URL worth before anybody has fetched it? Answers for `--order opic` and `--order inlinks`.

Called by core/frontier/admission and core/frontier/settling, turn by turn. Nothing of the crawl is held here: the frontier
reads the rows of the URLs that a turn touches (table IMPORTANCE), hands them in, and writes those that changed in the
turn's own batch: cash moves in the same instant as the outcome that moved it (law 3), and no crash makes or loses any.

OPIC: Abiteboul, Preda, Cobena, Adaptive On-Line Page Importance Computation, WWW 2003. A URL has cash; a page that was
fetched books its cash as history and pays it to the URLs it links to; the estimate is a URL's share of all history and
cash. The paper's virtual page, which every page links to and which links to every page, is the `Root` here. It adds a
loan to what a page pays the first time, and takes back `TAX_PERCENT` of every payment, the parts of links out of scope,
what dead ends hold, and what does not divide. Cash is an integer, so all cash is what the root has lent, exactly.

The loan shrinks with the root of the number of pages fetched. Pages fetched early pay before their own in-links have
been seen; equal loans of all the later ones would drown them. On a power-law graph of 100,000 pages, each fetched once,
Spearman's correlation with PageRank is 0.94 so (tests/bench/opic.py) and was 0.845 with equal loans, the top 1 % is found
earlier (0.66 for 0.58 of it at 2 % fetched), and a farm of late pages earns half.

In-links: a page adds one unit to every URL it links to, once in its life. Same rows, same re-keying.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log2, sqrt
from typing import Literal, NamedTuple

Order = Literal["opic", "inlinks"]

UNIT = 10**9  # nano-units: the first loan. One of the ten-millionth page over 1,000 links is still 2,700 each
TAX_PERCENT = 15  # PageRank's usual damping of 0.85: cash that stays within one host melts away
PAGES_YOUNG = 100  # fetched pages after which the loan begins to shrink: 0.7 units then, 0.03 at 100,000
HOST_FULL = 10_000  # pages of one host after which its loans are halved: beyond, all together grow as the logarithm
GROWTH = 2  # a queued URL is keyed again when its value has grown so many times (DESIGN section 4)
_CAP = 2**64 - 1  # where history stops; cash never gets there: it would take 10^19 pages, or 10^10 in-links of one URL

_WORTH = struct.Struct("<QQQ")
_ROOT = struct.Struct("<QQQ")


class Worth:
    """The row of one URL, in nano-units: cash to pay, history paid, and its value when it was last keyed."""

    __slots__ = ("cash", "history", "keyed")

    def __init__(self, cash: int = 0, history: int = 0, keyed: int = 0) -> None:
        self.cash = cash
        self.history = history
        self.keyed = keyed

    @property
    def value(self) -> int:
        """What a queued URL is ordered by: all it ever received."""
        return self.cash + self.history

    def packed(self) -> bytes:
        """Pack the row: three little-endian u64."""
        return _WORTH.pack(self.cash, self.history, self.keyed)


def worth_of(row: bytes | None) -> Worth:
    """Read a packed row; None is a URL that no page has paid."""
    return Worth(*_WORTH.unpack(row)) if row is not None else Worth()


@dataclass(slots=True)
class Root:
    """The virtual page's books: what it has lent and the history of all pages, in nano-units; pages that have paid."""

    lent: int = 0
    history: int = 0
    pages: int = 0

    def packed(self) -> bytes:
        """Pack the row: three little-endian u64."""
        return _ROOT.pack(self.lent, self.history, self.pages)


def root_of(row: bytes | None) -> Root:
    """Read the packed row; a new crawl has none, and nothing is lent."""
    return Root(*_ROOT.unpack(row)) if row is not None else Root()


class Changes(NamedTuple):
    """What a turn did: rows to write, and the URLs whose value doubled with their new priority (for those queued)."""

    save: list[tuple[bytes, bytes]]
    grown: list[tuple[bytes, float]]


def loan(pages: int, host_pages: int) -> int:
    """Tell what the root adds to a page's first payment, in nano-units.

    pages, host_pages: how many pages have paid before, in the crawl and of this host. A host that makes up a million pages
    brings less than 46,200 units into circulation, whatever its links say.
    """
    return int(UNIT * sqrt(PAGES_YOUNG / (PAGES_YOUNG + pages)) * HOST_FULL / (HOST_FULL + max(host_pages, 0)))


def priority(value: int) -> float:
    """Map a value in nano-units to a priority: how often one unit must be doubled to give it.

    Monotone; 0 for one unit, 3 for eight, and -30 (one nano-unit) for a URL that got nothing. At most 35.
    """
    return log2(max(min(value, _CAP), 1) / UNIT)


def importance(worth: Worth, root: Root) -> float:
    """Estimate a URL's share of all importance: (history + cash) / (G + 1), where the paper's 1 is all cash there is.

    The shares of all URLs add up to 1. Under `inlinks` it has no meaning: `worth.cash` counts the links there.
    """
    return worth.value / max(root.history + root.lent, 1)


class Importance:
    """The rows that one turn touches. The caller hands them in with `hold`, lets things happen, and takes the changes."""

    def __init__(self, order: Order, root: Root) -> None:
        self.order = order
        self.root = root
        self._rows: dict[bytes, Worth] = {}
        self._changed: dict[bytes, None] = {}  # in the order of events: a replay writes the same bytes

    def unread(self, keys: Iterable[bytes]) -> list[bytes]:
        """Tell which rows must be handed in before these URLs are touched, each once."""
        rows = self._rows
        return [key for key in dict.fromkeys(keys) if key not in rows]

    def hold(self, keys: Sequence[bytes], rows: Sequence[bytes | None]) -> None:
        """Take rows as they were read. What this turn holds already is newer, and stays."""
        held, unpack = self._rows, _WORTH.unpack
        for key, row in zip(keys, rows, strict=True):
            if key not in held:
                held[key] = Worth(*unpack(row)) if row is not None else Worth()

    def settle(self, page: bytes, links: Iterable[bytes], *, outside: int = 0, host_pages: int = 0) -> None:
        """A page was fetched (or was given up: then without links). It pays, or its links are counted.

        links: keys of the URLs in scope that it leads to, a redirect's target too. outside: how many URLs more it links
        to, out of scope; their parts go to the root. host_pages: pages of its host that paid before. A URL named twice
        counts once, and the page itself not at all.
        """
        payees = dict.fromkeys(links)
        payees.pop(page, None)
        if self.order == "opic":
            self._pay(self._rows[page], payees, outside, host_pages)
        else:
            self._count(self._rows[page], payees)
        self.keyed(page)  # it left the queue; its history is no growth
        self._changed.update(payees)

    def arrive(self, key: bytes, *, seed: bool = False) -> float:
        """A URL is queued for the first time: give its priority. A seed gets a unit from the root.

        Called after the page that named it has paid, so that what it got counts.
        """
        if seed:
            self._rows[key].cash += UNIT
            self.root.lent += UNIT
        return self.keyed(key)

    def keyed(self, key: bytes) -> float:
        """A URL is queued, at its value of now: give the priority of that value."""
        worth = self._rows[key]
        worth.keyed = min(worth.value, _CAP)
        self._changed[key] = None
        return priority(worth.value)

    def take(self) -> Changes:
        """End the turn: give what changed, and let all rows go."""
        save: list[tuple[bytes, bytes]] = []
        grown: list[tuple[bytes, float]] = []
        rows, pack = self._rows, _WORTH.pack
        for key in self._changed:
            worth = rows[key]
            value = worth.cash + worth.history
            if value >= GROWTH * worth.keyed and value:
                grown.append((key, priority(value)))
                worth.keyed = min(value, _CAP)
            save.append((key, pack(worth.cash, worth.history, worth.keyed)))
        self._rows.clear()
        self._changed.clear()
        return Changes(save, grown)

    def _pay(self, payer: Worth, payees: dict[bytes, None], outside: int, host_pages: int) -> None:
        """Book the payer's cash and share it out, with a loan on top the first time."""
        rows, root, cash = self._rows, self.root, payer.cash
        budget = cash
        if not payer.history:
            budget += loan(root.pages, host_pages)
            root.pages += 1
        part = budget * (100 - TAX_PERCENT) // (100 * max(len(payees) + max(outside, 0), 1))
        for key in payees:
            rows[key].cash += part
        root.lent += part * len(payees) - cash
        booked = cash or 1  # one nano-unit marks a page that has paid: it gets no second loan
        payer.cash = 0
        payer.history = min(payer.history + booked, _CAP)
        root.history = min(root.history + booked, _CAP)

    def _count(self, page: Worth, payees: dict[bytes, None]) -> None:
        """Count a page's links, once however often it is fetched: a nano-unit of history says that they are."""
        if page.history:
            return
        page.history = 1
        for key in payees:
            self._rows[key].cash += UNIT
