"""The archive: one body once, whole records always, durable before named."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import resource
import signal
from pathlib import Path

import pytest

from crawltool.errors import DiskTrouble
from crawltool.records import Prior
from crawltool.stores import warc, warcfile, warcread
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warc import WarcWriter
from tests.archives import EMPTY_DIGEST, Archive, Pieces, assert_clean, capture, files, found, types


def test_a_file_is_open_until_it_is_closed_and_starts_with_warcinfo(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    assert files(tmp_path) == []
    [stored] = archive.writer.store([capture("http://h.test/p", b"hello")])
    [path] = files(tmp_path)
    assert path.name == stored.warc.file + ".open"
    assert re.fullmatch(r"crawltool-\d{17}-\d{5}-\d+~[A-Za-z0-9.-]+\.warc\.gz", stored.warc.file)
    assert types(path) == ["warcinfo", "request", "response"]
    assert warcread.read(tmp_path, stored.warc).body == b"hello"
    archive.close()
    assert files(tmp_path) == [tmp_path / stored.warc.file]
    assert_clean(tmp_path / stored.warc.file)


def test_a_stored_body_becomes_a_revisit_of_its_first_capture(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    [first, second] = archive.writer.store([capture("http://h.test/1", b"hello"), capture("http://h.test/2", b"hello")])
    [third] = archive.writer.store([capture("http://other.test/", b"hello")])
    assert [item.revisit for item in (first, second, third)] == [False, True, True]
    assert second.body_warc == third.body_warc == first.warc and first.body_warc is None
    assert first.digest == second.digest == third.digest == "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N"
    for item in (second, third):
        record = warcread.read(tmp_path, item.warc)
        assert record.type == "revisit" and record.body == b"" and record.http_status == 200
        assert record.headers["warc-refers-to"] == f"<{first.record_id}>"
        assert record.headers["warc-refers-to-target-uri"] == "http://h.test/1"
    archive.close()
    assert_clean(files(tmp_path)[0])


@pytest.mark.parametrize(
    "other",
    [
        {"status": 404},
        {"status": 206},
        {"truncated": "length"},
        {"kind": "robots"},
        {"kind": "sitemap"},
    ],
)
def test_only_whole_pages_are_referred_to_or_refer(tmp_path: Path, other: dict[str, object]) -> None:
    archive = Archive(tmp_path)
    odd = capture("http://h.test/odd", b"hello", **other)  # type: ignore[arg-type]
    page = capture("http://h.test/page", b"hello")
    stored = archive.writer.store([odd, page, odd])
    assert [item.revisit for item in stored] == [False, False, False]
    archive.close()


def test_an_empty_body_is_never_a_revisit_and_has_no_digest_to_compare(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    stored = archive.writer.store([capture("http://h.test/1", b""), capture("http://h.test/2", b"")])
    assert [(item.revisit, item.digest) for item in stored] == [(False, None), (False, None)]
    archive.close()


def test_a_304_refers_to_its_prior_copy(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    [first] = archive.writer.store([capture("http://h.test/p", b"hello")])
    date = warcread.read(tmp_path, first.warc).headers["warc-date"]
    prior = Prior(digest=first.digest, warc_id=first.record_id, warc_date=date, warc_url="http://h.test/p")
    head = b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\nContent-Length: 5\r\n\r\n'
    [again] = archive.writer.store([capture("http://h.test/p", b"", head=head, status=304, prior=prior)])
    assert again.revisit and again.body_warc == first.warc and again.digest == first.digest
    record = warcread.read(tmp_path, again.warc)
    assert record.headers["warc-profile"].endswith("/server-not-modified")
    assert record.headers["warc-refers-to-date"] == date and record.http_head == head
    assert EMPTY_DIGEST not in record.headers.values()
    archive.close()
    assert_clean(files(tmp_path)[0])


def test_a_304_without_a_known_copy_is_kept_as_it_came(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    [stored] = archive.writer.store([capture("http://h.test/p", b"", head=b"HTTP/1.1 304 x\r\n\r\n", status=304)])
    record = warcread.read(tmp_path, stored.warc)
    assert record.type == "response" and "warc-payload-digest" not in record.headers and not stored.revisit
    archive.close()
    assert_clean(files(tmp_path)[0])


def test_a_large_body_is_streamed_and_deduplicated_like_any_other(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    data = os.urandom(3_000_000) + b"x" * 2_000_000
    small = b"small" * 1000
    stored = archive.writer.store(
        [
            capture("http://h.test/big", Pieces(data)),
            capture("http://h.test/small", Pieces(small)),
            capture("http://h.test/big2", Pieces(data)),
            capture("http://h.test/sitemap.xml", Pieces(data), kind="sitemap"),
        ]
    )
    assert [item.revisit for item in stored] == [False, False, True, False]
    assert warcread.read(tmp_path, stored[0].warc).body == data
    assert warcread.read(tmp_path, stored[1].warc).body == small
    archive.close()
    assert_clean(files(tmp_path)[0])


def test_files_rotate_and_each_has_its_own_warcinfo(tmp_path: Path) -> None:
    archive = Archive(tmp_path, rotate_bytes=3000)
    for n in range(6):
        archive.writer.store([capture(f"http://h.test/{n}", os.urandom(900))])
    archive.close()
    done = files(tmp_path)
    assert len(done) == 3 and all(path.suffix == ".gz" for path in done)
    identities = set()
    for path in done:
        assert types(path)[0] == "warcinfo"
        assert_clean(path)
        infos = {item.record.headers.get("warc-warcinfo-id") for item in found(path) if item.record} - {None}
        assert len(infos) == 1
        identities |= infos
    assert len(identities) == 3


def test_a_group_larger_than_its_bounds_is_stored_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "_GROUP_CAPTURES", 3)
    archive = Archive(tmp_path)
    stored = archive.writer.store([capture(f"http://h.test/{n}", b"%d" % n) for n in range(8)])
    assert [warcread.read(tmp_path, item.warc).body for item in stored] == [b"%d" % n for n in range(8)]
    archive.close()


def test_a_failing_write_at_every_step_leaves_a_whole_file_and_can_be_retried(tmp_path: Path) -> None:
    batches = [[capture(f"http://h.test/{g}/{n}", b"%d %d " % (g, n) * 50) for n in range(3)] for g in range(3)]
    step = 0
    while True:
        step += 1
        directory = tmp_path / str(step)
        archive = Archive(directory)
        with pytest.MonkeyPatch.context() as patch:
            calls = _failing(patch, step)
            for batch in batches:
                try:
                    stored = archive.writer.store(batch)
                except DiskTrouble:
                    for path in files(directory):
                        assert "DAMAGE" not in types(path)
                    stored = archive.writer.store(batch)
                assert [warcread.read(directory, item.warc).http_status for item in stored] == [200] * 3
                assert not any(item.revisit for item in stored)
        archive.close()
        [path] = files(directory)
        assert types(path) == ["warcinfo"] + ["request", "response"] * 9
        assert_clean(path)
        if calls[0] < step:
            break
    assert step > 6  # a write and an fsync for each group, at least


def _failing(patch: pytest.MonkeyPatch, step: int) -> list[int]:
    """Make the write or fsync number `step` fail, a write after some of its bytes."""
    calls = [0]
    write, fsync = os.write, os.fsync

    def failing_write(descriptor: int, data: bytes) -> int:
        calls[0] += 1
        if calls[0] == step:
            write(descriptor, bytes(data[: len(data) // 2]))
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    def failing_fsync(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == step:
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    patch.setattr(os, "write", failing_write)
    patch.setattr(os, "fsync", failing_fsync)
    return calls


def test_a_file_that_cannot_be_cut_back_is_left_and_a_new_one_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path)
    archive.writer.store([capture("http://h.test/1", b"one")])

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        patch.setattr(os, "ftruncate", broken)
        with pytest.raises(DiskTrouble):
            archive.writer.store([capture("http://h.test/2", b"two")])
    [stored] = archive.writer.store([capture("http://h.test/2", b"two")])
    archive.close()
    names = [path.name for path in files(tmp_path)]
    assert len(names) == 2 and stored.warc.file in names and names[0].endswith(".open")


def _write_until_full(directory: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    index = DigestIndex(directory / "digests.lmdb")
    writer = WarcWriter(directory, index, {})
    n = 0
    try:
        while True:
            n += 1
            writer.store([capture(f"http://h.test/{n}", os.urandom(20_000))])
    except DiskTrouble as trouble:
        assert "arge" in str(trouble), trouble
        writer.close()
        os._exit(n)


def test_a_real_size_limit_ends_in_disk_trouble_and_a_whole_file(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_write_until_full, args=(tmp_path,))
    child.start()
    child.join()
    assert 5 < (child.exitcode or 0) < 30
    [path] = files(tmp_path)
    assert path.suffix == ".gz" and types(path).count("response") == (child.exitcode or 0) - 1
    assert_clean(path)


def _write_until_the_index_is_full(directory: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    index = DigestIndex(directory / "digests.lmdb")
    writer = WarcWriter(directory, index, {}, rotate_bytes=20_000)
    n = 0
    try:
        while True:
            writer.store([capture(f"http://h.test/{n}/{k}", os.urandom(9)) for k in range(10)])
            n += 1
    except DiskTrouble:
        os._exit(n)


def test_an_index_that_cannot_grow_takes_its_group_back(tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_write_until_the_index_is_full, args=(tmp_path,))
    child.start()
    child.join()
    groups = child.exitcode or 0
    assert groups > 10
    stored = [kind for path in files(tmp_path) for kind in types(path)]
    assert stored.count("response") == groups * 10 and "DAMAGE" not in stored
    archive = Archive(tmp_path)
    assert archive.index.count() == groups * 10
    archive.close()


def _store_pages(directory: Path, own: int, barrier: object) -> None:
    archive = Archive(directory, rotate_bytes=30_000)
    barrier.wait()  # type: ignore[attr-defined]
    for group in range(20):
        pages = [capture(f"http://{own}.test/{group}/{n}", b"body %d %d " % (group, n) * 40) for n in range(10)]
        archive.writer.store(pages)
    archive.close()


def test_two_processes_store_each_body_once_and_never_share_a_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    children = [context.Process(target=_store_pages, args=(tmp_path, own, barrier)) for own in (1, 2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    records = []
    for path in files(tmp_path):
        assert_clean(path)
        hosts = {item.record.url.split("/")[2] for item in found(path) if item.record and item.record.url}
        assert len(hosts) == 1, "two writers in one file"
        records += [item.record for item in found(path) if item.record]
    responses = [record.headers["warc-payload-digest"] for record in records if record.type == "response"]
    assert len(responses) == len(set(responses)) == 200
    originals = {(r.url, r.headers["warc-date"], r.headers["warc-record-id"]) for r in records if r.type == "response"}
    revisits = [r for r in records if r.type == "revisit"]
    assert len(revisits) == 200
    for r in revisits:
        named = (r.headers["warc-refers-to-target-uri"], r.headers["warc-refers-to-date"], r.headers["warc-refers-to"])
        assert named in originals


def test_a_name_that_exists_is_never_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warcfile.time, "time", lambda: 1_796_040_000.0)
    first = warcfile.WarcFile(tmp_path, 1)
    second = warcfile.WarcFile(tmp_path, 1)
    first.add(warcfile.pack(b"x"))
    first.sync()
    first.finish()
    third = warcfile.WarcFile(tmp_path, 1)
    assert len({first.name, second.name, third.name}) == 3
    second.finish()
    third.finish()
    assert [path.name for path in files(tmp_path)] == [first.name]
