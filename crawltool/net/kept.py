"""Was an idle connection closed by its server before we use it again?

libcurl 8 looks at an idle connection only when it has rested for over a second, and else sends into a closed one. Looking
ourselves, before the request is sent, lets the engine take a fresh connection without sending anything twice (law 5).
Called by net/handle.py from the callback that precedes every request.
"""

from __future__ import annotations

import select
from collections import OrderedDict


class KeptSockets:
    """Which descriptor belongs to which idle connection, by the connection's local end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._descriptors: OrderedDict[tuple[str, int], int] = OrderedDict()

    def note(self, ip: str, port: int, descriptor: int) -> None:
        """Remember the connection of an exchange that ended well; a negative descriptor means: it is closed."""
        if descriptor < 0:
            return
        self._descriptors[ip, port] = descriptor
        if len(self._descriptors) > self._most:
            self._descriptors.popitem(last=False)

    def is_stale(self, ip: str, port: int) -> bool:
        """Tell whether a connection about to be used has something to read: its end, or an answer nobody asked for.

        A descriptor that meanwhile belongs to another socket can only give a wrong True: one fresh connection more.
        """
        descriptor = self._descriptors.pop((ip, port), None)
        if descriptor is None:
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
