"""The index finds bodies, aliases and near pages; what was not saved is forgotten, what is broken is dropped."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crawltool import limits
from crawltool.stores.pages import START, Place
from crawltool.stores.signatures import Nearness, Original, Signatures


@pytest.fixture
def index(tmp_path: Path) -> Signatures:
    return Signatures(tmp_path / "dedup.db")


def test_pages_and_aliases_are_found_before_any_save(index: Signatures) -> None:
    index.add_page("sha1:A", Original("http://a.example/"), None)
    index.add_page("sha1:B", Original("http://b.example/", "http://a.example/", 2), None)
    assert index.find("sha1:A") == (0, Original("http://a.example/"))
    assert index.find("sha1:B") == (1, Original("http://b.example/", "http://a.example/", 2))
    assert index.find("sha1:C") is None
    index.add_alias(0, "http://c.example/")
    assert index.has_alias(0, "http://c.example/")
    assert not index.has_alias(1, "http://c.example/") and not index.has_alias(0, "http://a.example/")
    assert (index.rows, index.aliases) == (2, 1)


def test_the_nearest_then_oldest_of_another_url_is_near(index: Signatures) -> None:
    for number, simhash in enumerate((0b111, 0b1, 0b1 << 40)):
        index.add_page(f"sha1:{number}", Original(f"http://a.example/{number}"), simhash)
    assert index.near(0, "http://a.example/x") == Nearness("http://a.example/1", 1)
    assert index.near(0, "http://a.example/1") == Nearness("http://a.example/2", 1)
    assert index.near(0b111, "http://a.example/0") == Nearness("http://a.example/1", 2, is_filed=True)
    assert index.near(0xF0F0 << 20, "http://a.example/x") == Nearness()


def test_what_was_saved_stays_and_what_was_not_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "dedup.db"
    index = Signatures(path)
    assert index.place == START
    index.add_page("sha1:A", Original("http://a.example/"), 7)
    index.save(Place(0, 100))
    index.add_page("sha1:B", Original("http://b.example/"), 9)
    index.add_alias(0, "http://c.example/")
    index.close()
    index = Signatures(path)
    assert (index.place, index.rows, index.aliases) == (Place(0, 100), 1, 0)
    assert index.find("sha1:A") is not None and index.find("sha1:B") is None
    assert index.near(7, "http://x.example/") == Nearness("http://a.example/", 0, is_filed=True)
    index.clear()
    assert (index.place, index.rows, index.find("sha1:A")) == (START, 0, None)
    assert index.near(7, "http://x.example/") == Nearness()
    index.close()


def test_the_folder_can_be_entered_by_those_who_may_read_it(tmp_path: Path) -> None:
    Signatures(tmp_path / "dedup.db").close()
    assert (tmp_path / "dedup.db").stat().st_mode & 0o500 == 0o500


def test_a_damaged_index_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "dedup.db"
    index = Signatures(path)
    index.add_page("sha1:A", Original("http://a.example/"), 7)
    index.save(Place(0, 100))
    index.close()
    (path / "data.mdb").write_bytes(b"x" * 8192)
    index = Signatures(path)
    assert (index.place, index.rows) == (START, 0)
    index.close()


def test_a_save_is_due_after_many_rows_and_the_map_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SIGNATURES_ROOM_BYTES", 4 * limits.MIB)
    monkeypatch.setattr(limits, "SIGNATURES_UNSAVED_MAX", 500)
    index, rng = Signatures(tmp_path / "dedup.db", map_bytes=5 * limits.MIB), random.Random(5)
    for number in range(20_000):
        index.add_page(f"sha1:{number}", Original(f"http://a.example/{number}/{'x' * 100}"), rng.getrandbits(64))
        if index.is_due:
            index.save(Place(0, number))
    assert index.rows == 20_000 and index.find("sha1:0") is not None
    assert (tmp_path / "dedup.db" / "data.mdb").stat().st_size > 5 * limits.MIB
    index.close()


def test_a_full_bucket_keeps_its_oldest(index: Signatures, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SIGNATURES_BUCKET_MAX", 10)
    for number in range(30):
        index.add_page(f"sha1:{number}", Original(f"http://a.example/{number}"), 0xFFFF_FFFF_FFFF_0000 & number << 16)
    assert index.near(5 << 16, "http://x.example/").of == "http://a.example/5"
    assert len(index._transaction.cursor(db=index._buckets).getmulti([b"\0\0\0"], dupdata=True)) == 10
