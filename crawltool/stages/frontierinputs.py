"""Where do the frontier's lines come from, and which types may each source send?

Channels, not claims, give trust: the operator's inbox may send everything, the input what --accept names, and a folder of
inbox.d candidates only. Folders that appear while the frontier runs are found within a few seconds. A part of
stages/frontier.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from pathlib import Path

from crawltool import limits, records
from crawltool.core.frontier.channels import NAME, OPERATOR
from crawltool.core.frontier.turn import Event
from crawltool.errors import CannotHold
from crawltool.stages.sources import AsyncSource, Batch, Inputs, SpoolFeed
from crawltool.stages.where import Trouble
from crawltool.stores.spoolread import SpoolReader

OF_OPERATOR = frozenset(records.TYPES.values())
OF_CHANNELS = frozenset({records.Candidate})


class ChannelFeed(SpoolFeed):
    """A spool that others own: when they remove it, it is over, and the crawl goes on."""

    def read(self) -> Batch | None:
        """Give the lines of the next segment."""
        try:
            return super().read()
        except FileNotFoundError:
            self.ended = True
            return None

    def is_empty(self) -> bool:
        """Tell whether nothing waits."""
        try:
            return self.reader.is_empty()
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Publish again what was claimed and not done."""
        with contextlib.suppress(FileNotFoundError):
            super().close()


class Doors:
    """The input, the operator's inbox, and the channels of inbox.d."""

    def __init__(self, directory: Path, source: AsyncSource, inbox: AsyncSource, accept: Collection[str]) -> None:
        self.folder = directory / "inbox.d"
        self.inbox = inbox
        self.inputs = Inputs(source, inbox)
        self.accept = frozenset(records.TYPES[name] for name in accept)
        self.channels: dict[str, AsyncSource] = {}
        self.names = {inbox.feed.origin: OPERATOR}  # by origin; the input has none
        self.strange: set[str] = set()  # folders that are no channel, told once
        self.own = [source, inbox]
        self.dropped = 0  # lines so far that no batch has

    def rescan(self) -> list[str]:
        """Open channels that are new; the result says which folders cannot be one."""
        said = []
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else []:
            name = path.name
            if name in self.channels or name in self.strange or name.startswith(".") or not path.is_dir():
                continue
            if not NAME.fullmatch(name) or name == OPERATOR or len(self.channels) >= limits.CHANNELS_MAX:
                self.strange.add(name)
                said.append(f"{path} is not read: its name is no channel's, or there are {limits.CHANNELS_MAX} already")
                continue
            try:
                source = AsyncSource(ChannelFeed(SpoolReader(path), Trouble(), endless=True))
            except CannotHold as error:
                self.strange.add(name)
                said.append(f"{path} is not read: {error}")
                continue
            self.channels[name] = source
            self.names[source.feed.origin] = name
            self.inputs.add(source)
        return said

    def events(self, batch: Batch, bad: Callable[[bytes, str], None], refused: Callable[[str], None]) -> list[Event]:
        """Read a batch's lines. bad is told of lines that are no record, refused of records that may not come this way."""
        channel = self.names.get(batch.origin, "")
        allowed = OF_OPERATOR if channel == OPERATOR else self.accept if not channel else OF_CHANNELS
        events = []
        for line in batch.lines:
            try:
                record = records.decode(line)
            except ValueError as error:
                bad(line, str(error))
                continue
            if type(record) in allowed:
                events.append(Event(record, line, channel))
            elif isinstance(record, records.Control):
                refused("control: not from the operator")
            else:
                refused(f"{type(record).__name__.lower()}: not from {f'inbox.d/{channel}' if channel else 'the input'}")
        return events

    def newly_dropped(self) -> int:
        """Count lines that were dropped while they were read since this was asked last: longer than a record may be."""
        before = self.dropped
        self.dropped = sum(source.feed.trouble.total for source in (*self.own, *self.channels.values()))
        return max(self.dropped - before, 0)

    def is_quiet(self, is_full: Callable[[str], bool]) -> bool:
        """Tell whether nothing waits in the spools and nobody is about to write into the inbox (looked at in this order).

        Others cannot keep a crawl from its end: their writers do not count, nor does a channel that has used up its quota.
        """
        feed = self.inbox.feed
        assert isinstance(feed, SpoolFeed)
        if feed.reader.writers_alive() or not feed.reader.is_empty():
            return False
        feeds = [source.feed for name, source in self.channels.items() if not source.ended and not is_full(name)]
        return all(feed.is_empty() for feed in feeds if isinstance(feed, ChannelFeed))

    def segment_of(self, batch: Batch) -> bytes | None:
        """Give the META key that says a segment's lines are in the database already; None for what is no segment."""
        if batch.name is None:
            return None
        channel = self.names.get(batch.origin, "")
        return applied_key(batch.name if channel in ("", OPERATOR) else f"{channel}/{batch.name}")


def applied_key(segment: str) -> bytes:
    """Give the META key of a segment that was applied."""
    return b"applied:" + segment.encode()
