"""Archives of other people's crawlers, good and damaged: at least what warcio and FastWARC read of each is read here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawltool.core.warcchecks import CODES
from crawltool.stores.warcverify import FileReport, Finding, Verifier
from crawltool.stores.warcwalk import walk
from tests.paths import shared_data

# Both readers read these without a word, and something is wrong with them all the same. Neither looks at ids, at missing
# fields or at the ends of lines.
WRONG_ALTHOUGH_READ = {
    "chatnoir-resiliparse/clipped.warc.gz": {"torn", "broken"},
    "jwat/invalid-warcfile-fields-missing.warc": {"field", "content_length"},
    "jwat/invalid-warcfile-lonely-continuation.warc": {"field", "content_length"},
    "jwat/invalid-warcfile-lonely-monkeys.warc": {"header", "field", "content_length"},
    "jwat/invalid-warcfile-segment-number-continuation.warc": {"record_id"},
    "jwat/invalid-warcfile-segment-number-response.warc": {"record_id"},
    "pywb/example-wget-1-14.warc.gz": {"record_id"},
    "pywb/missing-status-text.warc": {"header"},
    "stormcrawler/test.warc.gz": {"record_id"},
    "warc/test.warc.gz": {"record_id"},
    "warcat/at.warc": {"record_id"},
    "warcat/at.warc.gz": {"record_id"},
    "webarchive-commons/IAH-urls-wget.warc": {"record_id"},
    "webarchive-commons/IAH-urls-wget.warc.gz": {"record_id"},
}
# One of the two does not read these, and nothing is wrong: FastWARC reads no ARC, no folded header lines and no `warc/1.0`,
# warcio no zstd, no LZ4 and no digest that is not SHA.
NOTHING_WRONG = {
    "BUbiNG/response.warc",
    "built/example-extframe.warc.zst",
    "built/example-multiframe.warc.zst",
    "built/example-nodict.warc.zst",
    "built/warcfile-rawdict.warc.zst",
    "built/warcfile-zdict.warc.zst",
    "chatnoir-resiliparse/block-sized-records.warc.lz4",
    "chatnoir-resiliparse/warcfile.warc.lz4",
    "jwat/1-1-20110922131213-00000-svc-VirtualBox.arc",
    "jwat/IAH-20080430204825-00000-blackbook.arc.gz",
    "jwat/small_BNF.arc",
    "jwat/test-utf8.warc",
    "jwat/valid-warcfile-fields-continuation.warc",
    "jwat/valid-warcfile-fields-metainfo.warc",
    "jwat/valid-warcfile-fields-warcinfo.warc",
    "jwat/valid-warcfile-upper-lower-case.warc",
    "warcio/example.arc",
    "warcio/example.arc.gz",
}


def rows() -> list[dict[str, Any]]:
    path = shared_data("warc/index.jsonl")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in found if row.get("warcio") or row.get("fastwarc")]


def expected(reader: dict[str, Any] | None) -> Counter[str]:
    """Count by type as a reader does; a header that FastWARC took for one long type counts for nothing."""
    records = (reader or {}).get("records", {})
    counts: Counter[str] = Counter()
    for name, count in records.items():
        if len(name) < 30:
            counts[name.strip().lower() or "unknown"] += count
    return counts


def read(path: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for piece in walk(path):
        if piece.head is not None:
            counts["arc_header" if piece.head.url.startswith("filedesc:") else piece.head.type or "unknown"] += 1
    return counts


def grave(path: Path) -> set[str]:
    verifier = Verifier()
    with verifier.sorter:
        found = [*verifier.file(path), *verifier.across()]
    assert sum(isinstance(one, FileReport) for one in found) == 1
    return {one.code for one in found if isinstance(one, Finding) and one.severity != "note"}


def test_every_record_that_another_reader_reads_is_read() -> None:
    compared = 0
    for row in rows():
        mine = read(shared_data("warc/" + row["file"]))
        for name in ("warcio", "fastwarc"):
            missing = expected(row[name]) - mine
            assert not missing, f"{row['file']}: {name} reads {missing} more"
        if row["warcio"] and row["fastwarc"] and not row["warcio"]["error"] and not row["fastwarc"]["error"]:
            assert mine == max(expected(row["warcio"]), expected(row["fastwarc"]), key=Counter.total), row["file"]
        compared += 1
    assert compared > 140


def test_damage_is_reported_and_good_files_are_left_alone() -> None:
    for row in rows():
        warcio, fastwarc = row["warcio"], row["fastwarc"]
        is_good = warcio and fastwarc and expected(warcio) == expected(fastwarc) and not (warcio["error"] or fastwarc["error"])
        is_good = is_good and not warcio["digest"].get("False")
        found = grave(shared_data("warc/" + row["file"]))
        if is_good:
            assert found == WRONG_ALTHOUGH_READ.get(row["file"], set()), row["file"]
        else:
            assert bool(found) == (row["file"] not in NOTHING_WRONG), f"{row['file']}: {found}"


@pytest.mark.parametrize(
    ("file", "offset", "code"),
    [
        ("built/example-bitflip.warc.zst", 364, "broken"),
        ("gowarc/corrupted-trailing-bytes.warc.gz.open", 2362, "broken"),
        ("jwat/invalid-warcfile-record-then-garbage.warc", 1135, "no_record"),
        ("pywb/example.warc", 4764, "no_record"),
    ],
)
def test_damage_has_its_place(file: str, offset: int, code: str) -> None:
    pieces = [piece for piece in walk(shared_data("warc/" + file)) if piece.head is None]
    assert [(piece.offset, piece.troubles[0].code) for piece in pieces] == [(offset, code)]


def test_every_code_has_a_grade_and_a_meaning() -> None:
    assert all(grade in ("damage", "wrong", "note") and text for grade, text in CODES.values())
