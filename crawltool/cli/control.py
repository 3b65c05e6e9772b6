"""crawltool control: steer a crawl, while it runs or before it does."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from crawltool import limits, records
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.units import Count, Duration
from crawltool.cli.voice import Voice
from crawltool.errors import CannotHold, CrawltoolError, Misuse

DESCRIPTION = """Steer a crawl, while it runs or before it does.

Writes a control line into DIR/inbox and waits until the running frontier has read it; when none runs, the next one does so
first. What is set stays set until it is set otherwise, over stops and crashes. The same command twice is the same as once."""
EXAMPLES = """
crawltool control -C site.crawl inject https://example.org/news
crawltool control -C site.crawl block '*.example.org'
crawltool control -C site.crawl slow www.example.org --value 10s
crawltool control -C site.crawl budget www.example.org --value 500
crawltool control -C site.crawl requeue dns_failure
crawltool control -C site.crawl pause
crawltool control -C site.crawl forget https://example.org/private
"""
NOTES = """
The actions, and what TARGET is. inject URL: fetch it as soon as its host may be asked; it counts as typed. A URL that is done is
left alone. --value gives another priority than the highest.

block HOST|DOMAIN|PATTERN, unblock: example.org is that name and all below it, *.example.org only those below, =example.org only
the name; with a slash it is a glob over URLs, and re:EXPRESSION is searched in them. What is queued is refused (banned), links
to it are counted and not kept, a robots.txt there counts as unreachable. unblock queues again what a block refused. Lists of
many names belong into a ban file: --ban-file of crawltool-frontier(1).

slow HOST --value 10s: the host rests at least so long, from now on; a longer rest of another cause stays, and a rest that has
begun is not shortened. budget HOST --value 500: at most so many pages, typed or not. reputation HOST --value 0.1: in place of the
computed factor. With --value none it is as before.

pause, resume: nothing is released, what is out comes in; a paused crawl waits and does not end, and is still paused when it is
started again. stop: end this run in order, as SIGUSR1 does; the code is 75, and the same crawl may be started again.

requeue URL|HOST|REASON: dead letters (failed, or refused) are queued again with fresh attempts; a host that was given up is tried
again. What a limit or a ban still keeps out stays out. REASON is a word as crawltool-why(1) prints it.

forget URL|HOST: the crawl does not know the URL any more, or any URL of the host, in whatever state. The next link makes it known
again: block it first if it must not come back. The clock of the host stays, and so does what is archived in warc/, pages/ and
outcomes/. reload: read the ban files again, which is also done a few seconds after they change.

