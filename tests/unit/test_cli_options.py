"""Every option has a default, a unit, a variable, help, a place in the manual; every example names what exists."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from crawltool.cli import manpages
from crawltool.cli.command import Command
from crawltool.cli.main import COMMANDS, cli
from crawltool.cli.options import Option
from crawltool.cli.settings import BY_NAME, GROUPS, SETTINGS, Setting


def commands() -> Iterator[tuple[str, click.Command]]:
    root = click.Context(cli, info_name="crawltool")
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        yield from manpages.tree(click.Context(command, info_name=name, parent=root), command)


ALL = dict(commands())
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_is_whole(setting: Setting) -> None:
    assert setting.group in GROUPS and setting.added
    assert setting.help.endswith((".", ")")) and setting.help[0].isupper(), setting.help
    if setting.default is not None and not setting.multiple and setting.type not in (None, str):
        assert isinstance(setting.type, click.ParamType)
        setting.type.convert(setting.default, None, None)


def test_no_name_is_used_twice() -> None:
    assert len(BY_NAME) == len(SETTINGS)
    flags = [flag for setting in SETTINGS for flag in (setting.long, setting.short) if flag]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("path", LEAVES)
def test_every_option_of_a_command_has_help_and_a_variable(path: str) -> None:
    for option in LEAVES[path].params:
        if isinstance(option, click.Option):
            assert option.help, f"{path}: {option.name}"
            assert isinstance(option, Option) or option.is_eager or str(option.envvar).startswith("CRAWLTOOL_"), (
                f"{path}: {option.name}"
            )


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_speaks_quietly_and_in_json_when_told(path: str) -> None:
    names = {option.name for option in LEAVES[path].params}
    assert {"quiet", "log", "dir"} <= names
    assert isinstance(LEAVES[path], Command)


@pytest.mark.parametrize("path", LEAVES)
def test_the_settings_of_a_command_reach_it(path: str) -> None:
    """A callback without **rest names each of its options."""
    callback = LEAVES[path].callback
    assert callback is not None
    taken = inspect.signature(inspect.unwrap(callback)).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        assert {option.name for option in LEAVES[path].params} - {"quiet", "log", "scope_file"} <= set(taken)


def examples(command: click.Command) -> Iterator[list[str]]:
    """Yield the words of each crawltool command in the examples."""
    text = getattr(command, "examples", "").replace("\\\n", " ")
    for line in re.sub(r"[|&]\n", "| ", re.sub(r"\n  +", " ", text)).splitlines():
        for part in re.split(r"\|\|?|&&|;", line):
            words = shlex.split(part.replace("`", ""), comments=True) if part.count("'") % 2 == 0 else []
            while words and ("=" in words[0] or words[0] == "xargs"):
                words = words[1:]
            if words[:1] == ["crawltool"]:
                yield words[1:]


@pytest.mark.parametrize("path", LEAVES)
def test_examples_are_of_commands_and_options_that_exist(path: str) -> None:
    found = list(examples(LEAVES[path]))
    assert any(f"crawltool {' '.join(words)}".startswith(path) for words in found), f"{path}: no example of itself"
    for words in found:
        name = "crawltool " + (" ".join(words[:2]) if words[0] == "warc" else words[0])
        assert name in LEAVES, f"{path}: {name} is no command"
        known = {flag for option in LEAVES[name].params for flag in option.opts} | {"-h", "--help"}
        for word in words[1:]:
            if re.match(r"--?[a-zA-Z]", word):
                assert word.partition("=")[0] in known, f"{path}: {name} has no {word}"


def test_an_option_means_the_same_everywhere() -> None:
    seen: dict[str, tuple[str, object]] = {}
    for path, command in LEAVES.items():
        for option in command.params:
            if isinstance(option, click.Option) and not isinstance(option, Option):
                assert option.name not in BY_NAME, f"{path}: {option.name} is a setting: take it from the table"
                assert seen.setdefault(str(option.name), (path, option.type))[1].__class__ is option.type.__class__, option.name
