"""How does a command get its options?

A stage's cli file picks groups or single settings by name: `@use("directory", "politeness", "concurrency")`; every
option then has the same default, unit, variable and help wherever it appears. Called by every cli/<command>.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from crawltool.cli.settings import BY_NAME, GROUPS, SETTINGS, Setting

Function = TypeVar("Function", bound=Callable[..., Any])


class Option(click.Option):
    """A click option that knows its setting: for grouped help, the manual and the policy."""

    def __init__(self, param_decls: Sequence[str] | None = None, *, setting: Setting) -> None:
        self.setting = setting
        extra: dict[str, Any] = {"is_flag": True} if setting.is_flag else {"type": setting.type, "metavar": setting.metavar}
        if setting.default is not None:
            extra |= {"default": setting.default, "show_default": not setting.multiple}
        super().__init__(param_decls, envvar=setting.envvar, help=setting.help, multiple=setting.multiple, **extra)

    def to_info_dict(self) -> dict[str, Any]:
        """Add what the manual prints beside click's own facts."""
        facts = {"group": self.setting.group, "added": self.setting.added, "in_policy": self.setting.in_policy}
        return super().to_info_dict() | facts


def use(*names: str) -> Callable[[Function], Function]:
    """Give a command options by the names of groups or of single settings; `common` comes by itself."""
    unknown = [name for name in names if name not in GROUPS and name not in BY_NAME]
    assert not unknown, unknown
    chosen = dict.fromkeys(
        setting for name in (*names, "common") for setting in SETTINGS if name in (setting.group, setting.name)
    )

    def add(function: Function) -> Function:
        for setting in reversed(chosen):
            names = [name for name in (setting.short, setting.long, setting.name) if name]
            function = click.option(*names, cls=Option, setting=setting)(function)
        return function

    return add
