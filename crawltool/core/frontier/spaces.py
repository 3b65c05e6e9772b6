"""Does a part of a host feed itself without an end?

Called by core/frontier/discovery for each page outcome.

A space is a directory of a host (its first directories, numbers taken as `*`; a page with a query is a directory of its own).
It is judged in windows of WINDOW fetches. A window keeps on when nearly every page found something new, as much was found as
was fetched, and the space feeds itself: its pages were found on its own pages, and lead nowhere else. On eight documentation
sites, breadth first, no window of any space had more than 61 of 100 pages that found something; in an endless space nearly
all do. An honest site may keep on for a while (a book read by its "next" links, a large wiki), so an alarm needs LONG windows
in a row in which the yield does not fall, or SHORT ones with evidence that honest sites do not show. A book of more than
LONG * WINDOW pages that are linked by "next" only cannot be told from a calendar: it raises an alarm.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from crawltool.core.frontier.patterns import TARGET_CHARS_MAX

WINDOW = 100  # fetches judged together
SHORT, LONG = 8, 15  # windows in a row: with evidence, and without
PRODUCTIVE_MIN = 0.8  # share of pages that found something new
NEW_MIN = 0.9  # new URLs per page: below 1 the queue of the space shrinks
OWN_MIN = 0.8  # of the pages found in the space, the share that lies in it
SELF_MIN = 0.5  # of the pages in the space, the share that was found in it
FLAT_MIN = 0.8  # yield of the last EDGE windows against the first EDGE of the streak …
BRANCHING_FLAT_MIN = 0.9  # … where a page finds BRANCHING or more without evidence: the yield of a wiki falls
BRANCHING = 2.0  # new URLs per page; a chain finds one
EDGE = 4  # windows
COPIES_MIN = 0.5  # share of duplicates and near-duplicates
FRESH_MIN = 0.85  # share of links that lead to something new: honest pages have menus
REPEATS_MIN = 0.5  # share of URLs that name a directory or a query key twice
GROWTH_MIN = 1.5  # length of the URLs, later half against earlier half
SAMPLES_MAX = 16  # URLs from which a pattern is named
SAMPLE_EVERY = 47  # fetches: neighbours in a queue look alike


class Fetched(NamedTuple):
    """One page outcome, as the frontier settles it. All targets are path and query."""

    host: str
    target: str
    via: str | None  # target of the page on the same host that named it first; none for seeds, sitemaps, other hosts
    found: int  # links to URLs of this host that the policy follows
    new: int  # those of them that were admitted as new
    copy: bool  # `dup` says exact or near
    pages: int  # of the host so far, in this and earlier runs


class Window:
    """The counts of WINDOW fetches of a space."""

    __slots__ = ("chars", "copies", "fetches", "found", "left", "new", "own", "productive", "repeats")

    def __init__(self) -> None:
        self.fetches = self.new = self.productive = self.found = self.copies = 0
        self.own = self.left = self.repeats = self.chars = 0

    def add(self, page: Fetched, own: bool, repeated: bool) -> None:
        """Count one page of the space."""
        self.fetches += 1
        self.new += page.new
        self.productive += page.new > 0
        self.found += page.found
        self.copies += page.copy
        self.own += own
        self.repeats += repeated
        self.chars += len(page.target)

    def keeps_on(self) -> bool:
        """Tell whether the space fed itself in this window and found as much as was fetched."""
        return (
            self.productive >= PRODUCTIVE_MIN * self.fetches
            and self.new >= NEW_MIN * self.fetches
            and self.own >= SELF_MIN * self.fetches
            and self.own >= OWN_MIN * (self.own + self.left)
        )


class Space:
    """One directory of a host: the window being counted, and the windows in a row that kept on."""

    __slots__ = ("fetches", "first", "kept", "samples", "streak", "window")

    def __init__(self) -> None:
        self.fetches = 0
        self.kept = 0  # windows in a row that kept on
        self.first = 0  # new URLs in the first EDGE of them
        self.window = Window()
        self.streak: deque[Window] = deque(maxlen=SHORT)
        self.samples: deque[str] = deque(maxlen=SAMPLES_MAX)

    def add(self, page: Fetched, own: bool, repeated: bool) -> list[str] | None:
        """Count one page; at the end of a window give the reasons for an alarm, or None."""
        self.fetches += 1
        self.window.add(page, own, repeated)
        if self.fetches % SAMPLE_EVERY == 0:
            self.samples.append(page.target[:TARGET_CHARS_MAX])
        if self.window.fetches < WINDOW:
            return None
        window, self.window = self.window, Window()
        if window.keeps_on():
            self.kept += 1
            self.first += window.new if self.kept <= EDGE else 0
            self.streak.append(window)
            return self._why()
        self.kept = self.first = 0
        self.streak.clear()
        return None

    def _why(self) -> list[str] | None:
        windows = list(self.streak)
        yield_kept = sum(window.new for window in windows[-EDGE:]) / max(self.first, 1)
        if self.kept < SHORT or yield_kept < FLAT_MIN:
            return None
        if found := evidence(windows):
            return found
        is_branching = self.new_per_page() >= BRANCHING
        if self.kept < LONG or (is_branching and yield_kept < BRANCHING_FLAT_MIN):
            return None
        return [f"nearly each of the last {LONG * WINDOW:,} pages found something new"]

    def new_per_page(self) -> float:
        """Tell what a page of the windows that kept on found."""
        return sum(window.new for window in self.streak) / max(len(self.streak) * WINDOW, 1)


def evidence(windows: list[Window]) -> list[str]:
    """Name what these windows show that honest sites do not."""
    half, fetches = len(windows) // 2, len(windows) * WINDOW
    copies, repeated = sum(w.copies for w in windows) / fetches, sum(w.repeats for w in windows) / fetches
    found, new = sum(w.found for w in windows), sum(w.new for w in windows)
    growth = sum(w.chars for w in windows[-half:]) / max(sum(w.chars for w in windows[:half]), 1)
    said = []
    if copies >= COPIES_MIN:
        said.append(f"{copies:.0%} of its pages are copies")
    if found and new / found >= FRESH_MIN:
        said.append(f"{new / found:.0%} of its links are new, so nearly none leads back")
    if repeated >= REPEATS_MIN:
        said.append(f"{repeated:.0%} of its URLs repeat a directory or a query key")
    if growth >= GROWTH_MIN:
        said.append(f"its URLs grew {growth:.1f} times as long")
    return said
