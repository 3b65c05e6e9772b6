"""crawltool frontier: the one owner of a crawl's state, reading outcomes and writing targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawltool import limits
from crawltool.cli import policy
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.errors import BadPolicy, Misuse

DESCRIPTION = """Decide which URL is fetched next, and when.

Reads outcomes (with their links) and candidates from the input and from DIR/inbox, keeps all state in DIR/frontier.db, and
writes targets. A target leaves only when its lease is on disk, and only when the clocks of its host and its address allow it.
One frontier runs on a directory; everything else may run many times and be killed at any instant."""
EXAMPLES = """
crawltool init -C c --contact me@example.org
crawltool seed https://example.org/ -o spool:c/inbox
mkfifo loop
crawltool frontier -C c --until-idle < loop | crawltool fetch -C c | crawltool parse -C c | crawltool dedup -C c > loop
crawltool frontier -C c --ban-file optouts.txt --channel feeds=5000,-1 --accept outcome < loop > targets.jsonl
mkdir -p c/back && crawltool frontier -C c --until-idle -i spool:c/back -o spool:c/targets
"""
NOTES = """
Without --until-idle the frontier waits for more candidates for ever. With it, it ends when no lease is out, nothing is queued
that a limit still lets go, and the inbox is empty and has no writer: it closes its output, reads its input to the end, and
exits. A host that fails five times in a row is given up until the next run; hosts that ask for longer rests than --max-rest
end the run with 75.

A host rests from the end of an exchange for --delay, --delay-factor times as long as the answer took (at most --adaptive-max),
or its Crawl-delay, whichever is longest. 429 and 503 let it rest as long as its Retry-After says, at most a day; without one
for --backoff, doubling with each more, and up to a tenth longer so that hosts do not come back together. Only half an hour of
quiet after the last rest begins that ladder anew. Failed connections, timeouts and rows of 5xx have a ladder of their own,
which an answer ends. When three hosts of one address answer 429 or 503 within ten minutes, the address rests too. All this is
kept in frontier.db, and crawltool why shows it.

Hosts are asked in turn, and of what is ready the classes of priority take turns: of 1,000 targets 720 urgent (10 points and
more), 150 high (1 and more), 100 normal, 30 low (under -1); the shares of classes with nothing ready go to the others. Within a
class what was found first goes first, and each point counts as an hour. Points come from --prefer, from a filter
(links[].priority), from a sitemap (its priority, and its lastmod beside the newest one there) and from a channel's trust.

--order opic fetches first what the crawl itself finds important. Each page hands what it has received, and a loan that shrinks
as the crawl grows, in equal parts to the pages it links to, less 15 %; a queued URL moves forward whenever what it holds has
doubled (Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation, 2003). Links to itself and repeated links
bring a page nothing, and a site that links only to itself keeps little. On power-law graphs of 100,000 pages the estimate
agrees with PageRank (Spearman 0.93 to 0.96 after one fetch of each page), and the first 2 % fetched hold 66 to 76 % of the top
1 %, breadth first 30 to 43 %. --order inlinks counts the pages that link to a URL: simpler, easier to cheat, 51 to 67 %. Both
cost one more row a URL and a look-up a link.

A URL that a limit keeps out is refused with the limit's name and kept: a raised limit, or a shorter path, queues it again.
--domain-budget auto lets a registrable domain bring in 1,000 URLs, and 500 more for each other domain that links there. A
sitemap may list URLs of its own host, and of the host whose robots.txt names it; the more of what a host's sitemaps listed is
gone, the later the rest goes.

A host that was found, not typed, is asked at the pace of its reputation: good = 1 - (duplicates + soft 404s + traps + errors /
2) / (pages + 10), reputation = good ** 1.5, never under 0.001, and its rest is divided by it. Of 1,000 pages 30 % duplicates
leave 0.59, half leave 0.36, 90 % leave 0.036; counts are halved at 8,192 pages. crawltool control reputation sets it by
hand. A host's crawl budget is the lesser of capacity (slots x 3,600 / (latency + rest) x (1 - share of failures) squared, pages
an hour) and demand (what is queued or its fair share, whichever is less, times reputation): crawltool why and dump print both.

