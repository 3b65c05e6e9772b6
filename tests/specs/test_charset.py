"""Charset: WHATWG Encoding and the HTML prescan, by data sets of others, and the cases CHA-01 to CHA-03."""

from __future__ import annotations

import base64
import io
import json
import tarfile

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core.pages import charset, charsetlabels
from tests.paths import shared_data

PRIVET = "Привет"


def test_the_prescan_agrees_with_every_case_of_html5lib() -> None:
    wrong = []
    for line in shared_data("encoding/html5lib_prescan.jsonl").read_text().splitlines():
        case = json.loads(line)
        if case["scripted"]:
            continue
        body = base64.b64decode(case["data_b64"]) if "data_b64" in case else case["data"].encode()
        if body.startswith(b"\xef\xbb\xbf"):
            got = charset.decode(body, None)[1]
        else:
            got = charset.prescan(body) or "windows-1252"
        if got.lower() != case["expected"].lower():
            wrong.append((case["id"], case["expected"], got))
    assert not wrong


def test_every_label_means_what_the_standard_says() -> None:
    table = json.loads(shared_data("encoding/whatwg_encodings.json").read_text())
    names = {label: row["name"] for group in table for row in group["encodings"] for label in row["labels"]}
    assert names == charsetlabels.NAMES


def test_sniffing_alone_reads_most_unlabelled_texts_as_their_label_says() -> None:
    packed = shared_data("encoding/chardet_pages.tar.zst").read_bytes()
    right = 0
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().stream_reader(packed).read())) as tar:
        bodies = {member.name.split("/", 1)[-1]: tar.extractfile(member).read() for member in tar if member.isfile()}  # type: ignore[union-attr]
    rows = [json.loads(line) for line in shared_data("encoding/chardet_index.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["whatwg"]]
    for row in rows:
        body = bodies[row["file"].split("/", 1)[-1]]
        marked = body.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe"))
        text = charset.decode(body, None)[0] if marked else charset._read(body, charset.sniff(body))
        right += text.lstrip("\ufeff") == body.decode(row["python_codec"]).lstrip("\ufeff")
    assert right >= 177, f"{right} of {len(rows)}"


def test_every_encoding_reads_every_byte_and_gives_text_that_can_be_written() -> None:
    every = bytes(range(256)) * 2
    for name in set(charsetlabels.NAMES.values()):
        charset._read(every, name).encode()


def test_every_encoding_has_a_decoder() -> None:
    known = {*charsetlabels.SINGLE_BYTE, *charsetlabels.MULTI_BYTE, "replacement"}
    assert set(charsetlabels.NAMES.values()) == known


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("windows-1251", b"\xef\xbb\xbf" + PRIVET.encode()),
        (None, b"\xff\xfe" + PRIVET.encode("utf-16-le")),
        ("utf-8", b"\xfe\xff" + PRIVET.encode("utf-16-be")),
    ],
)
def test_cha_01_a_byte_order_mark_beats_the_header(header: str | None, body: bytes) -> None:
    assert charset.decode(body, header)[0] == PRIVET


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (None, b'<!doctype html><meta charset="utf-16"><title>R\xc3\xa9sum\xc3\xa9</title><a href="/x">'),
        (None, b"<!--" + b"." * 2000 + b'--><meta charset="iso-8859-1"><title>R\xe9sum\xe9</title>'),
        (None, b"<meta content='text/html; charset=windows-1252' http-equiv=Content-Type><title>R\xe9sum\xe9</title>"),
        ("utf-8", b"<meta charset=windows-1252><title>R\xc3\xa9sum\xc3\xa9</title>"),
    ],
)
def test_cha_02_metas_are_heard_late_and_not_taken_literally(header: str | None, body: bytes) -> None:
    assert "<title>Résumé</title>" in charset.decode(body, header)[0]


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html; charset=gb2312", b"\xe9\x46", "镕"),
        ("text/html; charset=iso-8859-1", b"\x93ok\x94 \x80", "“ok” €"),
        ("text/html; charset=ascii", b"\x93ok\x94", "“ok”"),
        ("text/html", b"<meta charset=x-user-defined>\x93ok\x94", "<meta charset=x-user-defined>“ok”"),
        ('text/html; charset="utf8"', "é".encode(), "é"),
        ("text/html;charset=UTF-8;", "é".encode(), "é"),
        ("text/html; charset='shift_jis'", "あ".encode("cp932"), "あ"),
        ("text/html; charset=no-such-thing", "né".encode(), "né"),
        ("text/html; charset=no-such-thing", b"<meta charset=koi8-r>\xd0", "<meta charset=koi8-r>п"),
        ("text/html; charset=iso-8859-1", b"\x81\x8d\x8f\x90\x9d", "\x81\x8d\x8f\x90\x9d"),
    ],
)
def test_cha_03_labels_mean_the_encodings_of_the_web(content_type: str, body: bytes, text: str) -> None:
    assert charset.decode(body, charset.of_content_type(content_type))[0] == text


def test_utf_16_without_a_mark_is_recognised_by_its_zero_bytes() -> None:
    for codec in ("utf-16-le", "utf-16-be"):
        assert charset.decode("<p>plain words</p>".encode(codec), None)[0] == "<p>plain words</p>"


def test_a_body_cut_inside_a_sign_stays_utf_8() -> None:
    assert charset.decode(("ы" * 5000).encode()[:-1], None) == ("ы" * 4999 + "\ufffd", "UTF-8")


@given(st.binary(max_size=300), st.sampled_from([None, "utf-16", "gb18030", "iso-2022-jp", "big5", "x-user-defined", "nonsense"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_become_text_that_can_be_written_as_utf_8(body: bytes, label: str | None) -> None:
    for given_body in (body, b"<meta charset=" + body, b"<?xml encoding='" + body):
        charset.decode(given_body, label)[0].encode()
