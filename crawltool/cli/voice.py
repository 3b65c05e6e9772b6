"""How does crawltool speak to people on stderr?

Text for a person (`crawltool fetch: message`) or one JSON object a line with --log json; --quiet keeps warnings,
errors and the summary. Writing never raises: a closed stderr must not end a crawl. Made by cli/main, handed on as ctx.obj.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any, Literal, TextIO

Level = Literal["note", "warning", "error", "summary"]


class Voice:
    """Says things on stderr for one command."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.name = "crawltool"
        self.json = False
        self.quiet = False
        self.debug = False
        self.is_part = False  # of a crawl, which sums up for all stages
        self._stream = stream

    @property
    def on_terminal(self) -> bool:
        """Tell whether a person looks: rich may draw only then."""
        return not self.json and (self._stream or sys.stderr).isatty()

    def say(self, message: str, level: Level = "note", **facts: Any) -> None:
        """Say one thing. `facts` appear in JSON only: the message tells a person all of it."""
        if (self.quiet and level == "note") or (self.is_part and level == "summary"):
            return
        if self.json:
            import msgspec  # start-up time

            line = msgspec.json.encode(
                {"at": time.time(), "command": self.name, "level": level, "message": message} | facts
            ).decode()
        else:
            line = "\n".join(f"{self.name}: {part}" for part in message.splitlines())
        with contextlib.suppress(OSError, ValueError):
            stream = self._stream or sys.stderr
            stream.write(line + "\n")
            stream.flush()
