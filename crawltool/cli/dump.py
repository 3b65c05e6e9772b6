"""crawltool dump: print every URL of a crawl, or every host, from the crawl database and the crawl log."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.errors import DiskTrouble, Misuse
from crawltool.stores.crawlview import STATES, CrawlView, UrlRow

DESCRIPTION = """Print every URL of a crawl, with its state and the reason.

One JSON object a line: url, state (queued, leased, done, failed or refused), reason, detail, kind, host, depth, hops, via,
and what is known of its turn or its end. Options that name several things of one kind are met by any of them; options of
different kinds must all be met. Works while the crawl runs: what is printed is one moment of it."""
EXAMPLES = """
crawltool dump -C site.crawl --count
crawltool dump -C site.crawl --state failed | jq -r '[.reason, .detail, .url] | @tsv'
crawltool dump -C site.crawl --state refused --reason robots --match '*/print/*'
crawltool dump -C site.crawl --hosts | jq -r 'select(.state == "closed") | [.host, .reason] | @tsv'
"""
NOTES = """
Rows are printed as they are read, and memory does not grow with their number; a crawl of 100 million URLs takes a while, and
status.json has its counts at once. A URL that is done is read from the crawl log, in the order in which it was settled. All
rows of a state are counted and compared with the crawl's own counters: where they differ (outcomes/ has lost lines), what is
there is printed all the same, the difference is said, and the exit code is 74.

Links that were out of scope are counted in status.json, not stored: they are not printed.

With --hosts a line is a host: its state (new, resolving, open, closed) and why it was given up, what is queued and out, its
clocks (next_at is when it may be asked next; slots, rest_until), what the operator set, and its crawl budget in pages an hour:
the lesser of what it can answer (capacity_h) and what is wanted of it (demand_h).
"""
_LINES_AT_ONCE = 1000
Pair = tuple[str, str]


@click.command("dump", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.option(
    "--state", "states", type=click.Choice(STATES), multiple=True, envvar="CRAWLTOOL_STATE", help="Only URLs in this state."
)
@click.option("--reason", "reasons", multiple=True, metavar="WORD", envvar="CRAWLTOOL_REASON", help="Only what has this reason.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", envvar="CRAWLTOOL_HOST", help="Only of this host.")
@click.option(
    "--match",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    envvar="CRAWLTOOL_MATCH",
    help="Only URLs that match this glob (or re:REGEX), as in --include.",
)
@click.option("--count", is_flag=True, envvar="CRAWLTOOL_COUNT", help="Print how many, by state and reason, instead of lines.")
@click.option("--hosts", "of_hosts", is_flag=True, envvar="CRAWLTOOL_HOSTS", help="Print hosts, not URLs.")
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, dir: Path, of_hosts: bool, **given: Any) -> None:
    """Print what is asked for."""
    if of_hosts and (given["states"] or given["patterns"] or given["count"]):
        raise Misuse("--hosts goes with --host and --reason only")
    is_wanted = wanted(given["reasons"], given["hosts"], given["patterns"])
    view = CrawlView(dir)
    try:
        if of_hosts:
            print_hosts(view, given["hosts"], given["reasons"], *ctx.meta["crawltool.policy"].politeness())
            return
        states = given["states"] or STATES
        print_urls(view, states, is_wanted, counts_only=given["count"])
    finally:
        view.close()


def wanted(reasons: tuple[str, ...], hosts: tuple[str, ...], patterns: tuple[str, ...]) -> Callable[[UrlRow], bool]:
    """Compile the filters. Raises BadPolicy for a pattern that cannot be read."""
    from crawltool.core.scope import matcher
    from crawltool.core.urls import split_once

    matches, names = [matcher(pattern) for pattern in patterns], {host.lower() for host in hosts}

    def is_wanted(row: UrlRow) -> bool:
        if (reasons and row.reason not in reasons) or (names and row.host not in names):
            return False
        url = split_once(row.url) if matches else None
        return not matches or (url is not None and any(match(url) for match in matches))

    return is_wanted


def print_urls(view: CrawlView, states: tuple[str, ...], is_wanted: Callable[[UrlRow], bool], *, counts_only: bool) -> None:
    """Print the rows that are wanted, or how many they are. Raises DiskTrouble when rows and counters differ."""
    seen: Counter[Pair] = Counter()
    counted: Counter[Pair] = Counter()

    def rows() -> Iterator[object]:
        for row in view.urls(states):
            pair = (row.state, row.reason or "")
            seen[pair] += 1
            if is_wanted(row):
                if counts_only:
                    counted[pair] += 1
                else:
                    yield row
        for (state, reason), count in sorted(counted.items(), key=lambda item: (STATES.index(item[0][0]), -item[1])):
            yield {"state": state} | ({"reason": reason} if reason else {}) | {"urls": count}

    write(rows())
    told = {pair: count for pair, count in view.ledger().items() if pair[0] in states}
    wrong = [
        f"{': '.join(filter(None, pair))}: {seen[pair]:,} rows, {told.get(pair, 0):,} counted"
        for pair in sorted(seen.keys() | told.keys())
        if seen[pair] != told.get(pair, 0)
    ]
    if wrong:
        raise DiskTrouble(f"rows and counters differ: {'; '.join(wrong)}", remedy="has outcomes/ lost files?")


def print_hosts(view: CrawlView, hosts: tuple[str, ...], reasons: tuple[str, ...], slots: int, delay_s: float) -> None:
    """Print the hosts that are wanted."""
    names = {host.lower() for host in hosts}
    write(
        line
        for line in view.hosts(slots, delay_s)
        if (not names or line.host in names) and (not reasons or line.reason in reasons)
    )


def write(rows: Iterator[object]) -> None:
    """Write JSON lines, many at once."""
    encode, out = msgspec.json.Encoder().encode, sys.stdout.buffer
    lines: list[bytes] = []
    for row in rows:
        lines.append(encode(row))
        if len(lines) == _LINES_AT_ONCE:
            out.write(b"\n".join(lines) + b"\n")
            lines.clear()
    if lines:
        out.write(b"\n".join(lines) + b"\n")
    out.flush()
