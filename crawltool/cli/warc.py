"""crawltool warc: check archives, mend them, index them, and print what they hold."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.cli.warcindex import command as index
from crawltool.cli.warcrepair import command as repair
from crawltool.cli.warcverify import archives
from crawltool.cli.warcverify import command as verify
from crawltool.core import scope, urls
from crawltool.errors import Misuse, NoInput
from crawltool.records import Locator
from crawltool.stores import warcbody, warcpick, warcread
from crawltool.stores.warcpick import Picked
from crawltool.stores.warctree import Tree

DESCRIPTION = """Check archives, and print what they hold."""
CAT_DESCRIPTION = """Print stored bodies, or write them as a tree of files.

WHAT is a locator FILE:OFFSET:LENGTH, as outcomes have it in `warc`; a URL: then its last capture is meant; a pattern as
--include has it (with a *, a leading / or re:): then the last good answer (2xx) of every URL that matches; or - for the
outcomes that come on standard input. URLs and patterns are looked up in the crawl log of -C DIR, else in its WARC files;
with FILE... only in those files, whoever wrote them. Where the archive holds a revisit (the same body was stored before), the
body it refers to is meant. A content coding such as gzip is undone."""
EXAMPLES = """
crawltool warc cat -C site.crawl https://example.org/
crawltool warc cat --record https://example.org/ site.crawl/warc/*.warc.gz
crawltool warc cat -C site.crawl --tree site/ '*'
crawltool log -C site.crawl | jq -c 'select(.content_type == "application/pdf")' | crawltool warc cat -C site.crawl --tree pdfs/ -
crawltool log -C site.crawl --json | jq -r '.warc | values | "\\(.file):\\(.offset):\\(.length)"' | head -1 |
  xargs crawltool warc cat -C site.crawl --raw > body.gz
"""
NOTES = """
The files are ordinary WARC 1.1 with one gzip member per record; any archive tool reads them, and
`tail -c +$((OFFSET+1)) FILE | head -c LENGTH | zcat` shows what --record prints. NAME.warc.gz.open is a file that is
still being written, or whose writer was killed: the next fetch on the directory repairs and renames it.

--tree writes HOST/PATH; a path that ends in / becomes index.html, a query stands escaped behind the name. No name leaves the
folder, which must be new or empty; names that would meet, also on file systems that do not tell letters of either case apart,
get a mark. A body that is longer than 128 MiB is cut, and said so.
"""

_LOCATOR = re.compile(r"(.+):(\d{1,15}):(\d{1,12})")


@click.group("warc", help=DESCRIPTION)
def command() -> None:
    """Hold the subcommands."""


command.add_command(verify)
command.add_command(repair)
command.add_command(index)


@command.command("cat", cls=Command, help=CAT_DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("what", metavar="WHAT")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, envvar="CRAWLTOOL_RAW", help="Take the body as stored, content coding and all.")
@click.option("--record", is_flag=True, envvar="CRAWLTOOL_RECORD", help="Print the whole WARC record, also of a revisit.")
@click.option(
    "--tree",
    metavar="OUT",
    envvar="CRAWLTOOL_TREE",
    type=click.Path(path_type=Path),
    help="Write files below this folder instead.",
)
@use("dir")
@click.pass_context
def cat(
    ctx: click.Context,
    /,
    what: str,
    files: Sequence[Path],
    raw: bool,
    record: bool,
    tree: Path | None,
    dir: Path,
    **_given: Any,
) -> None:
    """Find the records, print them or write them as files."""
    voice = ctx.ensure_object(Voice)
    if tree is not None and record:
        raise Misuse("--tree writes bodies: leave out --record")
    chosen = list(archives(files))
    one = _one(what, chosen, dir)
    found = iter([one]) if one is not None else _many(what, chosen, dir)
    if tree is not None:
        _write_tree(Tree(tree), found, raw, chosen, voice)
        return
    count = 0
    for picked in found if one is not None or what == "-" else (picked for picked, _ in warcpick.newest(found)):
        count += 1
        try:
            _print(picked, raw, record, chosen, voice)
        except warcread.Unreadable as error:
            if one is not None:
                raise NoInput(str(error), remedy="check the locator and -C DIR") from error
            voice.say(f"{picked.url}: {error}", "warning")
    sys.stdout.buffer.flush()
    if not count and what != "-":
        raise NoInput(f"no good answer of a URL that matches {what}", remedy="ask crawltool dump which URLs there are")


def _print(picked: Picked, raw: bool, record: bool, files: Sequence[Path], voice: Voice) -> None:
    """Write one record or body to stdout."""
    if record:
        for piece in warcread.unpacked(picked.directory, picked.locator):
            sys.stdout.buffer.write(piece)
        return
    payload = warcbody.payload(picked, raw, files)
    for note in payload.notes:
        voice.say(f"{picked.url}: {note}" if picked.url else note, "warning")
    sys.stdout.buffer.write(payload.data)


def _write_tree(tree: Tree, found: Iterator[Picked], raw: bool, files: Sequence[Path], voice: Voice) -> None:
    """Write the last capture of each URL as a file."""
    unread = 0
    for picked, is_twin in warcpick.newest(found):
        try:
            payload = warcbody.payload(picked, raw, files)
        except warcread.Unreadable as error:
            unread += 1
            voice.say(f"{picked.url}: {error}", "warning")
            continue
        for note in payload.notes:
            voice.say(f"{picked.url}: {note}", "warning")
        tree.add(picked.url, payload.data, is_twin)
    told = f"{tree.files} files, {tree.bytes} bytes in {tree.folder}" + (f"; {unread} could not be read" if unread else "")
    voice.say(told, "summary", files=tree.files, bytes=tree.bytes, unread=unread)


def _one(what: str, files: Sequence[Path], crawl: Path) -> Picked | None:
    """Find the record that a locator or URL names; None when a pattern or the input is meant. Raises NoInput, Misuse."""
    named = _LOCATOR.fullmatch(what)
    if named and "://" not in what:
        path = Path(named[1])
        folder = path.parent if "/" in named[1] else files[0].parent if files else crawl / "warc"
        return Picked("", folder, Locator(file=path.name, offset=int(named[2]), length=int(named[3])))
    if what == "-" or what.startswith(("/", "re:")) or "*" in what:
        return None
    url = urls.parse(what)
    if url is None:
        raise Misuse(f"{what} is neither FILE:OFFSET:LENGTH nor a http(s) URL nor a pattern")
    found = None if files else warcpick.last_in_log(url.href, crawl)
    found = found or warcpick.last_in_files(url.href, files or sorted((crawl / "warc").glob("*.warc*")))
    if found is None:
        raise NoInput(f"no capture of {url.href}", remedy="ask crawltool why URL")
    return found


def _many(what: str, files: Sequence[Path], crawl: Path) -> Iterator[Picked]:
    """Give the records that a pattern or the outcomes on standard input mean."""
    if what == "-":
        return _outcomes(files[0].parent if files else crawl / "warc")
    if not files and not (crawl / "outcomes").is_dir():
        files = sorted((crawl / "warc").glob("*.warc*"))
    return warcpick.matching(scope.matcher(what), crawl, files)


def _outcomes(warc: Path) -> Iterator[Picked]:
    from crawltool.stages.lines import open_source  # start-up time

    for batch in open_source("-"):
        for line in batch.lines:
            picked = warcpick.of_line(line, warc)
            if picked is not None:
                yield picked
        batch.done()
