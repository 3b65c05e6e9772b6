"""crawltool warc verify: tell whether archives are whole and true."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.core.warcchecks import CODES
from crawltool.errors import NoInput, ProblemsFound
from crawltool.stores.warcverify import FileReport, Finding, Verifier

DESCRIPTION = """Check WARC files, byte by byte, and print what is not right.

Reads .warc, .warc.gz, .warc.zst and .warc.lz4 of WARC 0.17 to 1.1, and ARC; a folder means the files in it, no
name the archive of -C DIR. Each finding is a line:
file, byte, how grave, what. Damage is bytes that cannot be read; wrong is a record that is read but not as the standard
has it, or not what it says of itself (digests, lengths, ids); a note changes nothing. Ends with 1 when there is damage or
something wrong. A file that is still being written may end in the middle of a record: verify it when its writer is done."""
EXAMPLES = """
crawltool warc verify -C site.crawl
crawltool warc verify --json *.warc.gz | jq -c 'select(.severity == "damage")'
"""
NOTES = "Findings of warc verify:\n\n" + "\n\n".join(f"{code} ({grade}): {text}." for code, (grade, text) in CODES.items())
SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".warc.lz4", ".arc", ".arc.gz")
_encode = msgspec.json.Encoder().encode


@click.command("verify", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("files", metavar="[FILE|DIR]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, envvar="CRAWLTOOL_JSON", help="Print a JSON object for each finding and file.")
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, files: Sequence[Path], as_json: bool, dir: Path, **_given: Any) -> None:
    """Verify."""
    voice = ctx.ensure_object(Voice)
    verifier = Verifier()
    with verifier.sorter:
        for found in _findings(verifier, list(archives(files or [dir / "warc"]))):
            line = _encode(found) if as_json else _line(found)
            if line:
                sys.stdout.buffer.write(line + b"\n")
    counts = verifier.counts
    facts = {
        "files": verifier.files,
        "records": dict(verifier.records),
        "torn": verifier.torn,
        "damaged_bytes": verifier.damaged_bytes,
        **{name: counts[name] for name in ("damage", "wrong", "note")},
    }
    if as_json:
        sys.stdout.buffer.write(_encode({"type": "summary", **facts}) + b"\n")
    sys.stdout.buffer.flush()
    told = f"{verifier.records.total()} records in {verifier.files} files"
    problems = f"{counts['damage']} damaged, {counts['wrong']} wrong, {counts['note']} notes"
    if counts["damage"] or counts["wrong"]:
        raise ProblemsFound(f"{told}: {problems}")
    voice.say(f"{told}: nothing wrong" + (f", {counts['note']} notes" if counts["note"] else ""), "summary", **facts)


def archives(given: Sequence[Path]) -> Iterator[Path]:
    """Give the files that are meant: those named, and the archives in folders. Raises NoInput when one is missing."""
    for path in given:
        if path.is_dir():
            yield from sorted(
                inner for inner in path.iterdir() if inner.name.removesuffix(".open").endswith(SUFFIXES) and inner.is_file()
            )
        elif path.is_file():
            yield path
        else:
            raise NoInput(f"{path}: no such file")


def _findings(verifier: Verifier, files: Sequence[Path]) -> Iterator[Finding | FileReport]:
    for path in files:
        yield from verifier.file(path)
    yield from verifier.across()


def _line(found: Finding | FileReport) -> bytes:
    """Write a finding for a person, on one line that no byte of an archive can break."""
    if isinstance(found, FileReport):
        return b""
    about = " ".join(word for word in (found.record, found.url) if word)
    text = f"{found.file}:{found.offset}: {found.severity}: {found.code}: {found.message}" + (f" ({about})" if about else "")
    return "".join(sign if sign.isprintable() else "?" for sign in text).encode("utf-8", "replace")
