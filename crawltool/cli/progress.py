"""What does a person see while a crawl runs, and what is said at its end?

On a terminal one live line, redrawn from CRAWL/status.json; without one, a plain line every ten seconds. The sentences
of the start (how long it may take, what would shorten it) and of the summary are made here. The door of rich, which is
imported only on a terminal. Called by cli/crawl.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from crawltool.cli.units import spoken_duration, spoken_size
from crawltool.cli.voice import Voice

PLAIN_EVERY_S = 10.0
REDRAW_EVERY_S = 0.5
RATE_OVER_S = 30.0
LISTED = 12  # hosts or reasons named in the summary


class Status(msgspec.Struct):
    """The part of status.json that is shown; it is written by the frontier each second."""

    pages: int = 0  # page exchanges that got a status, what --max-pages counts
    ok_pages: int = 0  # those that gave a page
    bytes: int = 0
    queued: int = 0
    leased: int = 0
    done: int = 0
    duplicates: int = 0
    failed: dict[str, int] = {}
    refused: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    out_of_scope: dict[str, int] = {}
    hosts_waiting: int = 0
    hosts_ready: int = 0
    hosts_closed: dict[str, str] = {}
    hosts_resting: dict[str, float] = {}
    addresses_resting: dict[str, float] = {}  # several hosts there answered 429 or 503
    limit: str | None = None  # the crawl-wide limit that was reached
    held_back: dict[str, int] = {}  # queued, where a limit of their host is reached
    said: list[str] = []  # what the frontier wants known, the last few
    control: dict[str, Any] = {}  # what the operator set while it runs
    expected_s: float = 0.0
    slowest_host: str = ""


def read(directory: Path) -> Status:
    """Read status.json; an empty one when there is none yet."""
    try:
        return msgspec.json.decode((directory / "status.json").read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError):
        return Status()


def line(status: Status, rate: float) -> str:
    """Say where the crawl is, in one line. rate: pages a second, of late."""
    errors = sum(status.failed.values())
    parts = [f"{status.ok_pages:,} pages", f"{rate:.1f}/s", spoken_size(status.bytes), f"{status.queued:,} queued"]
    if errors:
        worst = ", ".join(f"{name} {count:,}" for name, count in largest(status.failed, 3))
        parts.append(f"{errors:,} failed ({worst})")
    parts.append(
        "paused: crawltool control resume" if status.control.get("paused") else f"{status.hosts_waiting:,} hosts waiting"
    )
    if status.expected_s >= 1:
        parts.append(f"about {spoken_duration(status.expected_s)} for what is queued")
    return " · ".join(parts)


def largest(counts: Mapping[str, int], at_most: int) -> list[tuple[str, int]]:
    """Give the largest counts."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:at_most]


