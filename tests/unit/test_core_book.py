"""core/frontier/book: a new URL stands at the same rank in its queue and, where its host is cold, in the waiting room."""

from __future__ import annotations

from crawltool.core.frontier.book import Book
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.rows import Entry
from tests.sim.store import DictStore


def test_a_cold_host_waits_at_the_rank_that_importance_gives_its_url() -> None:
    book = Book(DictStore(), Policy())
    book.hot_most = 0
    book.begin(1e6)
    for number, bonus_s in enumerate((0.0, 7200.0)):
        entry = Entry(f"http://h{number}.example/", first_seen_at=1e6)
        book.accept(bytes([number]) * 16, entry, f"h{number}.example", bonus_s)
    assert book.room.next(1e6) == "h1.example"
