"""crawltool warc index: print the index of archives."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.cli.warcverify import archives
from crawltool.stores.warcindex import Indexer

DESCRIPTION = """Print an index of archives: CDXJ, sorted.

One line a capture: its SURT key, 14 digits of time, and a JSON object with url, mime, status, digest, length, offset and
filename, as replay tools read it (pywb, OutbackCDX) and cdxj-indexer --sort writes it. Indexed are responses, revisits,
resources, and metadata other than application/warc-fields. A folder means the files in it, no name the archive of -C DIR."""
EXAMPLES = """
crawltool warc index -C site.crawl > site.cdxj
crawltool warc index *.warc.gz *.arc.gz | gzip > all.cdxj.gz
"""
NOTES = """
warc index sorts by bytes (LC_ALL=C) and holds 64 MiB; more waits in temporary files. A record that lies in one gzip member
with others has no offset of its own and is left out, and said so: crawltool warc repair gives it one.
"""


@click.command("index", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("files", metavar="[FILE|DIR]...", nargs=-1, type=click.Path(path_type=Path))
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, files: Sequence[Path], dir: Path, **_given: Any) -> None:
    """Index."""
    voice = ctx.ensure_object(Voice)
    indexer = Indexer()
    chosen = list(archives(files or [dir / "warc"]))
    for line in indexer.lines(chosen):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    for name, count in indexer.left_out.items():
        voice.say(f"{name}: {count} records left out: torn, or no offset leads to them (crawltool warc repair)", "warning")
    voice.say(f"{indexer.lines_written} lines of {len(chosen)} files", "summary", lines=indexer.lines_written, files=len(chosen))
