"""How crawltool ends: one line, the right code, or the signal itself."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from crawltool import errors
from crawltool.cli import main
from crawltool.cli.main import COMMANDS, cli
from crawltool.cli.voice import Voice
from crawltool.stages.drain import EndedBySignal, ReaderGone

HEAVY = {"trio", "pycurl", "rich", "httpx", "numpy", "rocksdict", "lmdb", "selectolax"}


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, *flags: str
) -> tuple[int, str]:
    """Run a command that raises; give code and stderr."""

    def fail() -> None:
        raise error

    stage = click.Command("stage", callback=fail)
    monkeypatch.setattr(cli, "get_command", lambda ctx, name: stage)
    code = main.main([*flags, "stage"], Voice())
    return code, capsys.readouterr().err


@pytest.mark.parametrize("ending", errors.ENDINGS)
def test_each_ending_gives_its_code_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: type[errors.CrawltoolError]
) -> None:
    code, said = ended(monkeypatch, capsys, ending("what happened.", remedy="do this"))
    assert code == ending.exit_code
    assert said.splitlines()[-1] == "crawltool: what happened (do this)"
    assert len(said.splitlines()) == 1 or ending is errors.Bug


def test_an_unexpected_error_is_a_bug_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = ended(monkeypatch, capsys, KeyError("x"))
    assert code == 70 and "Traceback" in said and "report" in said.splitlines()[-1]


def test_debug_shows_the_traceback_of_a_known_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ended(monkeypatch, capsys, errors.NoInput("x"), "--debug")
    assert code == 66 and "Traceback" in said


def test_a_group_is_opened_and_its_cause_speaks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    disk = errors.DiskTrouble("full")
    group = BaseExceptionGroup("", [BrokenPipeError(), BaseExceptionGroup("", [errors.Unfinished(), disk]), KeyboardInterrupt()])
    assert ended(monkeypatch, capsys, group)[0] == 74
    assert ended(monkeypatch, capsys, ExceptionGroup("", [errors.NoInput(), ValueError()]))[0] == 70


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x"), 74),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 73),
        (click.BadParameter("x"), 64),
        (click.UsageError("x"), 64),
        (click.FileError("x"), 64),
    ],
)
def test_what_libraries_raise_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    assert ended(monkeypatch, capsys, error)[0] == code


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (BrokenPipeError(), signal.SIGPIPE),
        (ReaderGone(), signal.SIGPIPE),
        (KeyboardInterrupt(), signal.SIGINT),
        (EndedBySignal(signal.SIGTERM), signal.SIGTERM),
        (BaseExceptionGroup("", [EndedBySignal(signal.SIGTERM), BrokenPipeError()]), signal.SIGTERM),
    ],
)
def test_a_signal_is_died_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, number: int
) -> None:
    died: list[int] = []
    monkeypatch.setattr(main, "die_by", died.append)
    monkeypatch.setattr(os, "dup2", lambda *ends: 0)
    assert ended(monkeypatch, capsys, error)[0] == 128 + number
    assert died == [number]


def crawltool(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crawltool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_misuse_is_64_and_says_where_help_is(tmp_path: Path) -> None:
    done = crawltool("init", "--delay", "soon", cwd=tmp_path)
    assert done.returncode == 64 and done.stdout == ""
    assert "--delay" in done.stderr and "crawltool init --help" in done.stderr and len(done.stderr.splitlines()) == 1


def test_messages_are_json_lines_when_asked(tmp_path: Path) -> None:
    done = crawltool("init", "-C", "c", "--log", "json", "--retries", "2", cwd=tmp_path)
    assert json.loads(done.stderr)["command"] == "crawltool init"
    done = crawltool("frontier", "-C", "gone", "--log", "json", cwd=tmp_path)
    said = json.loads(done.stderr)
    assert (said["level"], said["exit_code"], done.returncode) == ("error", 66, 66)


def test_the_version_is_printed() -> None:
    assert crawltool("--version").stdout.startswith("crawltool ")


def test_a_command_imports_only_what_it_needs() -> None:
    program = "import sys, crawltool.cli.main as m; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & HEAVY
    program = "import sys, crawltool.cli.main as m; m.cli.get_command(None, 'parse'); print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"trio", "pycurl", "rich"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_overview_is_the_commands_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and (command.help or "").startswith(COMMANDS[name].rstrip("."))
