"""crawltool init: write the policy of a crawl into its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crawltool.cli import policy
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.voice import Voice

DESCRIPTION = """Write the policy of a crawl into its directory.

Makes DIR and DIR/crawl.toml with the identity, scope, politeness and limits that were given; all other options stand
there as comments with their defaults. Run again, it changes the keys that are given and leaves the rest of the file as
it is. Every stage on this directory then obeys the same policy."""
EXAMPLES = """
crawltool init -C site.crawl --contact me@example.org --delay 2
crawltool init -C site.crawl --exclude '*/calendar/*' --max-pages 20k
crawltool init -C own.crawl --contact me@example.org --profile audit
"""
NOTES = """
Flags win over the environment, the environment over crawl.toml, crawl.toml over ~/.config/crawltool/config.toml, and
that over the profile. The file may be edited by hand; a key or value that is not understood ends every command with 78
and is named. A changed policy is applied at the next start: URLs that were refused by it are judged again.
"""


@click.command("init", cls=Command, help=DESCRIPTION, examples=EXAMPLES, notes=NOTES, makes_dir=True, owns_policy=True)
@use("directory", "identity", "scope", "order", "politeness", "fetching", "parsing", "limits")
@click.pass_context
def command(ctx: click.Context, /, dir: Path, **_given: Any) -> None:
    """Store what was given."""
    voice = ctx.ensure_object(Voice)
    new = not (dir / policy.FILE).exists()
    names = policy.store(dir, policy.given(ctx))
    said = ", ".join(names) if names else "nothing changed"
    voice.say(f"{dir / policy.FILE}: " + ("written" + (f" ({said})" if names else "") if new else said), "summary")
