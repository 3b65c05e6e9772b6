"""crawltool seed: turn URLs, host names and sitemaps into candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice

DESCRIPTION = """Turn URLs, host names and sitemaps into candidates.

Takes URLs as arguments, or one a line from --input: a file (also .gz or .zst) or stdin. A host without a scheme is tried
by https, then by http; localhost and 127.0.0.1 by http alone. Blank lines and lines that begin with # are left out. A
line that is no http or https URL is counted, the first few are shown with their number, and the rest goes on. No host is
contacted. With -C, and without -o, the candidates go into the inbox of that crawl."""
EXAMPLES = """
crawltool seed -C site.crawl https://example.org/
crawltool seed https://example.org/docs/ example.com -o spool:site.crawl/inbox
crawltool seed -i hosts.txt --sitemaps -o spool:site.crawl/inbox
grep -v test urls.txt | crawltool seed --strict > candidates.jsonl
"""
NOTES = """
A host named by a seed in the inbox counts as typed: it joins the scope, and a loopback address may be fetched.
Seeds may be added while a crawl runs: the frontier looks into the inbox all the time.
"""


@click.command("seed", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option("--sitemaps", is_flag=True, envvar="CRAWLTOOL_SITEMAPS", help="Also queue /sitemap.xml of each host.")
@use("dir", "input", "output", "strict")
@click.pass_context
def command(
    ctx: click.Context, /, urls: tuple[str, ...], sitemaps: bool, dir: Path, input: str, output: str, strict: bool, **_rest: Any
) -> None:
    """Sow."""
    from crawltool.stages import seed

    voice = ctx.ensure_object(Voice)
    typed = ctx.get_parameter_source
    if typed("dir") is ParameterSource.COMMANDLINE and typed("output") is ParameterSource.DEFAULT:
        output = f"spool:{dir / 'inbox'}"
    read_input = not urls or "-" in urls or typed("input") is not ParameterSource.DEFAULT
    settings = seed.Settings(
        urls=tuple(url for url in urls if url != "-"),
        input=input if read_input else None,
        output=output,
        sitemaps=sitemaps,
        strict=strict,
    )
    tally, trouble = seed.run(settings, lambda text: voice.say(text, "warning"))
    parts = [f"{tally.seeds} seed{'' if tally.seeds == 1 else 's'}"]
    parts += [f"{tally.sitemaps} sitemap{'' if tally.sitemaps == 1 else 's'}"] if tally.sitemaps else []
    parts += [trouble.summary()] if trouble.total else []
    voice.say(", ".join(parts), "summary", seeds=tally.seeds, sitemaps=tally.sitemaps, bad_lines=trouble.total)
