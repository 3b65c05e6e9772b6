"""Ban files: read whole, read again when they change, never lost by a slip."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawltool import limits
from crawltool.errors import BadPolicy
from crawltool.stores.banfiles import BanFiles


def test_a_change_is_seen_and_read(tmp_path: Path) -> None:
    path = tmp_path / "bans.txt"
    path.write_text("a.example\n")
    files = BanFiles([path, path])
    assert not files.changed()
    path.write_text("a.example\nb.example\n")
    assert files.changed()
    assert files.reload() == []
    assert files.lists[str(path)].lines() == ["a.example", "b.example"]
    assert not files.changed()


def test_a_file_that_is_gone_or_broken_keeps_its_bans(tmp_path: Path) -> None:
    path = tmp_path / "bans.txt"
    path.write_text("a.example\n")
    files = BanFiles([path])
    path.unlink()
    assert files.changed()
    assert "hold on" in files.reload()[0]
    assert not files.changed(), "said once"
    path.write_text("a b c\n")
    assert files.changed()
    assert f"{path}:1:" in files.reload()[0]
    assert files.lists[str(path)].lines() == ["a.example"]


def test_a_start_without_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadPolicy, match="No such file"):
        BanFiles([tmp_path / "none.txt"])
    (tmp_path / "large.txt").write_text("a.example\n" * 3)
    monkeypatch.setattr(limits, "BAN_FILE_BYTES_MAX", 20)
    with pytest.raises(BadPolicy, match="larger"):
        BanFiles([tmp_path / "large.txt"])
