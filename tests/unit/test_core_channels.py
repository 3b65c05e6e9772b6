"""Channels, not claims, give trust."""

from __future__ import annotations

import pytest

from crawltool.core.frontier.book import Book
from crawltool.core.frontier.channels import Channels, Rule, read_rule
from crawltool.core.frontier.politeness import Policy
from crawltool.errors import BadPolicy
from tests.sim.store import DictStore


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("feeds=5000,-1", ("feeds", Rule(5000, -1))),
        ("a-b_C9=none", ("a-b_C9", Rule(None, 0))),
        ("x=0,+1", ("x", Rule(0, 1))),
    ],
)
def test_a_rule_is_read(text: str, rule: tuple[str, Rule]) -> None:
    assert read_rule(text) == rule


@pytest.mark.parametrize("text", ["feeds", "feeds=", "=5", "../x=5", "inbox=5", "a=5,2", "a=-5", "a=5,1,1", ".a=5"])
def test_a_rule_that_means_nothing_is_bad_policy(text: str) -> None:
    with pytest.raises(BadPolicy):
        read_rule(text)


def test_a_claim_moves_a_url_within_the_class_of_its_channel() -> None:
    channels = Channels(Book(DictStore(), Policy()), {"low": Rule(trust=-1), "high": Rule(trust=1)})
    claims = [float("-inf"), -5.0, -0.5, 0.0, 0.5, 5.0, 1e300, float("inf"), float("nan")]
    assert all(-3 < channels.priority("low", claim) < -1 for claim in claims)
    assert all(-1 < channels.priority("unknown", claim) < 1 for claim in claims)
    assert all(1 < channels.priority("high", claim) < 3 for claim in claims)
    assert channels.priority("low", -0.5) < channels.priority("low", 0.5)


def test_a_quota_counts_over_restarts() -> None:
    store = DictStore()
    book = Book(store, Policy())
    channels = Channels(book, {"feeds": Rule(quota=2)})
    channels.count("feeds")
    assert not channels.is_full("feeds")
    store.commit(book.save)
    again = Channels(Book(store, Policy()), {"feeds": Rule(quota=2)})
    again.count("feeds")
    assert again.is_full("feeds")
    assert not again.is_full("others")
