"""crawltool why: explain what happened to one URL, from the crawl database and the crawl log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.units import spoken_duration
from crawltool.errors import Misuse, NoInput

DESCRIPTION = """Explain what happened to a URL.

Prints its state in the crawl (queued, leased, done, failed, refused, or not known), the reason, what is known of its host,
and each exchange that the crawl log has for it. A bare host name means its start page. Works while the crawl runs."""
EXAMPLES = """
crawltool why https://example.org/about -C example.org.crawl
crawltool why --json https://example.org/about -C example.org.crawl | jq .state
"""
NOTES = """
A link that was out of scope is counted but not stored, so its URL is not known. The log is read from its beginning: on a
large crawl that takes a while. Exit code 0 when the crawl knows the URL, 66 when it does not.
"""
_STATES = {
    "unknown": "not known to this crawl: never found, or found out of scope",
    "queued": "queued",
    "requeued": "queued again",
    "leased": "out: being fetched now, or its lease has not run out yet",
    "done": "done",
    "failed": "failed",
    "refused": "refused",
}


class Row(msgspec.Struct):
    """The fields of an outcome that are shown."""

    url: str
    verdict: str
    seq: int | None = None
    kind: str = "page"
    status: int | None = None
    reason: str | None = None
    redirect: str | None = None
    fetched_at: float | None = None
    elapsed_s: float | None = None
    body_bytes: int | None = None
    warc: dict[str, Any] | None = None
    dup: dict[str, Any] | None = None


@click.command("why", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("url")
@click.option("--json", "as_json", is_flag=True, envvar="CRAWLTOOL_JSON", help="Print one JSON object.")
@use("dir")
def command(url: str, dir: Path, as_json: bool, **_given: Any) -> None:
    """Explain one URL."""
    told, history = explain(url, dir)
    if as_json:
        click.echo(msgspec.json.encode(told | {"exchanges": history}))
    else:
        for line in sentences(told, history):
            click.echo(line)
    if told["state"] == "unknown" and not history:
        raise NoInput(f"{told['url']} is not known to this crawl", remedy="see crawltool log for what is")


def explain(text: str, directory: Path) -> tuple[dict[str, Any], list[Row]]:
    """Give what the database knows of a URL, and its lines of the crawl log. Raises Misuse, NoInput."""
    from crawltool.core import seeds, urls
    from crawltool.stores.crawldb import CrawlDb

    seed = seeds.read(text.encode(errors="surrogateescape"))
    if not isinstance(seed, seeds.Seed):
        raise Misuse(f"{text}: {seed.reason if seed else 'nothing'}", remedy="give a http or https URL, or a host")
    candidates = [seed.url, *([url] if (url := urls.parse(seed.else_url or "")) else [])]
    db = CrawlDb.look(directory / "frontier.db")
    try:
        answers = [(url, db.explain(url)) for url in candidates]
    finally:
        db.close()
    url, told = next((pair for pair in answers if pair[1]["state"] != "unknown"), answers[0])
    return told, list(exchanges(url.href, directory))


def exchanges(href: str, directory: Path) -> Iterator[Row]:
    """Yield the outcomes of a URL in the crawl log."""
    from crawltool.stores import crawllog

    decoder = msgspec.json.Decoder(Row)
    # Most lines are of other URLs: they are passed over without being read.
    mark = b'"url":' + msgspec.json.encode(href)
    for line in crawllog.read(directory / "outcomes"):
        if mark in line:
            row = decoder.decode(line)
            if row.url == href:
                yield row


def sentences(told: dict[str, Any], history: list[Row]) -> Iterator[str]:
    """Say it to a person."""
    state = str(told["state"])
    reason = f": {told['reason']}" if told.get("reason") else ""
    yield f"{told['url']}"
    yield f"  {_STATES.get(state, state)}{reason}" + (f" ({told['detail']})" if told.get("detail") else "")
    if told.get("via"):
        yield f"  found on {told['via']}, {told.get('depth', 0)} links from a seed"
    if told.get("attempt"):
        yield f"  attempts so far: {told['attempt']}"
    host = told.get("host")
    if isinstance(host, dict):
        yield from _host_sentences(host)
    robots = told.get("robots")
    if isinstance(robots, dict):
        when = _when(robots["fetched_at"]) if robots.get("fetched_at") else "never"
        known = f"{robots['rules']} rules for us" if robots["rules"] else robots["availability"]
        yield f"  robots.txt: {known}, asked for {when}"
    for row in history:
        yield "  " + _exchange_sentence(row)


def _host_sentences(host: dict[str, Any]) -> Iterator[str]:
    closed = f", given up for this run: {host['closed_for']}" if host.get("closed_for") else ""
    yield f"  its host: {host['state']}{closed}; {host['pages']} pages asked, {host['queued']} URLs queued"
    rest_s = (host.get("rest_until") or 0) - time.time()
    if rest_s > 0:
        yield f"  its host rests for {spoken_duration(rest_s)} yet, after {host['failures_in_a_row']} failures in a row"


def _exchange_sentence(row: Row) -> str:
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
