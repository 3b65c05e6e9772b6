"""How does fetch wait while the disk is nearly full?

A companion of stages/fetch. core/diskroom is the rule; here are the clock, the look at the disk and the words. While it is
paused nothing new is asked and nothing is stored; what is in the air lands and waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import trio

from crawltool import limits
from crawltool.core.diskroom import DiskRoom, least_bytes
from crawltool.errors import DiskTrouble


class Room:
    """Whether the crawl's disk has room. `is_paused` is true from --min-free until a fifth more is free, or until resign()."""

    def __init__(self, directory: Path, min_free_bytes: int | None, patience_s: float, say: Callable[[str], object]) -> None:
        self._directory, self._min_free_bytes, self._say = directory, min_free_bytes, say
        self._rule = DiskRoom(0, patience_s)
        self._has_room = trio.Event()
        self._has_room.set()
        self._is_resigned = self._is_over = False

    @property
    def is_paused(self) -> bool:
        """Tell whether nothing may be asked or stored now."""
        return not self._has_room.is_set()

    async def wait(self) -> None:
        """Wait for the end of a pause."""
        await self._has_room.wait()

    def look(self) -> None:
        """Look at the disk, and begin or end a pause."""
        if self._is_resigned:
            return
        disk = os.statvfs(self._directory)
        self._rule.least_bytes = least_bytes(self._min_free_bytes, disk.f_blocks * disk.f_frsize)
        has_room = self._rule.look(disk.f_bavail * disk.f_frsize, trio.current_time())
        if has_room and self.is_paused:
            self._has_room.set()
            self._say("there is space on the disk again: going on")
        elif not has_room and not self.is_paused:
            self._has_room = trio.Event()
            self._say(f"{self._shortage()}: paused until there is a fifth more, at most {self._rule.patience_s:g} s (--max-rest)")

    def resign(self) -> None:
        """End the pause for good: what was fetched is stored into the space that --min-free kept."""
        self._is_resigned = True
        self._has_room.set()

    def check(self) -> None:
        """Raise DiskTrouble when a pause took as long as it may; called when all that came is stored."""
        if self._is_over:
            raise DiskTrouble(self._shortage())

    async def watch(self, on_look: Callable[[], None], on_over: Callable[[], None]) -> None:
        """While paused, look once a second; `on_look` is called after each look, `on_over` when the patience ends."""
        while not self._is_resigned:
            await trio.sleep(limits.FREE_LOOK_S)
            if not self.is_paused:
                continue
            self.look()
            if self._rule.is_over(trio.current_time()):
                self._is_over = True
                self.resign()
                on_over()
            on_look()

    def _shortage(self) -> str:
        least = self._rule.least_bytes / limits.MIB
        return f"{self._directory}: less than --min-free ({least:.0f} MiB) is left on the disk"
