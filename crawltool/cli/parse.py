"""crawltool parse: read fetched pages."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice

DESCRIPTION = """Read fetched pages: links, title, text, language.

Reads outcomes as fetch writes them, takes each body from DIR/warc, and adds the fields page (title, description, language,
charset, canonical, robots rules, words, SimHash) and links (each with kind, rel, text, place, and whether the policy follows
it). A page's text goes before its outcome in a line of type text. Everything else passes unchanged."""
EXAMPLES = """
crawltool frontier -C c --until-idle < loop | crawltool fetch -C c | crawltool parse -C c | crawltool dedup -C c > loop
crawltool log -C c | crawltool parse -C c --text none | jq -r '.links[]?.url'
crawltool parse -C c -i spool:c/fetched -o spool:c/parsed --route text=spool:c/texts --text all
crawltool parse -C c --parse-bytes 10MiB --robots-token examplebot < outcomes.jsonl
"""
NOTES = """
Read are HTML, XHTML, XML sitemaps and feeds (their URLs are links), and plain text (no links); JSON is known and has neither.
Links marked nofollow, ugc or sponsored, links of a page whose robots rules say nofollow, and links in hidden parts of a page
are listed with follow false. What went wrong with a page is in page.trouble. Links beyond what a record may hold (a sitemap has
up to 50,000) leave as candidates in the same write, before the outcome. Any number of parse processes may run on a crawl.
"""


@click.command("parse", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@use("dir", "input", "output", "route", "strict", "parsing", "robots_token")
@click.pass_context
def command(ctx: click.Context, /, dir: Path, **given: Any) -> None:
    """Filter to the end of the input."""
    from crawltool.stages import parse
    from crawltool.stages.lines import Trouble

    voice = ctx.ensure_object(Voice)
    trouble = Trouble(lambda text: voice.say(text, "warning"))
    settings = parse.Settings(
        dir=dir,
        input=given["input"],
        output=given["output"],
        routes=tuple(given["route"]),
        strict=given["strict"],
        text=given["text"],
        parse_bytes=given["parse_bytes"],
        robots_token=given["robots_token"],
    )
    counts = parse.run(settings, trouble)
    voice.say(say(counts, trouble.summary()), "summary", **dataclasses.asdict(counts), bad_lines=trouble.total)


def say(counts: Any, trouble: str) -> str:
    """Give the summary line."""
    parts = [f"{counts.pages} page{'' if counts.pages == 1 else 's'} read, {counts.links} link{'' if counts.links == 1 else 's'}"]
    parts += [f"{counts.ahead} of them sent ahead"] if counts.ahead else []
    parts += [f"{counts.troubled} not read whole"] if counts.troubled else []
    return ", ".join(parts + ([trouble] if trouble else []))
