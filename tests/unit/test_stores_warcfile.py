"""Repair: what a dead writer left becomes a whole file, what a live one holds is not touched."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawltool.stores import atomic, warcfile, warcread
from crawltool.stores.digests import DigestIndex
from tests.archives import Archive, assert_clean, capture, files, found, types

SCRIPT = """
import sys, os
from pathlib import Path
from tests.archives import Archive, capture
archive = Archive(Path(sys.argv[1]), rotate_bytes=int(sys.argv[3]))
n = 0
while True:
    group = [capture(f"http://h.test/{sys.argv[2]}/{n + k}", b"page %d " % ((n + k) // 2) * 300) for k in range(7)]
    n += 7
    for stored in archive.writer.store(group):
        os.write(1, f"{stored.warc.file}:{stored.warc.offset}:{stored.warc.length}:{stored.revisit:d}\\n".encode())
"""


def left_open(directory: Path, bodies: int = 3) -> Path:
    """Write an archive and let its writer die: the lock goes, the suffix stays."""
    archive = Archive(directory)
    for n in range(bodies):
        archive.writer.store([capture(f"http://h.test/{n}", b"body %d" % n)])
    assert archive.writer._file is not None
    archive.writer._file.abandon()
    archive.index.close()
    [path] = files(directory)
    return path


@pytest.mark.parametrize("knows", [True, False])
def test_a_torn_end_is_cut_at_every_byte(tmp_path: Path, knows: bool) -> None:
    path = left_open(tmp_path)
    whole = path.read_bytes()
    last = found(path)[-1]
    index = DigestIndex(tmp_path / "digests.lmdb")
    name = path.name.removesuffix(".open")
    final = tmp_path / name
    for size in range(last.offset, len(whole), 7):
        path.write_bytes(whole[:size])
        final.unlink(missing_ok=True)
        with index.writing() as writing:
            writing.set_whole_to(name, last.offset if knows else None)
        [repaired] = warcfile.repair(tmp_path, index)
        assert repaired == warcfile.Repaired(path.name, name, size - last.offset)
        assert final.read_bytes() == whole[: last.offset] and not path.exists()
    index.close()


def test_bodies_behind_what_the_index_knew_are_adopted(tmp_path: Path) -> None:
    path = left_open(tmp_path)
    for item in (tmp_path / "digests.lmdb").iterdir():
        item.unlink()
    archive = Archive(tmp_path)
    assert [item.cut_bytes for item in archive.writer.repaired] == [0]
    stored = archive.writer.store([capture("http://other.test/", b"body 2"), capture("http://other.test/new", b"new")])
    assert [item.revisit for item in stored] == [True, False]
    assert stored[0].body_warc is not None and stored[0].body_warc.file == path.name.removesuffix(".open")
    assert warcread.read(tmp_path, stored[0].body_warc).body == b"body 2"
    archive.close()


def test_damage_before_whole_records_is_not_cut_when_nothing_is_known(tmp_path: Path) -> None:
    path = left_open(tmp_path)
    data = bytearray(path.read_bytes())
    middle = found(path)[2]
    data[middle.offset + 30] ^= 0xFF
    path.write_bytes(data + b"\x1f\x8b\x08torn")
    for item in (tmp_path / "digests.lmdb").iterdir():
        item.unlink()
    index = DigestIndex(tmp_path / "digests.lmdb")
    [repaired] = warcfile.repair(tmp_path, index)
    assert repaired.cut_bytes == 7
    assert (tmp_path / str(repaired.name)).read_bytes() == bytes(data)
    index.close()


def test_zeros_behind_the_durable_part_are_cut(tmp_path: Path) -> None:
    path = left_open(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(5000) + whole[:900])  # after a power cut pages may be missing in between
    index = DigestIndex(tmp_path / "digests.lmdb")
    [repaired] = warcfile.repair(tmp_path, index)
    assert repaired.cut_bytes == 5900
    assert_clean(tmp_path / str(repaired.name))
    index.close()


def test_an_empty_file_is_removed_and_a_held_one_left_alone(tmp_path: Path) -> None:
    index = DigestIndex(tmp_path / "digests.lmdb")
    (tmp_path / "crawltool-1.warc.gz.open").touch()
    held = tmp_path / "crawltool-2.warc.gz.open"
    held.write_bytes(b"torn")
    with atomic.lock(held):
        assert warcfile.repair(tmp_path, index) == [warcfile.Repaired("crawltool-1.warc.gz.open", None, 0)]
        assert files(tmp_path) == [held] and held.read_bytes() == b"torn"
    assert warcfile.repair(tmp_path, index) == [warcfile.Repaired(held.name, None, 4)]
    assert files(tmp_path) == []
    index.close()


def test_a_killed_writer_leaves_a_valid_prefix_with_all_that_it_named(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    named: list[tuple[str, int, int, bool]] = []
    for turn in range(5):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(turn), str(40_000)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent.parent)
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        time.sleep(dice.random() * 0.05)
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.read().splitlines(keepends=True)
        child.wait()
        child.stdout.close()
        for line in lines:
            if line.endswith(b"\n"):
                file, offset, length, revisit = line.decode().split(":")
                named.append((file, int(offset), int(length), revisit == "1\n"))
    Archive(tmp_path).close()
    digests = []
    places = set()
    for path in files(tmp_path):
        assert path.suffix == ".gz"
        assert_clean(path)
        for item in found(path):
            assert item.record is not None
            places.add((path.name, item.offset, item.length, item.record.type == "revisit"))
            if item.record.type == "response":
                digests.append(item.record.headers["warc-payload-digest"])
    assert len(digests) == len(set(digests)), "a body was stored twice"
    assert named and set(named) <= places


def test_types_of_a_repaired_file_begin_with_warcinfo(tmp_path: Path) -> None:
    path = left_open(tmp_path, bodies=1)
    Archive(tmp_path).close()
    assert types(tmp_path / path.name.removesuffix(".open")) == ["warcinfo", "request", "response"]
