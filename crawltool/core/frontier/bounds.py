"""The operator's limits on what becomes part of a crawl, as plain numbers. core/frontier/{admission,release} judge by them."""

from __future__ import annotations

from dataclasses import dataclass

AUTO = -1  # of domain_budget: by how many domains link there (core/frontier/budgets)


@dataclass(frozen=True)
class Bounds:
    """The operator's limits. None is no limit."""

    max_depth: int | None = 16
    max_url_bytes: int = 2048
    max_segments: int | None = 64  # directories of a path
    max_queued_host: int | None = 1_000_000
    max_pages_host: int | None = 10_000  # not for hosts the operator typed
    max_pages_dir: int | None = None
    domain_budget: int | None = None  # URLs of a registrable domain; not for seeds
    max_pages: int | None = None
    max_bytes: int | None = None
    shard: tuple[int, int] | None = None  # (i, n): only the hosts of share i of n, by hash of the name