class Progress:
    """Shows the status while the ring runs. Use as a context; call it at every tick."""

    def __init__(self, directory: Path, voice: Voice) -> None:
        self._directory, self._voice = directory, voice
        self._live: Any = None
        self._next_at = time.monotonic() + (REDRAW_EVERY_S if voice.on_terminal else PLAIN_EVERY_S)
        self._past: deque[tuple[float, int]] = deque()  # (time, pages)

    @property
    def is_live(self) -> bool:
        """Tell whether a line is redrawn, so that what the stages say must go above it."""
        return self._voice.on_terminal and not self._voice.quiet

    def __enter__(self) -> Progress:
        if self.is_live:
            from rich.console import Console
            from rich.live import Live

            # No refresh thread: signals must find the main thread alone.
            self._live = Live("", console=Console(stderr=True), auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def tick(self, words: bytes) -> None:
        """Show what the stages said, and from time to time the status."""
        if words and self._live is not None:
            self._live.console.out(words.decode(errors="replace").rstrip("\n"), highlight=False)
        now = time.monotonic()
        if now < self._next_at:
            return
        status = read(self._directory)
        shown = line(status, self._rate(now, status.ok_pages))
        if self._live is not None:
            from rich.text import Text

            self._next_at = now + REDRAW_EVERY_S
            self._live.update(Text(shown, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            self._next_at = now + PLAIN_EVERY_S
            self._voice.say(shown, pages=status.ok_pages, queued=status.queued, failed=status.failed)

    def _rate(self, now: float, pages: int) -> float:
        """Give pages a second over the last RATE_OVER_S."""
        self._past.append((now, pages))
        while self._past[0][0] < now - RATE_OVER_S:
            self._past.popleft()
        then, before = self._past[0]
        return (pages - before) / (now - then) if now > then else 0.0


def opening(hosts: int, params: Mapping[str, Any], before: Status) -> str:
    """Say what the crawl may take, and what would shorten it."""
    rest_s, slots = params["delay"], params["per_host"]
    pace_s = rest_s / slots
    if before.queued:
        took = f"{before.ok_pages:,} pages are here and {before.queued:,} URLs queued"
        return f"resuming: {took}, about {spoken_duration(before.expected_s)} for these at the present pace"
    hosts, pages = max(hosts, 1), params["max_pages"] or 1000
    said = f"{hosts:,} host{'s' if hosts > 1 else ''} to begin with"
    if pace_s < 0.01:
        return f"{said}, asked without rest (--delay 0): as fast as they answer"
    said += f", each asked at most once in {spoken_duration(pace_s)}: {pages:,} pages take at least "
    said += spoken_duration(pages / hosts * pace_s)
    if rest_s >= 0.5:
        said += ". A smaller --delay or a larger --per-host shortens it, on hosts whose owner agrees; more hosts run side by side"
    return said


def closing(status: Status, took_s: float, asked_before: int) -> str:
    """Give the one-line summary. asked_before: page exchanges of earlier runs."""
    fresh = status.pages - asked_before
    parts = [
        f"{status.ok_pages:,} pages" + (f" ({fresh:,} asked for in this run)" if asked_before else ""),
        spoken_size(status.bytes),
    ]
    parts.append(spoken_duration(took_s))
    for word, counts in (("failed", status.failed), ("refused", status.refused)):
        if counts:
            parts.append(f"{sum(counts.values()):,} {word}")
    if status.queued + status.leased:
        parts.append(f"{status.queued + status.leased:,} left to do")
    return ", ".join(parts)


def details(status: Status) -> list[str]:
    """Give the rest of the summary, a line for each thing that a person may want to know."""
    said = []
    if status.verdicts:
        said.append("answers: " + _listed(status.verdicts))
    for word, counts in (("failed", status.failed), ("refused", status.refused), ("out of scope", status.out_of_scope)):
        if counts:
            said.append(f"{word}: " + _listed(counts))
    said += [f"host {name} was given up: {why}" for name, why in list(status.hosts_closed.items())[:LISTED]]
    said += [f"host {name} rests for {spoken_duration(s)} yet" for name, s in list(status.hosts_resting.items())[:LISTED]]
    said += [f"address {ip} rests for {spoken_duration(s)} yet" for ip, s in list(status.addresses_resting.items())[:LISTED]]
    said += [f"{count:,} URLs wait at hosts that had all their pages (--max-pages-host)" for count in status.held_back.values()]
    said += [f"stopped by --{status.limit.replace('_', '-')}; what it holds back stays queued"] if status.limit else []
    return said + status.said


def places(directory: Path) -> list[str]:
    """Tell where the files are, and how to look."""
    return [
        f"files: {directory}/warc (archives), {directory}/pages (text), {directory}/outcomes (log)",
        f"look with: crawltool log -C {directory}, crawltool dump -C {directory}, crawltool why URL -C {directory}",
    ]


def _listed(counts: Mapping[str, int]) -> str:
    items: Iterable[str] = (f"{name} {count:,}" for name, count in largest(counts, LISTED))
    return ", ".join(items) + (" …" if len(counts) > LISTED else "")
