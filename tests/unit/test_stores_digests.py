"""The digest index: shared, transactional, growing."""

from __future__ import annotations

import hashlib
import multiprocessing
from pathlib import Path

import pytest

from crawltool import limits
from crawltool.errors import DiskTrouble
from crawltool.records import Locator
from crawltool.stores.digests import DigestIndex, Entry


def entry(number: int) -> Entry:
    return Entry(f"http://h.test/{number}", "2026-11-30T12:00:00Z", f"urn:uuid:{number}", "a.warc.gz", number, 10)


def key(number: int) -> bytes:
    return hashlib.sha1(b"%d" % number).digest()


def test_an_entry_comes_back_and_the_first_one_stays(tmp_path: Path) -> None:
    index = DigestIndex(tmp_path / "warc" / "digests.lmdb")
    with index.writing() as writing:
        writing.put(key(1), entry(1))
        writing.put(key(1), entry(2))
        assert writing.find(key(1)) == entry(1)
    index.close()
    again = DigestIndex(tmp_path / "warc" / "digests.lmdb")
    found = again.find(key(1))
    assert found == entry(1) and found.locator == Locator(file="a.warc.gz", offset=1, length=10)
    assert again.find(key(2)) is None and again.count() == 1
    again.close()


def test_a_failed_group_leaves_nothing(tmp_path: Path) -> None:
    index = DigestIndex(tmp_path / "d")
    with pytest.raises(OSError, match="full"), index.writing() as writing:
        writing.put(key(1), entry(1))
        writing.set_whole_to("a.warc.gz", 10)
        raise OSError("full")
    assert index.find(key(1)) is None
    with index.writing() as writing:
        assert writing.whole_to("a.warc.gz") is None
        writing.set_whole_to("a.warc.gz", 10)
    with index.writing() as writing:
        assert writing.whole_to("a.warc.gz") == 10
        writing.set_whole_to("a.warc.gz", None)
        writing.set_whole_to("a.warc.gz", None)
        assert writing.whole_to("a.warc.gz") is None
    index.close()


def test_the_map_grows_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DIGESTS_ROOM_BYTES", 256 * limits.KIB)
    index = DigestIndex(tmp_path / "d", map_bytes=512 * limits.KIB)
    for group in range(30):
        with index.writing() as writing:
            for number in range(group * 200, group * 200 + 200):
                writing.put(key(number), entry(number))
    assert index.count() == 6000
    index.close()


def _fill(path: Path) -> None:
    limits.DIGESTS_ROOM_BYTES = 256 * limits.KIB
    index = DigestIndex(path, map_bytes=512 * limits.KIB)
    for group in range(10):
        with index.writing() as writing:
            for number in range(group * 500, group * 500 + 500):
                writing.put(key(number), entry(number))
    index.close()


def test_growth_by_another_process_is_adopted(tmp_path: Path) -> None:
    index = DigestIndex(tmp_path / "d", map_bytes=512 * limits.KIB)
    assert index.find(key(4999)) is None
    child = multiprocessing.get_context("spawn").Process(target=_fill, args=(tmp_path / "d",))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert index.find(key(4999)) == entry(4999)
    with index.writing() as writing:
        writing.put(key(9999), entry(9999))
    index.close()


def test_a_damaged_index_is_named_with_its_cure(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(DiskTrouble) as raised:
        DigestIndex(tmp_path / "d")
    assert "remove" in raised.value.remedy
