"""Which policy is in force: flags over environment over crawl.toml over the user's config over the profile?

Files are read before options are parsed and become click's defaults, so there is one order for all. A wrong key or value
ends with 78 and names file, key and remedy. Identity has one source per directory: a stage whose flag contradicts
crawl.toml ends with 78, because two stages would otherwise speak to hosts under two names. Called by cli/command,
cli/init and cli/crawl.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from crawltool.cli.profiles import AUDIT_SCOPES, PROFILES
from crawltool.cli.settings import BY_NAME, POLICY_GROUPS, SETTINGS, Setting
from crawltool.errors import BadPolicy, CannotHold

FILE = "crawl.toml"
IDENTITY = ("contact", "user_agent", "robots_token")
TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


@dataclasses.dataclass(frozen=True)
class Policy:
    """What the files say, by option name, as it stands there. `crawl` is crawl.toml, None when there is none yet."""

    crawl: dict[str, Any] | None = None
    user: dict[str, Any] = dataclasses.field(default_factory=dict)
    profile: str | None = None

    def defaults(self) -> dict[str, Any]:
        """Give click's defaults: crawl.toml over the user's config over the profile."""
        layers = PROFILES.get(self.profile or "", {}) | self.user | (self.crawl or {})
        return layers | ({"profile": self.profile} if self.profile else {})

    def politeness(self) -> tuple[int, float]:
        """Give --per-host and --delay (seconds) as they hold for this crawl, for those who only look at it."""
        values = self.defaults()
        slots, delay_s = (
            click.types.convert_type(BY_NAME[name].type).convert(values.get(name, BY_NAME[name].default), None, None)
            for name in ("per_host", "delay")
        )
        return int(slots), float(delay_s)


def user_config() -> Path:
    """Give the path of the user's own config."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "crawltool" / "config.toml"


def load(directory: Path, profile: str | None) -> Policy:
    """Read both files; profile is the one that was typed. Raises BadPolicy."""
    user, crawl = read(user_config()) or {}, read(directory / FILE)
    chosen = profile or (crawl or {}).get("profile") or user.get("profile")
    return Policy(crawl=crawl, user=user, profile=chosen)


def read(path: Path) -> dict[str, Any] | None:
    """Read one policy file into option name -> value; None when it does not exist. Raises BadPolicy."""
    import tomllib  # here, because most commands find no file or only one: start-up time

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPolicy(f"{path}: {error}", remedy="correct that line") from None
    except OSError as error:
        raise BadPolicy(f"{path}: {error.strerror}", remedy="make it readable") from None
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key in POLICY_GROUPS:
            if not isinstance(value, dict):
                raise BadPolicy(f"{path}: {key} is a table", remedy=f"write [{key}] and its keys below")
            values |= {name: _checked(path, key, name, inner) for name, inner in value.items()}
        else:
            values[key] = _checked(path, "", key, value)
    return values


def _checked(path: Path, table: str, name: str, value: Any) -> Any:
    """Give a value that its option takes. Raises BadPolicy with file, key and what to do."""
    place = f"{path}: {table}.{name}" if table else f"{path}: {name}"
    setting = BY_NAME.get(name)
    if setting is None or not setting.in_policy or setting.table != table:
        raise BadPolicy(f"{place}: no such key", remedy=_where_it_belongs(setting, table))
    if setting.multiple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadPolicy(f"{place}: a list of texts is wanted", remedy=f'write {name} = ["…"]')
        return value
    if isinstance(value, (bool, list, dict)):
        raise BadPolicy(f"{place}: one text or number is wanted", remedy=f'write {name} = "{setting.default or "…"}"')
    try:
        click.types.convert_type(setting.type).convert(value, None, None)
    except click.BadParameter as error:
        raise BadPolicy(f"{place}: {error.message}", remedy="correct the value") from None
    return value


