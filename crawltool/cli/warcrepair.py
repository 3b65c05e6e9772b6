"""crawltool warc repair: make a valid archive of a damaged one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.errors import Misuse, NoInput
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warcfile import repair as repair_open
from crawltool.stores.warcrepair import Repair

DESCRIPTION = """Write what can be read of a damaged archive into a valid one.

FILE may be anything that warc verify reads. OUT gets every record as a gzip member of its own (.warc.gz; or plain, when it
ends in .warc): whole records byte for byte, torn ones as far as they go, marked with WARC-Truncated. What is left out or
changed is printed with its place. FILE stays as it is, and OUT must not exist.

Without FILE the archive of -C DIR is put in order, as the next fetch would do it: the torn end of every .open file whose
writer is gone is cut, and the file gets its final name."""
EXAMPLES = """
crawltool warc repair broken.warc.gz -o whole.warc.gz
crawltool warc repair -C site.crawl
"""
NOTES = """
warc repair makes a file with all its records in one gzip member usable: each record gets a member, so that an offset leads to
it. ARC files become WARC files. Digests that no longer hold because a record was cut are kept as X-Crawler-WARC-...-Digest.
"""
_encode = msgspec.json.Encoder().encode


@click.command("repair", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--write", metavar="OUT", envvar="CRAWLTOOL_WRITE", type=click.Path(path_type=Path), help="The file to be written."
)
@click.option("--json", "as_json", is_flag=True, envvar="CRAWLTOOL_JSON", help="Print a JSON object for each change.")
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, file: Path | None, write: Path | None, as_json: bool, dir: Path, **_given: Any) -> None:
    """Repair."""
    voice = ctx.ensure_object(Voice)
    if (file is None) != (write is None):
        raise Misuse("warc repair wants FILE and -o OUT, or neither for the archive of -C DIR")
    if file is None or write is None:
        _own(dir / "warc", voice)
        return
    if not file.is_file():
        raise NoInput(f"{file}: no such file")
    if not write.name.endswith((".warc", ".warc.gz")):
        raise Misuse(f"-o {write}: the name must end in .warc.gz or .warc")
    repair = Repair(file, write)
    for one in repair.run():
        text = f"{file}:{one.offset}: {one.did}: {one.message}" + (f" ({one.url})" if one.url else "")
        line = "".join(sign if sign.isprintable() else "?" for sign in text).encode("utf-8", "replace")
        sys.stdout.buffer.write((_encode(one) if as_json else line) + b"\n")
    sys.stdout.buffer.flush()
    told = f"{repair.records} records written to {write}, {repair.left_out_bytes} bytes of {file} left out"
    voice.say(told, "summary", records=repair.records, left_out_bytes=repair.left_out_bytes)


def _own(warc: Path, voice: Voice) -> None:
    """Cut and rename what dead writers of a crawl left. Raises NoInput, DiskTrouble."""
    if not warc.is_dir():
        raise NoInput(f"{warc}: no such folder")
    index = DigestIndex(warc / "digests.lmdb")
    try:
        done = repair_open(warc, index)
    finally:
        index.close()
    for one in done:
        voice.say(f"{one.file}: {one.cut_bytes} bytes cut" + (f", now {one.name}" if one.name else ", nothing was left: removed"))
    voice.say(f"{len(done)} files put in order", "summary", files=len(done))
