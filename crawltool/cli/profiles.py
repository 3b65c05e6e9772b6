"""Which defaults does a purpose want?

A profile replaces built-in defaults and nothing else: what you set in a config file, the environment or a flag wins
over it. Read by cli/policy; crawltool-init(1) prints the table.
"""

from __future__ import annotations

PROFILES: dict[str, dict[str, str]] = {
    # Your own site, or one whose owner asked for it: quick, and never another host.
    "audit": {"delay": "0.2s", "delay_factor": "1", "per_host": "4", "per_ip": "4", "scope": "host"},
    # Many hosts, little of each: one slow or endless host must not hold the crawl.
    "broad": {
        "scope": "all",
        "max_depth": "8",
        "max_pages_host": "1000",
        "max_queued_host": "10k",
        "retries": "1",
        "timeout_total": "1m",
    },
    # To be kept: everything as it is, whatever its type and size, with patience.
    "archive": {"types": "all", "max_body": "1GiB", "timeout_total": "10m", "lease": "30m", "max_depth": "none"},
}
# The pace of audit is right only where the operator typed the host: these scopes keep to such hosts.
AUDIT_SCOPES = ("host", "prefix")
