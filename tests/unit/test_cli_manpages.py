"""The manual is the command line's own words, written as man(7)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crawltool import errors, records
from crawltool.cli import formats, manpages, roff
from crawltool.cli.main import COMMANDS
from tests.paths import ROOT


def test_the_committed_pages_are_what_the_source_says() -> None:
    assert not manpages.check(ROOT / "man"), "run: make man"


def test_every_command_has_a_page_that_the_package_installs() -> None:
    declared = (ROOT / "pyproject.toml").read_text()
    for name in ("crawltool.1", *(f"crawltool-{name}.1" for name in COMMANDS), "crawltool-records.5", "crawltool-spool.5"):
        assert (ROOT / "man" / name).exists(), name
        assert f'"man/{name}"' in declared, f"{name} is not in [tool.hatch.build.targets.wheel.shared-data]"


def test_every_code_and_record_and_field_is_documented() -> None:
    overview, lines = manpages.overview(), formats.records_page()
    for ending in errors.ENDINGS:
        assert roff.bold(str(ending.exit_code)) in overview
    for struct in (*records.TYPES.values(), *formats.PARTS):
        for field in struct.__struct_encode_fields__:
            assert roff.bold(field) in lines, f"{struct.__name__}.{field}"
    assert all(roff.bold(verdict) in lines for verdict in records.VERDICTS)


def test_text_that_roff_would_read_is_escaped() -> None:
    assert roff.escape(".TH -a \\fB 'x'") == "\\&.TH \\-a \\efB \\(aqx\\(aq"
    assert roff.prose("see crawltool-fetch(1) and `--json`") == ["see \\fBcrawltool\\-fetch\\fR(1) and \\fB\\-\\-json\\fR"]


def test_check_finds_stale_foreign_and_broken_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manpages, "pages", lambda: {"crawltool.1": roff.page("crawltool", 1, "crawl", [".NOSUCH"])})
    manpages.write(tmp_path)
    (tmp_path / "crawltool-gone.1").write_text("old")
    wrong = "\n".join(manpages.check(tmp_path))
    assert "no source" in wrong
    assert shutil.which("groff") is None or "NOSUCH" in wrong
    manpages.write(tmp_path)
    assert not (tmp_path / "crawltool-gone.1").exists()
    (tmp_path / "crawltool.1").write_text("x")
    assert "not as the source says" in manpages.check(tmp_path)[0]
