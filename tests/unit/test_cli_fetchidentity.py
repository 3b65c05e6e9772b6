"""cli/fetchidentity: the files, the report, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from crawltool.cli import fetchidentity
from crawltool.cli.policy import Policy
from crawltool.cli.voice import Voice
from crawltool.core.identity import Identity
from crawltool.errors import CannotHold, Misuse
from crawltool.net import ownaddresses
from crawltool.net.ownaddresses import Confirmed
from tests.e2e.crawls import tool

ME = Identity("bot/1", "me@x.org", "bot")


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, addresses: list[str], found: Confirmed) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(ownaddresses, "own_addresses", lambda: addresses)
    monkeypatch.setattr(ownaddresses, "confirm", lambda address: found)
    fetchidentity.write(folder / "out", ME, Policy(user={"delay": "7s"}), Voice(stream))
    return stream.getvalue()


def test_each_public_address_is_listed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = said(tmp_path, monkeypatch, ["8.8.4.4", "fd00::1"], Confirmed("8.8.4.4", "a.test", ("8.8.4.4",)))
    assert "8.8.4.4 is a.test, and that name leads back to it" in words and "fd00" not in words
    assert json.loads((tmp_path / "out" / "ip-ranges.json").read_text())["prefixes"] == [{"ipv4Prefix": "8.8.4.4/32"}]
    assert "7 seconds" in (tmp_path / "out" / "bot.html").read_text()


def test_what_cannot_be_confirmed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "has no name" in said(tmp_path, monkeypatch, ["8.8.4.4"], Confirmed("8.8.4.4", None))
    words = said(tmp_path, monkeypatch, ["8.8.4.4"], Confirmed("8.8.4.4", "a\x1b[2J.test", ("8.8.8.8",)))
    assert "leads to 8.8.8.8" in words and "\x1b" not in words
    assert "no public address" in said(tmp_path, monkeypatch, ["10.0.0.5"], Confirmed("10.0.0.5", None))


def test_without_a_contact_or_a_folder_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(Misuse):
        fetchidentity.write(tmp_path / "out", Identity("bot/1", None, "bot"), Policy(), Voice(io.StringIO()))
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotHold):
        fetchidentity.write(tmp_path / "file", ME, Policy(), Voice(io.StringIO()))


def test_the_command_writes_both_files_and_ends(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    words = ["fetch", "-C", str(tmp_path / "c"), "--identity", str(tmp_path / "o"), "--contact", "me@x.org"]
    done = tool(tmp_path, *words)
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["bot.html", "ip-ranges.json"]
    assert done.stdout == "" and "wrote" in done.stderr and not list((tmp_path / "c").iterdir())