Each line that was read is kept in DIR/stats.jsonl with what it did. Only the operator's inbox steers: control lines that come
through the input or inbox.d are refused and counted.
"""
HOST, URL, EITHER, NOTHING = ("host",), ("url",), ("host", "url"), ()
# What TARGET may be; requeue takes a reason, too.
TARGETS: dict[str, tuple[str, ...]] = {
    "inject": URL, "block": EITHER, "unblock": EITHER, "slow": HOST, "budget": HOST, "reputation": HOST, "pause": NOTHING,
    "resume": NOTHING, "stop": NOTHING, "requeue": EITHER, "forget": EITHER, "reload": NOTHING,
}  # fmt: skip
WORDS = {HOST: "a host", URL: "a URL", EITHER: "a host or a URL"}
VALUES: dict[str, Any] = {
    "inject": click.FloatRange(-1e6, 1e6),
    "slow": Duration(0, limits.CONTROL_DELAY_S_MAX, optional=True),
    "budget": Count(0, optional=True),
    "reputation": click.FloatRange(0.001, 1000),
}
MAY_LACK_VALUE = ("inject",)
WAIT_S = 5.0  # for a running frontier to read the line
LINES_AT_ONCE = 1000


@click.command("control", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.argument("action", metavar="ACTION", type=click.Choice(list(records.ACTIONS)))
@click.argument("target", required=False)
@click.option("--value", envvar="CRAWLTOOL_VALUE", metavar="VALUE", help="What is set: a duration, a number, or none.")
@use("dir")
@click.pass_context
def command(ctx: click.Context, /, action: str, target: str | None, value: str | None, dir: Path, **_given: Any) -> None:
    """Write one control line, and for a host that is forgotten one for each of its URLs that are done."""
    from crawltool.stores import spool

    voice = ctx.ensure_object(Voice)
    control = line_of(action, target, value)
    run = running(dir)
    if action == "stop":
        if run is None:
            voice.say(f"no frontier runs in {dir}: nothing to stop", "summary")
            return
        control.value = msgspec.Raw(b"%d" % run)
    log = ControlLog(dir)
    writer = spool.SpoolWriter(dir / "inbox")
    try:
        writer.publish([records.encode(control)])
        rows = log.wait_for(control) if run is not None else []
        if action == "forget" and control.host:
            lines = (records.encode(records.Control(action="forget", url=url)) for url in done_urls(dir, control.host))
            while part := list(itertools.islice(lines, LINES_AT_ONCE)):
                writer.publish(part)
    finally:
        writer.close()
    said = " ".join(word for word in (action, target, value) if word)
    for row in rows:
        voice.say(f"{said}: {row['did']}", "summary")
    if not rows:
        when = "the frontier is busy, and reads it soon" if run is not None else "takes effect when the crawl is started"
        voice.say(f"{said}: {when}", "summary")


def line_of(action: str, target: str | None, value: str | None) -> records.Control:
    """Give the control record of what was typed. Raises Misuse, BadPolicy."""
    wanted, text = TARGETS[action], target or ""
    if bool(text) != bool(wanted):
        raise Misuse(f"{action} needs {WORDS[wanted]}" if wanted else f"{action} takes no {text}")
    if value is None and action in VALUES and action not in MAY_LACK_VALUE:
        raise Misuse(f"{action} needs --value")
    if value is not None and action not in VALUES:
        raise Misuse(f"{action} takes no --value")
    control = records.Control(action=action, value=_value(action, value))
    if action == "requeue" and re.fullmatch(r"[a-z0-9_]+", text) and text != "localhost":
        control.value = msgspec.Raw(msgspec.json.encode(text))
        return control
    field = "url" if "/" in text or text.startswith("re:") else "host"
    if text and field not in wanted:
        raise Misuse(f"{action} needs {WORDS[wanted]}, not {text}")
    if action in ("block", "unblock"):
        _check_ban(text)
    elif text:
        text = _normal(text, field)
    setattr(control, field, text or None)
    return control


def _check_ban(text: str) -> None:
    from crawltool.core.frontier import bans

    if not bans.read_lines(text, "block").count:
        raise Misuse(f"{text!r} bans nothing")


def _normal(text: str, field: str) -> str:
    """Give a URL or a host as the crawl has it. Raises Misuse."""
    from crawltool.core import urls

    url = urls.parse(text if field == "url" else f"http://{text}/")
    if url is None or (field == "host" and (url.target != "/" or url.port != 80)):
        wanted = "a http or https URL" if field == "url" else "a host name without a port"
        raise Misuse(f"{text} is not {wanted}")
    return url.href if field == "url" else url.host


def _value(action: str, value: str | None) -> msgspec.Raw | None:
    if value is None or (value == "none" and action not in MAY_LACK_VALUE):
        return None
    return msgspec.Raw(msgspec.json.encode(click.types.convert_type(VALUES[action]).convert(value, None, None)))


def running(directory: Path) -> int | None:
    """Give the number of the run that a frontier is at here; None when none is."""
    from crawltool.stages.clock import LOCK_NAME, read_note
    from crawltool.stores import atomic

    path = directory / LOCK_NAME
    if not path.exists():
        return None
    try:
        atomic.lock(path).release()
    except CannotHold:
        return read_note(path.read_bytes()).run
    return None


class ControlLog:
    """What the frontier tells in stats.jsonl of control lines, from now on."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "stats.jsonl"
        self.offset = self.path.stat().st_size if self.path.exists() else 0

    def wait_for(self, control: records.Control) -> list[dict[str, Any]]:
        """Give what became of a line; nothing when the frontier does not read it within WAIT_S."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            found = [row for row in self._rows() if (row["action"], row.get("host"), row.get("url")) == key_of(control)]
            if found:
                return found
            time.sleep(0.05)
        return []

    def _rows(self) -> Iterator[dict[str, Any]]:
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return
        for line in lines:
            if b'"control":{"action"' in line and line.endswith(b"\n"):
                yield msgspec.json.decode(line)["control"]


def key_of(control: records.Control) -> tuple[str, str | None, str | None]:
    """Give what tells a line in the log."""
    return control.action, control.host, control.url


def done_urls(directory: Path, host: str) -> Iterator[str]:
    """Yield the URLs of a host that were fetched: the database has only their keys, the crawl log the text."""
    from crawltool.core.urls import split

    decoder, seen = msgspec.json.Decoder(_Url), set[str]()
    for line in logged(directory):
        href = decoder.decode(line).url
        if host in href and href not in seen and (url := split(href)) is not None and url.host == host:
            seen.add(href)
            yield href


def logged(directory: Path) -> Iterator[bytes]:
    """Yield the lines of the crawl log, those included that are in the database's outbox yet."""
    from crawltool.stores import crawllog
    from crawltool.stores.crawldb import CrawlDb

    if (directory / "outcomes").is_dir():
        yield from crawllog.read(directory / "outcomes")
    try:
        db = CrawlDb.look(directory / "frontier.db")
    except CrawltoolError:  # no run has begun: nothing was fetched
        return
    try:
        yield from [line for _, line in db.outbox()]
    finally:
        db.close()


class _Url(msgspec.Struct):
    url: str
