"""What did the operator decide about fetching?

The settings of stages/fetch, built by cli/fetch: who asks (law 10), how much and how long at most, and what follows from
that for the engine and the archive.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crawltool import limits
from crawltool.core.identity import Identity
from crawltool.core.mediatypes import TYPES
from crawltool.net import guard
from crawltool.net.dns import Pin
from crawltool.net.engine import EngineSettings


@dataclass(frozen=True)
class Settings:
    """What the operator decided. Seconds and bytes."""

    dir: Path
    product: str
    contact: str | None = None
    robots_token: str = "crawltool"
    concurrency: int = 500
    timeout_connect_s: float = 10.0
    timeout_first_byte_s: float = 20.0
    timeout_total_s: float = 120.0
    max_body_bytes: int = 10 * limits.MIB
    types: tuple[str, ...] = TYPES
    allow_nets: tuple[guard.Net, ...] = ()
    pins: tuple[Pin, ...] = ()
    from_warc: tuple[Path, ...] = ()  # archives to answer from; none: the network
    body_memory_bytes: int = limits.BODY_MEMORY_BYTES
    min_free_bytes: int | None = None  # None: limits.FREE_BYTES_MIN or FREE_SHARE_MIN of the disk, whichever is less
    max_rest_s: float = 900.0  # how long a full disk may pause the stage
    input: str = "-"
    output: str = "-"
    routes: tuple[str, ...] = ()
    strict: bool = False
    grace_s: float = limits.GRACE_S

    @property
    def identity(self) -> Identity:
        """Give who asks."""
        return Identity(self.product, self.contact, self.robots_token)

    @property
    def engine(self) -> EngineSettings:
        """Give the engine's settings; large bodies lie, unlinked, on the crawl's own disk."""
        return EngineSettings(self.allow_nets, self.body_memory_bytes, str(self.dir))

    def warcinfo(self) -> dict[str, str]:
        """Give the fields of the warcinfo record of every archive file."""
        agent = dict(self.identity.headers())["User-Agent"]
        fields = {"software": self.product, "http-header-user-agent": agent, "robots": "obey"}
        return fields | ({"operator": self.contact} if self.contact else {})