def _where_it_belongs(setting: Setting | None, table: str) -> str:
    if setting is None:
        names = ", ".join(setting.name for setting in SETTINGS if setting.in_policy and setting.table == table)
        return f"known here: {names}"
    if not setting.in_policy:
        return f"it is of one run: give it as {setting.long}"
    return f"put it under [{setting.table}]" if setting.table else "put it before all tables"


def read_scope_file(params: dict[str, Any]) -> None:
    """Turn --scope-file into include and exclude patterns."""
    name = params.pop("scope_file", None)
    if name is None:
        return
    lines = [line.strip() for line in Path(name).read_text(encoding="utf-8", errors="replace").splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    excluded = tuple(line[1:].strip() for line in patterns if line.startswith("-"))
    params["include"] = (*params.get("include", ()), *(line for line in patterns if not line.startswith("-")))
    params["exclude"] = (*params.get("exclude", ()), *excluded)


def check(ctx: click.Context, policy: Policy, *, owner: bool) -> None:
    """Refuse settings that contradict each other. `owner` commands (init, crawl) may change the identity."""
    scope = ctx.params.get("scope")
    if policy.profile == "audit" and scope not in (None, *AUDIT_SCOPES):
        raise BadPolicy(
            f"--profile audit with --scope {scope}: its pace is only for hosts you typed",
            remedy="use --scope host, or another profile",
        )
    if owner or policy.crawl is None:
        return
    for name in IDENTITY:
        stored = policy.crawl.get(name, BY_NAME[name].default)
        value = ctx.params.get(name)
        if ctx.get_parameter_source(name) in TYPED and stored is not None and value != stored:
            flag, where = BY_NAME[name].long, ctx.params["dir"]
            raise BadPolicy(
                f"{flag} {value} contradicts {stored!r} in {where / FILE}: one crawl, one identity",
                remedy=f"leave it out, or change it for all stages: crawltool init -C {where} {flag} {value}",
            )


def given(ctx: click.Context) -> dict[str, Any]:
    """Give what the operator said about policy, as typed: what init stores. Flags and environment; identity from anywhere."""
    loaded: Policy = ctx.meta["crawltool.policy"]
    values: dict[str, Any] = {}
    for name, value in ctx.params.items():
        setting = BY_NAME.get(name)
        if setting is None or not setting.in_policy:
            continue
        sources = [name, "scope_file"] if name in ("include", "exclude") else [name]
        typed = any(ctx.get_parameter_source(source) in TYPED for source in sources)
        if typed or (name in IDENTITY and name in loaded.user and name not in (loaded.crawl or {})):
            values[name] = as_typed(setting, value)
    return values


def as_typed(setting: Setting, value: Any) -> Any:
    """Write a parsed value the way a person would type it."""
    write = getattr(setting.type, "write", None) or (lambda one: one)
    if setting.multiple:
        return [write(one) for one in value]
    return list(value) if isinstance(value, tuple) else write(value)


def in_force(ctx: click.Context) -> dict[str, Any]:
    """Give every policy option of a command with the value that holds, as typed: for stores that keep it."""
    kept = {name: BY_NAME[name] for name in ctx.params if name in BY_NAME and BY_NAME[name].in_policy}
    return {name: as_typed(setting, ctx.params[name]) for name, setting in kept.items() if ctx.params[name] is not None}


def store(directory: Path, values: Mapping[str, Any]) -> list[str]:
    """Write crawl.toml, new or changed; give the names that changed. Raises CannotHold, DiskTrouble, BadPolicy."""
    from crawltool.cli import crawltoml  # only init and crawl write: start-up time of the others
    from crawltool.stores import atomic

    path = directory / FILE
    with atomic.disk(directory):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CannotHold(f"{directory} is not a directory", remedy="choose another name with -C") from None
    before = read(path)
    new = {name: value for name, value in values.items() if before is None or before.get(name) != value}
    if before is None:
        atomic.write_file(path, crawltoml.fresh(values).encode())
    elif new:
        atomic.write_file(path, crawltoml.changed(path.read_text(encoding="utf-8"), new).encode())
    return list(new)
