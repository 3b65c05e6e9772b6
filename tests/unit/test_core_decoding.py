"""core/decoding: what is undone, what is kept as it is, and that nothing grows beyond its bound."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.decoding import decode

PAGE = b'<html><a href="/x">' + b"some words " * 4000 + b"</a></html>"
GZIP = gzip.compress(PAGE, mtime=0)
ZLIB = zlib.compress(PAGE)


@pytest.mark.parametrize(
    ("label", "body"),
    [
        ("gzip", GZIP),
        ("x-gzip", GZIP),
        ("GZIP", GZIP),
        ("gzip, identity", GZIP),
        ("gzip,gzip", gzip.compress(GZIP, mtime=0)),
        ("deflate", ZLIB),
        ("deflate", ZLIB[2:-4]),
        ("zstd", zstandard.compress(PAGE)),
        ("zstd, gzip", gzip.compress(zstandard.compress(PAGE), mtime=0)),
        ("gzip", gzip.compress(PAGE[:999], mtime=0) + gzip.compress(PAGE[999:], mtime=0)),
        ("gzip", GZIP + b"\x00\x00 what a careless server adds"),
        (None, PAGE),
        ("", PAGE),
    ],
)
def test_a_body_is_unpacked_whatever_spelling_its_coding_has(label: str | None, body: bytes) -> None:
    assert decode(body, label, limits.MIB) == (PAGE, None)


@pytest.mark.parametrize("label", ["gzip", "deflate", "zstd", "utf-8", "none"])
def test_a_plain_body_under_a_wrong_label_is_kept_and_the_label_is_told(label: str) -> None:
    data, trouble = decode(PAGE, label, limits.MIB)
    assert data == PAGE
    assert trouble is not None


def test_a_coding_we_never_asked_for_gives_no_text() -> None:
    assert decode(b"\x0b\x02\x80", "br", limits.MIB) == (b"", "encoding not supported: br")


@pytest.mark.parametrize("missing", [100, 8, 1])
def test_what_came_of_a_cut_body_is_kept(missing: int) -> None:
    data, trouble = decode(GZIP[:-missing], "gzip", limits.MIB)
    assert PAGE.startswith(data) and len(data) > 1000
    assert trouble == "compressed data is cut"


def test_what_stands_before_a_broken_place_is_kept() -> None:
    noise = bytes(i * 7919 % 251 for i in range(200_000))
    packed = bytearray(gzip.compress(noise, mtime=0))
    packed[-6] ^= 0xFF  # the checksum
    data, trouble = decode(bytes(packed), "gzip", limits.MIB)
    assert noise.startswith(data) and len(data) > 150_000
    assert trouble is not None and trouble.startswith("broken")


BOMB = gzip.compress(bytes(30_000_000))


@pytest.mark.parametrize(
    ("label", "body"),
    [
        ("gzip", BOMB),
        ("gzip, gzip", gzip.compress(BOMB, mtime=0)),
        ("deflate", zlib.compress(bytes(30_000_000))),
        ("zstd", zstandard.compress(bytes(30_000_000))),
        ("gzip", gzip.compress(b"", mtime=0) * 50_000),
        ("gzip, gzip, gzip, gzip", GZIP),
    ],
)
def test_a_bomb_costs_no_more_than_its_bound(label: str, body: bytes) -> None:
    tracemalloc.start()
    data, trouble = decode(body, label, limits.MIB)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) <= limits.MIB
    assert peak < 8 * limits.MIB
    assert trouble is not None


def test_a_zstd_window_beyond_that_of_http_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    body = zstandard.ZstdCompressor(compression_params=parameters).compress(bytes(200 * limits.MIB))
    assert decode(body, "zstd", limits.MIB)[1] is not None


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "zstd", "gzip, deflate", "x, gzip"]))
@settings(max_examples=60, deadline=None)
def test_no_bytes_raise(junk: bytes, label: str) -> None:
    for body in (junk, b"\x1f\x8b\x08" + junk, b"\x78\x9c" + junk, b"\x28\xb5\x2f\xfd" + junk):
        decode(body, label, 10_000)