Every ten seconds stats.jsonl tells how many new URLs a page gave lately, over all and for the busiest hosts, and which share
of pages were copies. Where the pages of a directory find new URLs in it without an end, and are mostly copies, link nearly
nowhere back, repeat directories or query keys, or grow longer, it is said once, with host and pattern, such as calendar.test
/day/*. Nothing is blocked: --exclude does that. A chain of more than 1,500 pages that are linked by 'next' alone looks the
same. Two thousand hosts are watched at a time.

Channels, not claims, give trust. DIR/inbox is the operator's: its seeds count as typed, and crawltool-control(1) steers through
it. Each folder DIR/inbox.d/NAME is a spool of somebody else's candidates, found while the frontier runs: it has a quota of URLs
and a trust, what its lines claim as priority counts within its class only, and its seeds are not typed. The input brings what
--accept names.

A ban file has a host or domain a line (example.org is that name and all below it, *.example.org only those below, =example.org
only the name), a URL glob with a slash, or re:EXPRESSION; # begins a comment. It is read again a few seconds after it changes:
what is queued is refused (banned), and what is not banned any more is queued again. ~/.config/crawltool/bans.txt holds for all
crawls of a user: the place for opt-outs.
"""


@click.command("frontier", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@use(
    "directory",
    "scope",
    "order",
    "politeness",
    "concurrency",
    "timeout_total",
    "lease",
    "room",
    "grace",
    "limits",
    "input",
    "accept",
    "output",
    "strict",
)
@click.option("--until-idle", is_flag=True, envvar="CRAWLTOOL_UNTIL_IDLE", help="End when the crawl is complete.")
@click.pass_context
def command(ctx: click.Context, /, dir: Path, until_idle: bool, input: str, output: str, **given: Any) -> None:
    """Run the frontier of a crawl directory."""
    import trio

    from crawltool.stages import frontier, sinks, sources
    from crawltool.stages.drain import TrioDrain
    from crawltool.stores import spool

    settings = dataclasses.replace(settings_of(dir, until_idle, output, given), in_force=policy.in_force(ctx))

    async def run() -> None:
        with TrioDrain(given["grace"]) as drain:
            inbox = sources.open_async_source(f"spool:{spool.create(dir / 'inbox')}", endless=True)
            source = sources.open_async_source(input)
            stage = frontier.FrontierStage(settings, source, inbox, sinks.open_async_sink(output, targets=True), drain)
            await stage.run()

    trio.run(run)


def ban_files(named: Sequence[str]) -> tuple[Path, ...]:
    """Give the ban files: those that are named, and the one that all crawls of a user share, where there is one."""
    shared = policy.user_config().with_name("bans.txt")
    return (*(Path(name) for name in named), *([shared] if shared.exists() else []))


def accepted(text: str) -> tuple[str, ...]:
    """Read --accept. Raises Misuse."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in ("candidate", "outcome")]
    if wrong:
        raise Misuse(f"--accept {wrong[0]}: the frontier takes candidate and outcome, and control from its inbox only")
    return names


def settings_of(directory: Path, until_idle: bool, output: str, given: dict[str, Any]) -> Any:
    """Build the stage's settings. Raises BadPolicy when the lease is too short for an exchange."""
    from crawltool.core.frontier.bounds import Bounds
    from crawltool.core.frontier.channels import read_rule
    from crawltool.core.frontier.ordering import Order
    from crawltool.core.frontier.politeness import Policy
    from crawltool.core.scope import ScopeRules
    from crawltool.stages.frontier import Settings

    least_s = limits.LEASE_TOTALS_MIN * given["timeout_total"]
    if given["lease"] < least_s:
        raise BadPolicy(
            f"--lease {given['lease']:g} s is less than {limits.LEASE_TOTALS_MIN} × --timeout-total: make it {least_s:g} s"
        )
    return Settings(
        dir=directory,
        policy=Policy(
            delay_s=given["delay"],
            delay_factor=given["delay_factor"],
            adaptive_max_s=given["adaptive_max"],
            ip_delay_s=given["ip_delay"],
            per_host=given["per_host"],
            per_ip=given["per_ip"],
            per_domain=given["per_domain"],
            backoff_s=given["backoff"],
            retries=given["retries"],
            robots_ttl_s=given["robots_ttl"],
            lease_s=given["lease"],
        ),
        bounds=Bounds(
            max_depth=given["max_depth"],
            max_url_bytes=given["max_url"],
            max_queued_host=given["max_queued_host"],
            max_segments=given["max_segments"],
            max_pages_host=given["max_pages_host"],
            max_pages_dir=given["max_pages_dir"],
            domain_budget=given["domain_budget"],
            max_pages=given["max_pages"],
            max_bytes=given["max_bytes"],
            shard=given["shard"],
        ),
        order=Order(given["order"], tuple(given["prefer"])),
        ban_files=ban_files(given["ban_file"]),
        channels=dict(read_rule(text) for text in given["channel"]),
        accept=accepted(given["accept"]),
        scope=ScopeRules(given["scope"], tuple(given["include"]), tuple(given["exclude"])),
        room=given["room"] or 2 * given["concurrency"],
        until_idle=until_idle,
        max_rest_s=given["max_rest"],
        max_time_s=given["max_time"],
        strict=given["strict"],
        voids_leases=not output.startswith("spool:"),
    )
