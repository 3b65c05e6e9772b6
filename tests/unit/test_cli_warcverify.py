"""crawltool warc verify: 0 when nothing is wrong, 1 and the place when something is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.records import Prior
from tests.archives import Archive, capture, files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    archive = Archive(tmp_path / "warc")
    archive.writer.store(
        [
            capture("http://h.test/p", b"hello"),
            capture("http://h.test/again", b"hello"),
            capture("http://h.test/cut", b"half", truncated="disconnect"),
            capture(
                "http://h.test/p",
                b"",
                head=b"HTTP/1.1 304 Not Modified\r\n\r\n",
                status=304,
                prior=Prior(warc_date="2020-01-01T00:00:00Z", warc_url="http://h.test/p"),
            ),
        ]
    )
    archive.close()
    [found] = files(tmp_path / "warc")
    return found


def verify(*arguments: object) -> int:
    return main(["warc", "verify", *map(str, arguments)], Voice())


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_archive_of_ours_has_nothing_wrong(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("-C", path.parent.parent) == 0
    captured = capsys.readouterr()
    assert "nothing wrong" in captured.err and "wrong:" not in captured.out
    assert verify("--json", path) == 0
    file, finding, summary = told(capsys)
    assert finding["code"] == "revisit_target"  # of the 304: that capture is in no file here
    assert file["records"] == {"warcinfo": 1, "request": 4, "response": 2, "revisit": 2}
    assert summary["type"] == "summary" and summary["records"] == file["records"] and summary["damage"] == 0


def test_damage_is_told_with_its_place_and_ends_with_1(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    assert verify("--json", path) == 1
    finding = next(one for one in told(capsys) if one.get("severity") == "damage")
    assert finding["code"] == "torn" and 0 < finding["offset"] < len(data) - 20
    assert verify(path) == 1
    captured = capsys.readouterr()
    assert f"{path}:{finding['offset']}: damage: torn:" in captured.out and "repair" in captured.err


def test_two_records_of_one_id_are_found_across_files(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = path.with_name("copy.warc.gz")
    copy.write_bytes(path.read_bytes())
    assert verify("--json", path, copy) == 1
    assert sum(one.get("code") == "record_id" for one in told(capsys)) == 9


def test_nothing_in_an_archive_can_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(b"WARC/1.1\r\nWARC-Type: \x1b[31m\xff\r\nContent-Length: 0\r\n\r\n\r\n\r\n\x1b[2J\n")
    assert verify(path) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out and len(out.splitlines()) > 2


def test_a_missing_file_is_no_input_and_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert verify(tmp_path / "none") == 66
    assert verify(tmp_path) == 0
    assert verify("-C", tmp_path) == 66
