"""crawltool crawl: the porcelain. Makes the directory, sows the seeds, runs the ring of stages, sums up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crawltool.cli import policy, progress
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.settings import BY_NAME
from crawltool.cli.voice import Voice
from crawltool.errors import Misuse
from crawltool.stages.drain import EndedBySignal

if TYPE_CHECKING:
    from crawltool.core.seeds import Seed

DESCRIPTION = """Crawl sites: start all stages, show progress, sum up.

Everything lands in one directory, ./HOST.crawl unless -C names another: WARC archives, the pages' text, a log of every
answer. The crawl is polite by default (robots.txt, one request at a time and one second of rest for each host) and ends
when all that is in scope has been fetched or refused with a reason. Run again on the same directory, without a URL, it
goes on where it stopped, however it stopped."""
EXAMPLES = """
crawltool crawl example.org --contact me@example.org
crawltool crawl https://example.org/docs/ --scope prefix --max-pages 2000 --contact me@example.org
crawltool crawl --seeds hosts.txt -C many.crawl --profile broad --contact https://example.org/bot
crawltool crawl -C example.org.crawl
"""
NOTES = """
crawl starts frontier, fetch, parse and dedup as processes joined by pipes; each can be run by hand in the same way. The
flags given are kept in DIR/crawl.toml, so that they hold for the next run too; --max-time and --shard are of one run.
When a stage dies, the others end in order, and crawl names it and ends with its code, 75 if it was killed.
"""
# Exit codes with which the frontier says how the crawl ended; its own line on stderr has the reason.
WORDS_OF_FRONTIER = frozenset({69, 73, 74, 75, 78})
SEEDS_LOOKED_AT = 1000  # lines of seed files; no machine has that many hosts of its own
SEEDS_NAMED = 20  # in the summary, when they gave no page
NO_CONTACT = (
    "fetching needs --contact: the people who run these hosts must be able to tell who is asking and to ask you to stop, "
    "so your mail address or URL goes into User-Agent and From"
)


class CrawlCommand(Command):
    """crawl finds its directory from its first URL."""

    def default_dir(self, arguments: dict[str, Any]) -> str:
        """Give HOST.crawl of the first seed."""
        urls, files = arguments.get("urls"), arguments.get("seeds")
        if isinstance(urls, (list, tuple)) and urls:
            found = seeds_of(urls)
            return f"{found[0].url.host.strip('[]') if found else 'seeds'}.crawl"
        if isinstance(files, (list, tuple)) and files and files[0] != "-":
            return f"{Path(files[0]).stem}.crawl"
        raise Misuse("nothing to crawl: give a URL, --seeds FILE, or -C DIR of a crawl to go on with")


def seeds_of(texts: Iterable[str]) -> list[Seed]:
    """Read seeds as the seed command does; what is none is left out, for that command says so."""
    from crawltool.core import seeds

    read = (seeds.read(text.encode(errors="surrogateescape")) for text in texts)
    return [seed for seed in read if isinstance(seed, seeds.Seed)]


def why_no_seed(text: str) -> str:
    """Say why a text is no seed, as the seed command does."""
    from crawltool.core import seeds

    found = seeds.read(text.encode(errors="surrogateescape"))
    return f"{found.reason}: {text}" if isinstance(found, seeds.NoSeed) else f"nothing in {text!r}"


def first_lines(files: Sequence[str]) -> tuple[list[str], bool]:
    """Give the first lines of seed files, compressed ones included, and whether these are all. stdin is not looked at."""
    from crawltool.stages.lines import open_source

    lines: list[str] = []
    for name in files:
        for batch in () if name == "-" else open_source(name):
            lines += [line.decode(errors="replace") for line in batch.lines]
            if len(lines) > SEEDS_LOOKED_AT:
                return lines[:SEEDS_LOOKED_AT], False
    return lines, "-" not in files


@click.command("crawl", cls=CrawlCommand, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES, makes_dir=True, owns_policy=True)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--seeds",
    multiple=True,
    envvar="CRAWLTOOL_SEEDS",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="More seeds, one a line: URLs, bare host names, or candidate records.",
)
@use("directory", "identity", "scope", "order", "politeness", "fetching", "parsing", "limits", "strict")
@click.pass_context
def command(ctx: click.Context, /, dir: Path, urls: tuple[str, ...], seeds: tuple[str, ...], **params: Any) -> int | None:
    """Run a crawl to its end."""
    voice = ctx.ensure_object(Voice)
    if not urls and not seeds and not (dir / policy.FILE).exists():
        raise Misuse(f"{dir} is no crawl yet: give a URL or --seeds FILE to begin it")
    if urls and not seeds and not seeds_of(urls):
        raise Misuse(f"no URL to begin with: {why_no_seed(urls[0])}")
    if not params["contact"] and not params["from_warc"] and not all_on_loopback(urls, seeds):
        raise Misuse(NO_CONTACT, remedy="add --contact YOU@EXAMPLE.ORG")
    voice.say(f"crawl directory {dir}", "summary", dir=str(dir))
    refuse_running(dir)
    changed = policy.store(dir, policy.given(ctx)) if policy.given(ctx) or not (dir / policy.FILE).exists() else []
    if changed and ctx.meta["crawltool.policy"].crawl is not None:
        voice.say(f"{dir / policy.FILE} now has: {', '.join(changed)}")
    if (urls or seeds) and (code := sow(dir, urls, seeds, strict=params["strict"])):
        return code
    return run_ring(dir, seeds_of([*urls, *first_lines(seeds)[0]]), params, voice)


def refuse_running(directory: Path) -> None:
    """Raise CannotHold when a frontier works here: its policy and inbox are not to be changed by a command that cannot run."""
    from crawltool.stages.clock import LOCK_NAME
    from crawltool.stores import atomic

    if (directory / LOCK_NAME).exists():
        atomic.lock(directory / LOCK_NAME).release()


def all_on_loopback(urls: Iterable[str], files: Sequence[str]) -> bool:
    """Tell whether every seed is on this machine, which needs no contact. stdin cannot be looked at twice: no."""
    from crawltool.core import seeds

    lines, are_all = first_lines(files)
    return are_all and all(seeds.is_loopback(seed.url.host) for seed in seeds_of([*urls, *lines]))


def sow(directory: Path, urls: tuple[str, ...], files: tuple[str, ...], *, strict: bool) -> int:
    """Put the seeds into the inbox; give the code with which the crawl must end, or 0."""
    from crawltool.stages import crawl

    shared = ["-C", str(directory), "-o", f"spool:{directory / 'inbox'}", *(["--strict"] if strict else [])]
    if urls and (code := crawl.run_once("seed", [*shared, "--", *urls])):
        return code if code > 0 else 75
    for name in files:
        if code := crawl.run_once("seed", [*shared, "-i", name]):
            return code if code > 0 else 75
    return 0


def run_ring(directory: Path, seeds: list[Seed], params: dict[str, Any], voice: Voice) -> int:
    """Run the stages with progress, then say how it ended. Raises EndedBySignal."""
    from crawltool.stages import crawl

    before, began = progress.read(directory), time.monotonic()
    voice.say(progress.opening(len({seed.url.host for seed in seeds}), params, before))
    own = {name: [BY_NAME[name].long, _written(name, params[name])] for name in ("max_time", "shard") if params[name]}
    shared = ["-C", str(directory)]
    arguments = dict.fromkeys(crawl.RING, shared) | {
        "frontier": [*shared, "--until-idle", *own.get("max_time", []), *own.get("shard", [])]
    }
    if voice.debug:
        os.environ["CRAWLTOOL_DEBUG"] = "1"
    with progress.Progress(directory, voice) as shown:
        ring = crawl.Ring(crawl.Settings(arguments=arguments, capture_words=shown.is_live))
        ended = ring.run(shown.tick)
    after = progress.read(directory)
    if ended.culprit and not (ended.culprit == "frontier" and ended.returncode in WORDS_OF_FRONTIER):
        voice.say(f"{ended.culprit} {how(ended.returncode)}; the other stages were drained, run again to go on", "error")
    for said in (*progress.details(after), *seeds_without_page(directory, seeds), *progress.places(directory)):
        voice.say(said)
    took_s = time.monotonic() - began
    voice.say(
        f"{progress.closing(after, took_s, before.pages)}; in {directory}", "summary", dir=str(directory), pages=after.pages
    )
    if ended.signum is not None:
        raise EndedBySignal(ended.signum)
    return ended.code


def _written(name: str, value: Any) -> str:
    return f"{value[0]}/{value[1]}" if isinstance(value, tuple) else str(policy.as_typed(BY_NAME[name], value))


def how(returncode: int) -> str:
    """Say how a process ended."""
    return f"was killed by {signal.Signals(-returncode).name}" if returncode < 0 else f"ended with {returncode}"


def seeds_without_page(directory: Path, seeds: list[Seed]) -> Iterator[str]:
    """Name the seeds that came to nothing, each with its reason."""
    from crawltool.errors import CrawltoolError
    from crawltool.stores.crawlview import CrawlView

    try:
        view = CrawlView(directory)
    except CrawltoolError:  # the frontier never got as far, and has said why
        return
    try:
        told = [view.explain(seed.url) for seed in seeds]
    finally:
        view.close()
    bad = [one for one in told if one["state"] not in ("done", "queued", "leased")]
    for one in bad[:SEEDS_NAMED]:
        why = ": ".join(str(one[name]) for name in ("reason", "detail") if one.get(name))
        yield f"seed {one['url']}: {one['state']}" + (f" ({why})" if why else "")
    if len(bad) > SEEDS_NAMED:
        yield f"… and {len(bad) - SEEDS_NAMED} more seeds without a page"
