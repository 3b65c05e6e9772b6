"""crawltool fetch --identity: write what the crawled may want to know about the crawler, and check its names.

Called by cli/fetch instead of fetching. Only the name server is asked.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crawltool.cli.policy import Policy
from crawltool.cli.voice import Voice
from crawltool.core import identitypage
from crawltool.core.identity import Identity
from crawltool.core.identitypage import About
from crawltool.errors import CannotHold, Misuse
from crawltool.net import guard, ownaddresses
from crawltool.net.ownaddresses import Confirmed
from crawltool.stores import atomic

PAGE, RANGES = "bot.html", "ip-ranges.json"


def write(folder: Path, identity: Identity, policy: Policy, voice: Voice) -> None:
    """Write both files into a folder and report each address. Raises Misuse without a contact, CannotHold, DiskTrouble."""
    if identity.contact is None:
        raise Misuse("--identity needs a contact: the page tells to whom to write", remedy="give --contact MAIL-or-URL")
    addresses = ownaddresses.own_addresses()
    public = [one for one in addresses if guard.judge(one, False) is None]
    with atomic.disk(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CannotHold(f"{folder} is not a directory", remedy="name another one") from None
    atomic.write_file(folder / PAGE, identitypage.page(_about(identity, policy)).encode())
    atomic.write_file(folder / RANGES, identitypage.ranges(public, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")))
    for address in addresses:
        if address in public:
            report(ownaddresses.confirm(address), voice)
    if not public:
        seen = f" (requests leave from {', '.join(addresses)}, which a translator on the way replaces)" if addresses else ""
        voice.say(f"this machine has no public address{seen}: write the public ones into {folder / RANGES}", "warning")
    voice.say(f"wrote {folder / PAGE} and {folder / RANGES} ({len(public)} addresses)", "summary", addresses=public)


def report(found: Confirmed, voice: Voice) -> None:
    """Say whether the name of an address leads back to it."""
    facts: dict[str, Any] = {"address": found.address, "name": found.name, "confirmed": found.holds}
    if found.holds:
        voice.say(f"{found.address} is {found.name}, and that name leads back to it", **facts)
    elif found.name is None:
        voice.say(f"{found.address} has no name: ask whoever gave it to you for a PTR record", "warning", **facts)
    else:
        leads = f"leads to {', '.join(found.leads_to)}" if found.leads_to else "has no address"
        voice.say(f"{found.address} is {_plain(found.name)}, but that name {leads}: sites cannot confirm it", "warning", **facts)


def _about(identity: Identity, policy: Policy) -> About:
    per_host, delay_s = policy.politeness()
    agent = dict(identity.headers())["User-Agent"]
    return About(identity.product, agent, identity.contact or "", identity.robots_token, per_host, delay_s)


def _plain(name: str) -> str:
    """Keep a name from the network from steering a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
