"""crawltool warc: print what the archive holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from crawltool import limits
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.cli.warcrepair import command as repair
from crawltool.cli.warcverify import command as verify
from crawltool.core import decoding, urls, warcrecords
from crawltool.errors import Misuse, NoInput
from crawltool.records import Locator
from crawltool.stores import crawllog, warcread
from crawltool.stores.digests import DigestIndex

DESCRIPTION = """Check archives, and print what they hold."""
CAT_DESCRIPTION = """Print one stored body.

WHAT is a locator FILE:OFFSET:LENGTH, as outcomes have it in `warc`, or a URL: then its last capture is printed. A URL is
looked up in the crawl log of -C DIR, else in its WARC files; with FILE... only in those files. Where the archive holds
a revisit (the same body was stored before), the body it refers to is printed. A content coding such as gzip is undone."""
EXAMPLES = """
crawltool warc cat -C site.crawl https://example.org/
crawltool warc cat --record https://example.org/ site.crawl/warc/*.warc.gz
crawltool log -C site.crawl --json | jq -r '.warc | values | "\\(.file):\\(.offset):\\(.length)"' | head -1 |
  xargs crawltool warc cat -C site.crawl --raw > body.gz
"""
NOTES = """
The files are ordinary WARC 1.1 with one gzip member per record; any archive tool reads them, and
`tail -c +$((OFFSET+1)) FILE | head -c LENGTH | zcat` shows what --record prints. NAME.warc.gz.open is a file that is
still being written, or whose writer was killed: the next fetch on the directory repairs and renames it.
"""

_LOCATOR = re.compile(r"(.+):(\d{1,15}):(\d{1,12})")
_RECORD_TYPES = ("response", "revisit", "resource")


class Place(NamedTuple):
    """A record and the folder of its file."""

    directory: Path
    locator: Locator


class _Row(msgspec.Struct):
    url: str
    warc: Locator | None = None


_row = msgspec.json.Decoder(_Row)


@click.group("warc", help=DESCRIPTION)
def command() -> None:
    """Hold the subcommands."""


command.add_command(verify)
command.add_command(repair)


@command.command("cat", cls=Command, help=CAT_DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("what", metavar="WHAT")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, envvar="CRAWLTOOL_RAW", help="Print the body as stored, content coding and all.")
@click.option("--record", is_flag=True, envvar="CRAWLTOOL_RECORD", help="Print the whole WARC record, also of a revisit.")
@use("dir")
@click.pass_context
def cat(ctx: click.Context, /, what: str, files: Sequence[Path], raw: bool, record: bool, dir: Path, **_given: Any) -> None:
    """Find the record, print it."""
    voice = ctx.ensure_object(Voice)
    place = find(what, files, dir)
    try:
        if record:
            for piece in warcread.unpacked(*place):
                sys.stdout.buffer.write(piece)
        else:
            sys.stdout.buffer.write(_body(place, raw, voice))
    except warcread.Unreadable as error:
        raise NoInput(str(error), remedy="check the locator and -C DIR") from error
    sys.stdout.buffer.flush()


def find(what: str, files: Sequence[Path], crawl: Path) -> Place:
    """Tell where the record is that a person named. Raises NoInput, Misuse."""
    named = _LOCATOR.fullmatch(what)
    if named and "://" not in what:
        path = Path(named[1])
        folder = path.parent if "/" in named[1] else files[0].parent if files else crawl / "warc"
        return Place(folder, Locator(file=path.name, offset=int(named[2]), length=int(named[3])))
    url = urls.parse(what)
    if url is None:
        raise Misuse(f"{what} is neither FILE:OFFSET:LENGTH nor a http(s) URL")
    found = None if files else _in_log(url.href, crawl)
    found = found or _in_files(url.href, files or sorted((crawl / "warc").glob("*.warc.gz*")))
    if found is None:
        raise NoInput(f"no capture of {url.href}", remedy="ask crawltool why URL")
    return found


def _in_log(href: str, crawl: Path) -> Place | None:
    """Find the last outcome of a URL that has a record."""
    last, text = None, b'"url":' + msgspec.json.encode(href)
    for line in crawllog.read(crawl / "outcomes"):
        if text in line:
            row = _row.decode(line)
            last = row.warc if row.url == href and row.warc else last
    return Place(crawl / "warc", last) if last else None


def _in_files(href: str, files: Sequence[Path]) -> Place | None:
    """Find the last capture of a URL by reading files from end to end."""
    last = None
    for path in files:
        if not path.is_file():
            raise NoInput(f"{path}: no such file")
        for found in warcread.records(path, limit=limits.MIB):
            record = found.record
            if record is not None and record.type in _RECORD_TYPES and record.url == href:
                last = Place(path.parent, Locator(file=path.name, offset=found.offset, length=found.length))
    return last


def _body(place: Place, raw: bool, voice: Voice) -> bytes:
    """Read the body, that of the record a revisit refers to included, and say what is missing of it."""
    record = warcread.read(*place)
    if record.type == "revisit":
        record = warcread.read(place.directory, _referred(record, place.directory))
    if record.cut:
        voice.say(f"cut: only the first {len(record.body)} bytes are printed", "warning")
    if "warc-truncated" in record.headers:
        voice.say(f"the capture is not whole ({record.headers['warc-truncated']})", "warning")
    coding = record.http_header("content-encoding") if record.type == "response" else None
    if raw or not coding:
        return record.body
    decoded = decoding.decode(record.body, coding, limits.DECODED_BYTES_MAX)
    if decoded.trouble:
        voice.say(f"content-encoding {coding}: {decoded.trouble}", "warning")
    return decoded.data


def _referred(revisit: warcread.StoredRecord, directory: Path) -> Locator:
    """Find the record that holds a revisit's body, by its digest. Raises NoInput."""
    digest = warcrecords.raw_digest(revisit.headers.get("warc-payload-digest"))
    path = directory / "digests.lmdb"
    if digest is not None and path.is_dir():
        entry = DigestIndex(path).find(digest)
        if entry is not None:
            return entry.locator
    uri, date = revisit.headers.get("warc-refers-to-target-uri"), revisit.headers.get("warc-refers-to-date")
    raise NoInput(
        f"a revisit: its body was stored from {uri} at {date}, in another archive", remedy="--record prints the revisit itself"
    )
