"""The walk reads what can be read, reports the rest with its place, and always ends."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.stores import packings, unpacking, warcfile, warcwalk
from crawltool.stores.warcwalk import walk


def record(number: int, block: bytes = b"block", length: int | None = None) -> bytes:
    said = len(block) if length is None else length
    head = (
        f"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Date: 2026-12-01T00:00:00Z\r\n"
        f"WARC-Target-URI: http://h.test/{number}\r\nContent-Length: {said}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKINGS = {"plain": bytes, "gzip": warcfile.pack, "zstd": frame}


def read(path: Path) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Give the ids of whole records, and offset, length and code of everything that is not right."""
    ids, wrong = [], []
    for piece in walk(path):
        piece.close()
        if piece.head is not None and piece.is_whole:
            ids.append(piece.head.record_id.removeprefix("urn:uuid:"))
        wrong += [(piece.offset, piece.length, trouble.code) for trouble in piece.troubles]
    return ids, wrong


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a"


@pytest.mark.parametrize("packing", PACKINGS)
def test_records_have_their_place_and_length(path: Path, packing: str) -> None:
    members = [PACKINGS[packing](record(n, b"x" * n * 50_000)) for n in range(4)]
    path.write_bytes(b"".join(members))
    at, places = 0, []
    for member in members:
        places.append((at, len(member), 0))
        at += len(member)
    found = []
    for piece in walk(path):
        assert b"".join(piece.chunks()) == b"x" * len(found) * 50_000
        piece.close()
        found.append((piece.offset, piece.length, piece.inner))
    assert found == places and read(path) == (["0", "1", "2", "3"], [])


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_damage_in_a_member_costs_that_member_only(path: Path, packing: str) -> None:
    members = [PACKINGS[packing](record(n, random.Random(n).randbytes(3000))) for n in range(5)]
    hurt = bytearray(members[2])
    hurt[len(hurt) // 2] ^= 0xFF
    hurt[len(hurt) // 2 + 1] ^= 0xFF
    path.write_bytes(b"".join([*members[:2], bytes(hurt), *members[3:]]))
    ids, wrong = read(path)
    assert {"0", "1", "3", "4"} <= set(ids)
    assert (len(members[0]) + len(members[1]), len(hurt), "broken") in wrong


@pytest.mark.parametrize("junk", [b"\0\0\0", b"\r\n\r\n", b"\0" * 100_000, b"WARC", packings.GZIP_MAGIC + b"no"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_broken_beginning_does_not_hide_the_rest(path: Path, packing: str, junk: bytes) -> None:
    members = [PACKINGS[packing](record(n)) for n in range(4)]
    for lost in (0, 8):
        path.write_bytes(junk + members[0][lost:] + b"".join(members[1:]))
        assert read(path)[0][-3:] == ["1", "2", "3"]


@pytest.mark.parametrize("packing", PACKINGS)
def test_garbage_between_records_is_passed_over(path: Path, packing: str) -> None:
    first, second = PACKINGS[packing](record(1)), PACKINGS[packing](record(2))
    path.write_bytes(first + b"garbage " * 20_000 + b"\r\n" + second)
    ids, wrong = read(path)
    assert ids == ["1", "2"]
    assert next((offset, code) for offset, _, code in wrong) == (len(first), "no_record" if packing == "plain" else "broken")
    assert sum(length for _, length, _ in wrong) == 160_002


@pytest.mark.parametrize("length", [2, 40, 200, 10**6, 10**17])
def test_a_wrong_length_loses_no_later_record(path: Path, length: int) -> None:
    path.write_bytes(record(1, length=length) + b"".join(record(n) for n in range(2, 6)))
    ids, wrong = read(path)
    assert ids[-4:] == ["2", "3", "4", "5"] and wrong
    # Packed, a record ends with its member at the latest.
    path.write_bytes(b"".join(warcfile.pack(one) for one in (record(1, length=length), record(2), record(3))))
    ids, wrong = read(path)
    assert ids[-2:] == ["2", "3"] and wrong


def test_many_records_in_one_member_are_read_and_reported(path: Path) -> None:
    whole = gzip.compress(b"".join(record(n) for n in range(50)))
    path.write_bytes(whole)
    ids, wrong = read(path)
    assert len(ids) == 50 and [code for _, _, code in wrong] == ["shared_member"] * 49
    path.write_bytes(whole[:-100] + b"\x00" * 100)  # what lies before the broken place is not lost
    ids, wrong = read(path)
    assert len(ids) > 25 and wrong[-1][2] == "broken"


def test_a_record_may_lie_in_several_frames(path: Path) -> None:
    one = record(1, b"WARC " * 1000)
    path.write_bytes(frame(one[:100]) + frame(one[100:3000]) + frame(one[3000:]) + frame(record(2)))
    assert read(path) == (["1", "2"], [])


@pytest.mark.parametrize("packed_dictionary", [False, True])
def test_a_dictionary_stands_in_a_frame_of_its_own(path: Path, packed_dictionary: bool) -> None:
    content = random.Random(1).randbytes(4000)
    dictionary = zstandard.ZstdCompressionDict(content)
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    stored = frame(content) if packed_dictionary else content
    head = unpacking.DICTIONARY_MAGIC + len(stored).to_bytes(4, "little") + stored
    path.write_bytes(head + packer.compress(record(1, content)) + packer.compress(record(2)))
    assert path.stat().st_size < 2 * len(content)
    assert read(path) == (["1", "2"], [])


def test_a_frame_that_asks_for_a_huge_window_is_refused(path: Path) -> None:
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    ).compressobj()
    path.write_bytes(frame(record(1)) + wide.compress(record(2)) + wide.flush() + frame(record(3)))
    ids, wrong = read(path)
    assert ids == ["1", "3"] and [code for _, _, code in wrong] == ["broken"]


@pytest.mark.parametrize("cut", [1, 4, 5, 30, 120, 230, 231, 400])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_torn_tail_is_reported(path: Path, packing: str, cut: int) -> None:
    members = [PACKINGS[packing](record(n, random.Random(n).randbytes(600))) for n in range(2)]
    path.write_bytes((members[0] + members[1])[:-cut])
    ids, wrong = read(path)
    assert ids[0] == "0"
    assert wrong and wrong[-1][0] == len(members[0])
    if cut > 30:
        assert ids == ["0"]


def test_a_header_block_without_an_end_does_not_fill_the_memory(path: Path) -> None:
    with path.open("wb") as file:
        file.write(record(1) + b"WARC/1.1\r\n")
        for _ in range(300):
            file.write(b"X-Header: " + b"y" * 99_990 + b"\r\n")
        file.write(b"\r\n\r\n" + record(2))
    tracemalloc.start()
    ids, wrong = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ids == ["1", "2"] and wrong[0][2] == "no_record"
    assert peak < 16 * limits.MIB


def test_a_bomb_costs_time_and_no_memory(path: Path) -> None:
    path.write_bytes(gzip.compress(record(1, b"\0" * 100 * limits.MIB)) + warcfile.pack(record(2)))
    tracemalloc.start()
    assert read(path) == (["1", "2"], [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * limits.MIB


def test_headers_that_lie_about_length_do_not_make_it_slow(path: Path) -> None:
    one = record(1, b"", length=3_000_000)
    path.write_bytes(one * 20_000)
    began = time.process_time()
    assert sum(1 for _ in walk(path)) == 20_000
    assert time.process_time() - began < 8


@given(st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_bytes_make_it_raise_or_lose_its_place(tmp_path: Path, data: st.DataObject) -> None:
    packing = data.draw(st.sampled_from(sorted(PACKINGS)))
    good = bytearray(b"".join(PACKINGS[packing](record(n, b"x" * 40)) for n in range(3)))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(good)))
        junk = data.draw(st.one_of(st.binary(max_size=20), st.sampled_from([b"\r\n", b"WARC/1.1\r\n", packings.GZIP_MAGIC, b""])))
        good[at : at + data.draw(st.integers(0, 12))] = junk
    path = tmp_path / "junk"
    path.write_bytes(good)
    end = 0
    for piece in walk(path):
        piece.close()
        assert piece.offset >= 0 and piece.offset + piece.length <= len(good)
        assert piece.offset + piece.length >= end or piece.length == 0
        end = max(end, piece.offset + piece.length)


def test_an_arc_file_is_read_like_a_warc_file(path: Path) -> None:
    about = b"1 0 me\nURL IP-address Archive-date Content-type Archive-length\n"
    page = b"HTTP/1.0 200 OK\r\n\r\nhello"
    path.write_bytes(
        b"filedesc://a.arc 127.0.0.1 20140216050221 text/plain %d\n" % len(about)
        + about
        + b"\nhttp://h.test/a b 192.0.2.1 20140216050221 text/html %d\n" % len(page)
        + page
        + b"\n"
    )
    info, answer = [(piece.head, b"".join(piece.chunks())) for piece in warcwalk.walk(path)]
    assert info[0] is not None and info[0].type == "warcinfo" and info[1] == about
    head, block = answer
    assert head is not None and head.type == "response" and head.url == "http://h.test/a b" and block == page
    assert head.get("warc-date") == "2014-02-16T05:02:21Z" and head.get("warc-ip-address") == "192.0.2.1"
