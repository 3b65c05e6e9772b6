"""core/identity: whoever is asked can tell who asks."""

from __future__ import annotations

import pytest

from crawltool.core.identity import Identity


@pytest.mark.parametrize(
    ("contact", "agent", "sender"),
    [
        ("me@x.org", "bot/1 (+me@x.org)", "me@x.org"),
        ("mailto:me@x.org", "bot/1 (+mailto:me@x.org)", "me@x.org"),
        ("https://x.org/@bot", "bot/1 (+https://x.org/@bot)", None),
        (None, "bot/1", None),
    ],
)
def test_the_contact_is_in_the_user_agent_and_a_mail_address_in_from(contact: str | None, agent: str, sender: str | None) -> None:
    fields = dict(Identity("bot/1", contact, "bot").headers())
    assert fields["User-Agent"] == agent
    assert fields.get("From") == sender
