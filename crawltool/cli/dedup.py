"""crawltool dedup: find pages that repeat others, and keep the pages."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from crawltool import limits
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice

DESCRIPTION = f"""Find pages that repeat others, and keep the pages.

Reads outcomes and texts as parse writes them. A page whose body another URL gave before gets the field dup with kind exact; a
page that reads nearly like another (SimHashes at most 3 of 64 bits apart, {limits.SIMHASH_WORDS_MIN} words or more) gets kind
near. A page is never a duplicate of itself. Each distinct page is written to DIR/pages once, with its text; everything else
passes unchanged."""
EXAMPLES = """
crawltool frontier -C c --until-idle < loop | crawltool fetch -C c | crawltool parse -C c | crawltool dedup -C c > loop
crawltool dedup -C c -i spool:c/parsed -o spool:c/outcomes-spool
zstdcat c/pages/*.zst | jq -r 'select(.type == "page") | [.url, .title] | @tsv'
zstdcat c/pages/*.zst | jq -r 'select(.dup) | [.dup.distance, .url, .dup.of] | @tsv'
"""
NOTES = """
DIR/pages/pages-*.jsonl.zst has two types of line: "page", one for each distinct body of an HTML page (or of another type that
parse could read), and "alias", one for each further URL that gave the same body. Near duplicates are pages of their own. Pages
count when they are whole, not empty, and came with status 200. Which of two equal pages is the original is decided by which
came first. DIR/dedup.db is an index of pages/ and is built anew when it is missing or damaged. One dedup runs on a directory.
"""


@click.command("dedup", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@use("dir", "input", "output", "route", "strict")
@click.pass_context
def command(
    ctx: click.Context, /, dir: Path, input: str, output: str, route: tuple[str, ...], strict: bool, **_rest: Any
) -> None:
    """Filter to the end of the input."""
    from crawltool.stages import dedup
    from crawltool.stages.lines import Trouble

    voice = ctx.ensure_object(Voice)
    trouble = Trouble(lambda text: voice.say(text, "warning"))
    settings = dedup.Settings(dir=dir, input=input, output=output, routes=tuple(route), strict=strict)
    counts = dedup.run(settings, trouble, lambda text: voice.say(text, "warning"))
    voice.say(say(counts, trouble.summary()), "summary", **dataclasses.asdict(counts), bad_lines=trouble.total)


def say(counts: Any, trouble: str) -> str:
    """Give the summary line."""
    parts = [f"{counts.pages} new page{'' if counts.pages == 1 else 's'} ({counts.near} near others)"]
    parts += [f"{counts.aliases} new alias{'' if counts.aliases == 1 else 'es'}"]
    parts += [f"{counts.known} known before"] if counts.known else []
    parts += [f"{counts.unread} not readable"] if counts.unread else []
    parts += [f"{counts.orphans} text{'' if counts.orphans == 1 else 's'} without outcome"] if counts.orphans else []
    return ", ".join(parts + ([trouble] if trouble else []))
