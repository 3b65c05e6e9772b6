"""seed publishes what is a URL, counts and shows what is none, and contacts nobody."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

from crawltool import limits, records
from crawltool.cli.seed import command
from crawltool.errors import BadRecord, NoInput
from crawltool.stages import seed


def sow(
    tmp_path: Path, listed: bytes | None, *, name: str = "list.txt", **rest: object
) -> tuple[list[records.Candidate], list[str]]:
    """Run seed on a list; give the candidates and what a person saw."""
    if listed is not None:
        (tmp_path / name).write_bytes(listed)
    said: list[str] = []
    settings = seed.Settings(
        input=str(tmp_path / name) if listed is not None else None,
        output=str(tmp_path / "out"),
        **rest,  # type: ignore[arg-type]
    )
    try:
        seed.run(settings, said.append)
    finally:
        found = [records.decode(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    assert all(isinstance(one, records.Candidate) and one.source == "seed" for one in found)
    return found, said  # type: ignore[return-value]


def test_a_list_from_windows_with_comments_blanks_and_idn(tmp_path: Path) -> None:
    listed = "\ufeffexample.com\r\n\r\n# mine\r\n  https://bücher.example/x  \r\nhttp://b.example/".encode()
    found, said = sow(tmp_path, listed)
    assert [one.url for one in found] == ["https://example.com/", "https://xn--bcher-kva.example/x", "http://b.example/"]
    assert [one.else_url for one in found] == ["http://example.com/", None, None]
    assert said == []


def test_bad_lines_are_shown_with_their_number_and_the_rest_goes_on(tmp_path: Path) -> None:
    listed = b"\n".join(
        (
            b"http://a.example/",
            b"",
            b"ftp://a.example/",
            b"x" * 3_000_000,
            b"\xff\xfe",
            b"http://b.example/\x00",
            b"words",
            b"one more",
            b"http://b.example/",
        )
    )
    found, said = sow(tmp_path, listed)
    path = tmp_path / "list.txt"
    assert [one.url for one in found] == ["http://a.example/", "http://b.example/"]
    assert sorted(said) == sorted(
        (
            f"{path}:3: not an http or https URL: ftp://a.example/",
            f"{path}:4: longer than a record may be",
            f"{path}:5: not UTF-8: \\xff\\xfe",
            f"{path}:6: control character: http://b.example/\\x00",
            f"{path}:7: not a URL: words",
        )
    )


def test_strict_publishes_the_good_ones_first(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match="1 bad line"):
        sow(tmp_path, b"words\nhttp://a.example/\n", strict=True)
    assert len((tmp_path / "out").read_bytes().splitlines()) == 1


def test_a_million_byte_line_of_url_is_refused_and_any_line_fits_a_record(tmp_path: Path) -> None:
    longest = b"http://a.example/" + "ü".encode() * (limits.URL_BYTES_MAX // 6 - 20)
    found, said = sow(tmp_path, longest + b"\nhttp://a.example/" + b"a" * 900_000 + b"\n")
    assert len(found) == 1
    assert records.fits(records.encode(found[0]))
    assert len(said) == 1


def test_packed_lists_are_read(tmp_path: Path) -> None:
    found, _ = sow(tmp_path, gzip.compress(b"a.example\nb.example\n"), name="list.txt.gz")
    assert len(found) == 2


def test_sitemaps_are_queued_once_a_host(tmp_path: Path) -> None:
    found, _ = sow(tmp_path, None, urls=("a.example/1", "a.example/2", "http://127.0.0.1:8080/x"), sitemaps=True)
    assert [(one.kind, one.url, one.else_url) for one in found if one.kind == "sitemap"] == [
        ("sitemap", "https://a.example/sitemap.xml", "http://a.example/sitemap.xml"),
        ("sitemap", "http://127.0.0.1:8080/sitemap.xml", None),
    ]
    assert len(found) == 5


def test_a_missing_list_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(NoInput):
        seed.run(seed.Settings(input=str(tmp_path / "none.txt")))


def test_an_inbox_takes_any_number_of_segments(tmp_path: Path) -> None:
    box = tmp_path / "inbox"
    for number in range(limits.SPOOL_DEPTH_MAX + 2):
        seed.run(seed.Settings(urls=(f"http://a.example/{number}",), input=None, output=f"spool:{box}"))
    assert len(list((box / "new").iterdir())) == limits.SPOOL_DEPTH_MAX + 2
    assert not (box / ".end").exists()


# --- the command ---


def test_arguments_alone_do_not_read_stdin(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["http://a.example/", "-o", str(tmp_path / "out")], input="http://b.example/\n")
    assert done.exit_code == 0, done.output
    assert b"b.example" not in (tmp_path / "out").read_bytes()


def test_a_directory_that_is_named_gets_the_seeds_into_its_inbox(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["-C", str(tmp_path), "http://a.example/", "nothing here"])
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "inbox" / "new").iterdir())) == 1
    assert "argument:2: not a URL: nothing here" in done.stderr
    assert "1 seed, 1 bad line (1 not a URL)" in done.stderr
