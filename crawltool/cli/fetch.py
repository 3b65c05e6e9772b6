"""crawltool fetch: ask what the frontier releases, store the answers, tell what came of it."""

from __future__ import annotations

from importlib.metadata import version
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice
from crawltool.cli.warcverify import archives
from crawltool.core.identity import Identity
from crawltool.core.robotstoken import token_of
from crawltool.errors import Misuse

if TYPE_CHECKING:
    from crawltool.net.guard import Net
    from crawltool.stages.fetchsettings import Settings

DESCRIPTION = """Fetch targets into WARC files.

Reads target records, as crawltool frontier writes them, asks each host at the address that its target names, writes every
answer to DIR/warc, and writes one outcome record for each target when its answer is safe on disk. Records of other types
pass unchanged. fetch never decides when a host is asked: start as many as you like on one spool."""
EXAMPLES = """
crawltool frontier -C site.crawl --until-idle < loop | crawltool fetch -C site.crawl | crawltool parse -C site.crawl > loop
crawltool fetch -C site.crawl -i spool:targets -o spool:outcomes --concurrency 200
crawltool crawl -C again.crawl --from-warc site.crawl/warc --delay 0 https://example.org/
crawltool fetch --identity public_html/crawler --contact https://example.org/crawler/bot.html
crawltool fetch -C own.crawl --resolve 'www.example.org:443:127.0.0.1:8443' < targets.jsonl
"""
NOTES = """
A target is asked at most once. One that is not started (its lease is too old, or fetch was told to stop) is answered with
the verdict `returned`, which costs the URL nothing. Redirects are not followed: the outcome says where they lead, and the
frontier decides. The bodies of types that --types does not name are cut after 4 KiB.

With --from-warc the newest capture of each URL is the answer, whatever tool wrote it (WARC or ARC, plain, gzip or zstd); a
revisit has the body that it refers to. Nothing is written to DIR/warc: the files are linked there (symbolic links, so they
must stay where they are), and outcomes name the original records. No host, name server or proxy is asked, and no contact is
needed; --delay 0 lets it run as fast as it can. A URL that is not in the archive is a `client_error` with the reason `not in
the archive`, a robots.txt that is not there means that there are no rules, and a host of which nothing is there is a
`dns_failure`. What lies in one gzip member together with other records cannot be reached: crawltool warc repair helps.

--identity OUT fetches nothing. It writes OUT/bot.html, which tells those who find the crawler in their logs who asks, how to
reach you, how fast it goes and how to block it, and OUT/ip-ranges.json with the public addresses that requests leave from;
then it looks up the name of each of these addresses and says whether that name leads back to it, which is how a site knows
that it was you. Publish both files, and name the page as --contact.
"""
EVERYWHERE = ("0.0.0.0/0", "::/0")


@click.command("fetch", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES)
@click.option(
    "--identity",
    "identity_folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="OUT",
    envvar="CRAWLTOOL_IDENTITY",
    help="Fetch nothing; write the crawler's page and its addresses into this folder, and check their names.",
)
@use(
    "directory",
    "identity",
    "concurrency",
    "timeout_connect",
    "timeout_first_byte",
    "timeout_total",
    "max_body",
    "types",
    "body_memory",
    "min_free",
    "max_rest",
    "grace",
    "allow_net",
    "resolve",
    "from_warc",
    "io",
)
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Fetch."""
    voice = ctx.ensure_object(Voice)
    warn_of_two_names(voice, product_of(given), given["robots_token"])
    if given["identity_folder"] is not None:
        from crawltool.cli import fetchidentity  # start-up time

        identity = Identity(product_of(given), given["contact"], given["robots_token"])
        fetchidentity.write(given["identity_folder"], identity, ctx.meta["crawltool.policy"], voice)
        return
    import trio  # start-up time

    from crawltool.stages import fetch, fetchreplay

    settings = settings_of(given)
    run = fetchreplay.run if settings.from_warc else fetch.run
    stage = trio.run(run, settings, lambda text: voice.say(text, "warning"))
    told = ", ".join(f"{count} {verdict}" for verdict, count in stage.counts.most_common())
    voice.say(f"{stage.counts.total()} outcomes" + (f" ({told})" if told else ""), "summary", **stage.counts)


def product_of(given: dict[str, Any]) -> str:
    """Give the product that is sent in User-Agent."""
    return given["user_agent"] or f"crawltool/{version('crawltool')}"


def warn_of_two_names(voice: Voice, product: str, token: str) -> None:
    """Say when the owner of a site cannot know from his log whom to name in robots.txt (RFC 9309 section 2.2.1)."""
    if token.lower() not in product.lower():
        voice.say(
            f"sites see {product}, but robots.txt is read for {token}: --robots-token {token_of(product)} makes them one",
            "warning",
        )


def settings_of(given: dict[str, Any]) -> Settings:
    """Build the stage's settings from parsed options. Raises Misuse."""
    from crawltool.net.dns import read_pin
    from crawltool.stages.fetchsettings import Settings

    directory: Path = given["dir"]
    return Settings(
        dir=directory,
        product=product_of(given),
        contact=given["contact"],
        robots_token=given["robots_token"],
        concurrency=given["concurrency"],
        timeout_connect_s=given["timeout_connect"],
        timeout_first_byte_s=given["timeout_first_byte"],
        timeout_total_s=given["timeout_total"],
        max_body_bytes=given["max_body"],
        types=tuple(given["types"].split(",")),
        # A replay connects to nobody, so no address is refused.
        allow_nets=tuple(_net(text) for text in given["allow_net"] or (EVERYWHERE if given["from_warc"] else ())),
        pins=tuple(read_pin(text) for text in given["resolve"]),
        from_warc=tuple(archives([Path(name) for name in given["from_warc"]])),
        body_memory_bytes=given["body_memory"],
        min_free_bytes=given["min_free"],
        max_rest_s=given["max_rest"],
        input=given["input"],
        output=given["output"],
        routes=tuple(given["route"]),
        strict=given["strict"],
        grace_s=given["grace"],
    )


def _net(text: str) -> Net:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise Misuse(f"--allow-net {text}: {error}") from None
