"""crawltool log: print the crawl log, for people or as JSON lines."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.errors import NoInput
from crawltool.stores.crawllog import LogReader

DESCRIPTION = """Print the crawl log: every exchange with a host, in the order in which it was settled.

On a terminal each outcome is one line: time (UTC), verdict, status, body bytes, URL. Otherwise, or with --json, each is
the whole record as it was (see crawltool-records(5)), ready for jq."""
EXAMPLES = """
crawltool log -C site.crawl
crawltool log -C site.crawl -f
crawltool log -C site.crawl | jq -r 'select(.verdict != "ok") | [.verdict, .reason, .url] | @tsv'
"""
NOTES = """
The log is CRAWL/outcomes/*.jsonl.zst and can also be read with zstdcat. It is written every few seconds; a crawl that is
running may be a little ahead of it.
"""

_POLL_S = 0.5
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "?")


class Row(msgspec.Struct):
    """The fields that a line for people shows."""

    url: str
    verdict: str
    kind: str = "page"
    status: int | None = None
    reason: str | None = None
    redirect: str | None = None
    fetched_at: float | None = None
    body_bytes: int | None = None


_row = msgspec.json.Decoder(Row)


@click.command("log", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.option("-f", "--follow", is_flag=True, envvar="CRAWLTOOL_FOLLOW", help="Go on as the log grows, until stopped.")
@click.option("--json", "as_json", is_flag=True, envvar="CRAWLTOOL_JSON", help="Print whole records, also on a terminal.")
@use("dir")
def command(dir: Path, follow: bool, as_json: bool, **_given: Any) -> None:
    """Print what is there, then wait for more if asked."""
    directory = dir / "outcomes"
    if not directory.is_dir() and not follow:
        raise NoInput(f"{dir} has no crawl log", remedy="check -C DIR; the log begins with the first outcome")
    reader = LogReader(directory)
    for_people = sys.stdout.isatty() and not as_json
    while True:
        for line in reader.lines():
            sys.stdout.buffer.write((one_line(line) if for_people else line) + b"\n")
        sys.stdout.buffer.flush()
        if not follow:
            return
        time.sleep(_POLL_S)


def one_line(line: bytes) -> bytes:
    """Say an outcome in one line; what the web wrote cannot steer the terminal."""
    try:
        row = _row.decode(line)
    except msgspec.DecodeError:
        return b"?" + line.decode("utf-8", "replace").translate(_CONTROL).encode()
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.fetched_at)) if row.fetched_at is not None else "-"
    size = "-" if row.body_bytes is None else f"{row.body_bytes:,}"
    kind = "" if row.kind == "page" else f" [{row.kind}]"
    more = f" -> {row.redirect}" if row.redirect else f" ({row.reason})" if row.reason else ""
    text = f"{at:19}  {row.verdict:13} {row.status or '-':>3} {size:>11}  {row.url}{kind}{more}"
    return text.translate(_CONTROL).encode("utf-8", "replace")
