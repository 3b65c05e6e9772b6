"""The counts that must match (law 6): every accepted URL is queued, leased, done, failed or refused.

Kept in the same batch as what they count. Called by core/frontier/book; printed by crawl, status.json and why.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

REASONS_MAX = 1000  # hosts named in a count of out-of-scope links, saved with each turn; the rest is counted together


class Ledger(msgspec.Struct):
    """Counters of one crawl, over all its runs."""

    accepted: int = 0
    queued: int = 0
    leased: int = 0
    done: int = 0
    failed: dict[str, int] = {}
    refused: dict[str, int] = {}
    pages: int = 0  # page exchanges that got a status
    pages_out: int = 0  # page leases that are out
    bytes: int = 0  # body bytes of all exchanges
    verdicts: dict[str, int] = {}
    exchanges: int = 0
    duplicates: int = 0  # links to URLs that are known
    out_of_scope: dict[str, int] = {}  # reason -> links
    out_of_scope_hosts: dict[str, int] = {}
    lines_refused: dict[str, int] = {}  # lines that are not ours to act on: foreign leases, unknown types …
    late: int = 0
    alarms: dict[str, int] = {}  # host -> spaces of it that seem to have no end
    ok_pages: int = 0

    def check(self) -> None:
        """Assert that the sums match."""
        parts = self.queued + self.leased + self.done + sum(self.failed.values()) + sum(self.refused.values())
        assert self.accepted == parts, self

    def out(self, reason: str, host: str) -> None:
        """Count a link that is out of scope: not stored, not accepted."""
        bump(self.out_of_scope, reason)
        bump(
            self.out_of_scope_hosts,
            host if len(self.out_of_scope_hosts) < REASONS_MAX or host in self.out_of_scope_hosts else "…",
        )

    def lines(self) -> Iterator[tuple[str, int]]:
        """Give the non-zero counts of what was refused or failed, largest first."""
        both = {**{f"failed: {k}": v for k, v in self.failed.items()}, **{f"refused: {k}": v for k, v in self.refused.items()}}
        yield from sorted(both.items(), key=lambda pair: -pair[1])


ledger_of = msgspec.msgpack.Decoder(Ledger).decode


def bump(counts: dict[str, int], name: str, by: int = 1) -> None:
    """Add to one count of a dict; a count of zero is not kept."""
    value = counts.get(name, 0) + by
    if value:
        counts[name] = value
    else:
        counts.pop(name, None)
