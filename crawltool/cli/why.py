"""crawltool why: explain what happened to one URL, from the crawl database and the crawl log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool import limits
from crawltool.cli import policy
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.units import spoken_duration
from crawltool.errors import Misuse, NoInput
from crawltool.stores import crawllog
from crawltool.stores.crawlview import CrawlView, HostLine, LogLine, log_line

DESCRIPTION = """Explain what happened to a URL.

Prints its state in the crawl (queued, leased, done, failed, refused, or not known), the reason, the rule of robots.txt that
decides on it, the pages that led to it, the clocks of its host, and each exchange that the crawl log has for it. A bare host
name means its start page. Works while the crawl runs."""
EXAMPLES = """
crawltool why https://example.org/about -C example.org.crawl
crawltool why --json https://example.org/about -C example.org.crawl | jq '.chain[].url'
"""
NOTES = """
A link that was out of scope is counted but not stored, so its URL is not known. Of a crawl log of more than 256 MiB only the
exchange that settled the URL is looked up, which takes no time; with --all the whole log is read for earlier ones. Of the way
from a seed at most 20 pages are named. Exit code 0 when the crawl knows the URL, 66 when it does not.
"""
LOG_BYTES_READ = 256 * limits.MIB  # packed; a few seconds
_STATES = {
    "unknown": "not known to this crawl: never found, or found out of scope",
    "queued": "queued",
    "requeued": "queued again",
    "leased": "out: being fetched now, or its lease has not run out yet",
    "done": "done",
    "failed": "failed",
    "refused": "refused",
}


@click.command("why", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, envvar="CRAWLTOOL_JSON", help="Print one JSON object.")
@click.option("--all", "all_exchanges", is_flag=True, envvar="CRAWLTOOL_ALL", help="Read the whole crawl log, however large.")
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, url: str, dir: Path, as_json: bool, all_exchanges: bool, **_given: Any) -> None:
    """Explain one URL."""
    from crawltool.stages import clock

    told, history = explain(url, dir, ctx.meta["crawltool.policy"], all_exchanges=all_exchanges)
    if as_json:
        click.echo(msgspec.json.encode(told | {"exchanges": history}))
    else:
        for line in sentences(told, history, clock.of_crawl(dir).now()):
            click.echo(line)
    if told["state"] == "unknown" and not history:
        raise NoInput(f"{told['url']} is not known to this crawl", remedy="see crawltool log for what is")


def explain(text: str, directory: Path, files: policy.Policy, *, all_exchanges: bool) -> tuple[dict[str, Any], list[LogLine]]:
    """Give what the crawl knows of a URL, and its lines of the crawl log. Raises Misuse, NoInput."""
    from crawltool.core import seeds, urls

    seed = seeds.read(text.encode(errors="surrogateescape"))
    if not isinstance(seed, seeds.Seed):
        raise Misuse(f"{text}: {seed.reason if seed else 'nothing'}", remedy="give a http or https URL, or a host")
    candidates = [seed.url, *([url] if (url := urls.parse(seed.else_url or "")) else [])]
    view = CrawlView(directory)
    try:
        answers = [(url, view.explain(url, *files.politeness())) for url in candidates]
        url, told = next((pair for pair in answers if pair[1]["state"] != "unknown"), answers[0])
        if all_exchanges or crawllog.size_bytes(view.outcomes) <= LOG_BYTES_READ:
            return told, list(exchanges(url.href, directory))
        told["exchanges_cut"] = True
        seq = told.get("seq")
        line = view.line_of(seq) if isinstance(seq, int) else None
        return told, [] if line is None else [line]
    finally:
        view.close()


def exchanges(href: str, directory: Path) -> Iterator[LogLine]:
    """Yield the outcomes of a URL in the crawl log."""
    # Most lines are of other URLs: they are passed over without being read.
    mark = b'"url":' + msgspec.json.encode(href)
    for raw in crawllog.read(directory / "outcomes"):
        if mark in raw:
            line = log_line(raw)
            if line.url == href:
                yield line


def sentences(told: dict[str, Any], history: list[LogLine], now: float) -> Iterator[str]:
    """Say it to a person."""
    state = str(told["state"])
    reason = f": {told['reason']}" if told.get("reason") else ""
    yield f"{told['url']}"
    yield f"  {_STATES.get(state, state)}{reason}" + (f" ({told['detail']})" if told.get("detail") else "")
    if told.get("due_at"):
        yield f"  waits for another try {_in(told['due_at'], now)}"
    if told.get("expires_at"):
        yield f"  lease {told['lease']} runs out {_in(told['expires_at'], now)}"
    if told.get("attempt"):
        yield f"  attempts so far: {told['attempt']}"
    yield from _chain_sentences(told)
    host = told.get("host")
    if isinstance(host, HostLine):
        yield from _host_sentences(host, now)
    robots = told.get("robots")
    if isinstance(robots, dict):
        yield from _robots_sentences(robots, now)
    for row in history:
        yield "  " + _exchange_sentence(row)
    if told.get("exchanges_cut"):
        yield "  the crawl log is large: --all reads all of it for earlier exchanges"


def _chain_sentences(told: dict[str, Any]) -> Iterator[str]:
    """Name the pages that led here, the nearest first."""
    for place, link in enumerate(told.get("chain") or ()):
        depth = told.get("depth")
        far = f", {depth} {'link' if depth == 1 else 'links'} from a seed" if place == 0 and depth is not None else ""
        yield f"  {'found on' if place == 0 else '  which was found on'} {link['url']} ({link['state']}){far}"


def _host_sentences(host: HostLine, now: float) -> Iterator[str]:
    closed = f", given up for this run: {host.reason}" if host.reason else ""
    yield f"  its host: {host.state}{closed}; {host.pages} pages asked, {host.queued} URLs queued, {host.leased} out"
    steps = {"429 or 503": host.complaints, "no connection, timeout or 5xx": host.troubles}
    counted = [f"{n} × {what}" for what, n in steps.items() if n]
    if host.rest_until and host.rest_until > now and counted:
        rest = spoken_duration(host.rest_until - now)
        yield f"  its host rests for {rest} yet, after {', '.join(counted)}"
    elif host.next_at is not None and host.state == "open":
        yield f"  its host may be asked {_in(host.next_at, now)}"
    if host.address_rest_until and host.address_rest_until > now:
        rest = spoken_duration(host.address_rest_until - now)
        yield f"  its address rests for {rest} yet: three of its hosts answered 429 or 503"
    set_by = [f"a delay of {host.delay_s:g} s"] if host.delay_s is not None else []
    set_by += [f"{host.pages_max} pages at most"] if host.pages_max is not None else []
    if set_by:
        yield f"  the operator set for its host: {', '.join(set_by)}"
    if host.addresses and host.address_until:
        yield f"  its address: {host.addresses[0]}, looked up again {_in(host.address_until, now)}"
    if host.budget is not None and host.pages:
        yield f"  its crawl budget: {host.budget}"


def _robots_sentences(robots: dict[str, Any], now: float) -> Iterator[str]:
    when = f"asked for {_when(robots['fetched_at'])}" if robots.get("fetched_at") else "never asked for"
    known = f"{robots['rules']} rules for us" if robots["rules"] else robots["availability"]
    reason = f" ({robots['reason']})" if robots.get("reason") else ""
    yield f"  robots.txt: {known}{reason}, {when}, asked for again {_in(robots['expires_at'], now)}"
    if robots.get("rule"):
        yield f"  the rule that decides: {robots['rule']}"
    if robots.get("crawl_delay_s"):
        yield f"  its Crawl-delay: {robots['crawl_delay_s']:g} s"


def _exchange_sentence(row: LogLine) -> str:
    parts = [_when(row.fetched_at) if row.fetched_at else "not asked", row.verdict]
    parts += [str(row.status)] if row.status else []
    parts += [f"({row.reason})"] if row.reason else []
    parts += [f"{row.body_bytes} bytes"] if row.body_bytes is not None else []
    parts += [f"to {row.redirect}"] if row.redirect else []
    parts += [f"{row.dup['kind']} duplicate of {row.dup['of']}"] if row.dup else []
    parts += ["in warc/{file} at {offset}".format(**row.warc)] if row.warc else []
    return ", ".join(parts[:2]) + " " + " ".join(parts[2:])


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _in(at: float, now: float) -> str:
    """Say a time to come; what is past is now."""
    return f"in {spoken_duration(at - now)}" if at > now else "now"
