"""What do all commands share: lazy loading, policy as defaults, grouped help with examples?

A command module is imported only when its command runs. Command reads the policy before the options are parsed, so that
flags win over environment over crawl.toml over the user's config (DESIGN section 6). Used by every cli/<command>.py.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import click

from crawltool.cli import policy
from crawltool.cli.options import Option
from crawltool.cli.settings import BY_NAME, GROUPS
from crawltool.cli.voice import Voice
from crawltool.errors import NoInput


class Command(click.Command):
    """A command of crawltool.

    `makes_dir` commands may name a directory that does not exist yet; `owns_policy` commands may change its identity.
    """

    def __init__(
        self, *args: Any, examples: str = "", notes: str = "", makes_dir: bool = False, owns_policy: bool = False, **kwargs: Any
    ) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": 100})
        super().__init__(*args, **kwargs)
        self.examples, self.notes = examples.strip("\n"), notes.strip("\n")
        self.makes_dir, self.owns_policy = makes_dir, owns_policy

    def default_dir(self, arguments: dict[str, Any]) -> str:
        """Tell the directory when neither flag nor environment names one."""
        return "."

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the directory, load its policy as click's defaults, then parse."""
        voice = ctx.ensure_object(Voice)
        voice.name = ctx.command_path
        typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        if {"help"} & {name for name, value in typed.items() if value is True}:
            return super().parse_args(ctx, args)
        loaded = policy.Policy()
        if any(parameter.name == "dir" for parameter in self.params):
            where = _typed(typed, "dir") or self.default_dir(typed)
            loaded = policy.load(Path(where), profile=_typed(typed, "profile"))
            ctx.default_map = {"dir": where} | loaded.defaults()
        ctx.meta["crawltool.policy"] = loaded
        rest = super().parse_args(ctx, args)
        voice.json, voice.quiet = ctx.params.pop("log", "text") == "json", bool(ctx.params.pop("quiet", False))
        self._check(ctx, loaded)
        return rest

    def _check(self, ctx: click.Context, loaded: policy.Policy) -> None:
        where = ctx.params.get("dir")
        if where is not None:
            ctx.params["dir"] = Path(where)
            if not self.makes_dir and not ctx.params["dir"].is_dir():
                raise NoInput(f"{where}: no such crawl directory", remedy=f"make it with: crawltool init -C {where}")
        policy.read_scope_file(ctx.params)
        policy.check(ctx, loaded, owner=self.owns_policy)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the names of their groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                group = parameter.setting.group if isinstance(parameter, Option) else "own"
                groups.setdefault(group, []).append(row)
        for group in ("own", *GROUPS):
            if group in groups:
                with formatter.section(GROUPS.get(group, "Options")):
                    formatter.write_dl(groups[group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are typed, and where more is to be read."""
        if self.examples:
            formatter.write("\nExamples:\n" + "\n".join(f"  {line}".rstrip() for line in self.examples.splitlines()) + "\n")
        page = "-".join(ctx.command_path.split()[:2])  # subcommands stand on their command's page
        formatter.write(f"\nEvery option has a variable CRAWLTOOL_NAME. More: man {page}\n")


class Group(click.Group):
    """Commands by name, each imported only when it is asked for."""

    def __init__(self, *args: Any, package: str, summaries: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.package, self.summaries = package, summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names in the order of the table: as work goes."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and give its `command`."""
        if cmd_name not in self.summaries:
            return None
        found = importlib.import_module(f"{self.package}.{cmd_name}").command
        assert isinstance(found, click.Command), cmd_name
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))


def _typed(arguments: dict[str, Any], name: str) -> str | None:
    """Give what a flag, else the environment says."""
    value = arguments.get(name)
    return value if isinstance(value, str) else os.environ.get(BY_NAME[name].envvar) or None
